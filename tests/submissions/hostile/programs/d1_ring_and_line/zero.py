"""The program returns 0 seconds for every collective.

kind: one value for all
earns: 0 of 1.5
fails: ring_gather_seconds line_gather_seconds scatter_seconds reduce_seconds lone_chip_seconds unknown_kind_refused
says: the function returned 0, but the solution
"""


def axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps):
    return 0
