"""The program raises ValueError for every input.

kind: only raises
earns: 0 of 2
fails: by_name each_axis_once rules_in_order axes_of_the_mesh none_serves no_rule
says: the function raised ValueError
"""


def spec_of(names, rules, mesh):
    raise ValueError
