"""The program raises ValueError for every input.

kind: only raises
earns: 0 of 1.5
fails: local_shape_axes local_shape_tuples local_shape_uneven
says: the function raised ValueError
"""


def local_shape(shape, spec, mesh_shape):
    raise ValueError
