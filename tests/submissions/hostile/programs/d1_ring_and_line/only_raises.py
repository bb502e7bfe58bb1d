"""The program raises ValueError for every input.

kind: only raises
earns: 0 of 1.5
fails: ring_gather_seconds line_gather_seconds scatter_seconds reduce_seconds lone_chip_seconds unknown_kind_refused
says: the function raised ValueError
"""


def axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps):
    raise ValueError
