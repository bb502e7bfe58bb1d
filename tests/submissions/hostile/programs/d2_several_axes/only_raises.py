"""The program raises ValueError for every input.

kind: only raises
earns: 0 of 2
fails: axes_cut_elsewhere axes_together axes_reduced axes_of_one axes_misplaced
says: the function raised ValueError
"""


def axes_time(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    raise ValueError
