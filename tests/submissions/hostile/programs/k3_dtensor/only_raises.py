"""The program raises ValueError for every input.

kind: only raises
earns: 0 of 3
fails: dtensor_cuts dtensor_pending dtensor_ones dtensor_order dtensor_refused spec_cuts spec_pending spec_refused
says: the function raised ValueError
"""


def to_dtensor(spec, shape, mesh):
    raise ValueError


def to_spec(placements, shape, mesh):
    raise ValueError
