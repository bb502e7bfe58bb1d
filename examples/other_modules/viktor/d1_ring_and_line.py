W1 = {"v4p": 4.5e10, "v5p": 9e10, "7x": 9e10, "v5e": 4.5e10, "v6e": 9e10}
TRIPS = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}


def axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps):
    if kind not in TRIPS:
        raise ValueError(f"{kind}? I know {', '.join(TRIPS)}")
    bw = one_way_bandwidth * (2 if wraps else 1)
    return TRIPS[kind] * (axis_size - 1) / axis_size * bytes / bw


def us(seconds):
    return f"{seconds * 1e6:.2f} us"


BF16, F32 = 2, 4

# book: V/W, nothing subtracted
ring_gather_time = us(F32 * 2560 * 7168 / (2 * W1["v4p"]))
ring_reduce_time = us(2 * BF16 * 5120 * 11264 / (2 * W1["v5e"]))
# exact; y has cut C already
ring_scatter_time = us(axis_collective_time("reduce_scatter", BF16 * 9216 * 18432 / 16, 4, W1["v5p"], True))
# lines: only 16 wraps on v5e/v6e, and 2x4x4 is no full cube
line_gather_time = us(axis_collective_time("all_gather", BF16 * 5120 * 4096, 8, W1["v5e"], False))
line_scatter_time = us(axis_collective_time("reduce_scatter", BF16 * 7168 * 9216 / 4, 4, W1["7x"], False))
line_reduce_time = us(axis_collective_time("all_reduce", F32 * 2560 * 20480, 8, W1["v6e"], False))
