"""The program raises ValueError for every input.

kind: only raises
earns: 0 of 3
fails: of_shards of_graphs of_sums no_fit no_sum elementwise_exact elementwise_sums
says: the function raised ValueError
"""


def einsum_rule(equation, placements):
    raise ValueError


def elementwise_rule(op, placements):
    raise ValueError
