"""The reference solution."""


def axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """Return the seconds of a collective over one mesh axis: the exact bandwidth time, no latency.

    Args:
        kind: "all_gather", "reduce_scatter" or "all_reduce"; anything else raises ValueError.
        bytes: V, the bytes of the array that the chips of this axis hold together.
        axis_size: N, chips along the axis; with 1 nothing moves and the time is 0.
        one_way_bandwidth: W1, bytes/s of one link in one direction.
        wraps: True when the axis is a ring, False when it is a line.

    Returns:
        Seconds, a float.
    """
    passes = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}
    if kind not in passes:
        raise ValueError(f"unknown collective {kind!r}")
    links = 2 if wraps else 1
    received = bytes * (axis_size - 1) / axis_size
    return passes[kind] * received / (links * one_way_bandwidth)
