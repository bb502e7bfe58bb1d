def axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps):
    # each chip gets everything but its own piece
    if kind not in ("all_gather", "reduce_scatter", "all_reduce"):
        raise ValueError(kind)
    t = bytes * (axis_size - 1) / axis_size / one_way_bandwidth
    if kind == "all_reduce":
        t = 2 * t
    return t


ring_gather_time = "1.631 ms"
ring_scatter_time = 88.4736
ring_reduce_time = "1281.6 us"
line_gather_time = "466.0 us"  # V / W, the axis is a ring of 8
line_scatter_time = "275.25 us"
line_reduce_time = "4.0778 ms"
