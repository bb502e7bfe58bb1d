from grader.hardware import CHIPS


def _passes(kind):
    if kind not in ("all_gather", "reduce_scatter", "all_reduce"):
        raise ValueError(f"unknown collective: {kind}")
    return 2 if kind == "all_reduce" else 1


def scatter_of_the_result(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """axis_collective_time: scatter_result"""
    passes = _passes(kind)
    if axis_size == 1:
        return 0.0
    v = bytes / axis_size if kind == "reduce_scatter" else bytes
    return passes * (axis_size - 1) / axis_size * v / (2 * one_way_bandwidth if wraps else one_way_bandwidth)


def scatter_of_one_shard(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """axis_collective_time: scatter_result"""
    passes = _passes(kind)
    if axis_size == 1:
        return 0.0
    moved = bytes / axis_size if kind == "reduce_scatter" else bytes - bytes / axis_size
    return passes * moved / (one_way_bandwidth * (1 + wraps))


def scatter_of_the_result_in_both(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """axis_collective_time: scatter_of_a_shard"""
    _passes(kind)
    if axis_size == 1:
        return 0.0
    w = 2 * one_way_bandwidth if wraps else one_way_bandwidth
    gather = (axis_size - 1) / axis_size * bytes / w
    scatter = (axis_size - 1) / axis_size * (bytes / axis_size) / w
    return {"all_gather": gather, "reduce_scatter": scatter, "all_reduce": scatter + gather}[kind]


def result_of_the_ring(chip, X, Y, I, K):
    """ring_scatter_time: ring_scatter_shard"""
    return (X - 1) / X * (2 * I * K / Y / X) / CHIPS[chip].ici_both


def one_shard_of_the_ring(chip, X, Y, I, K):
    """ring_scatter_time: ring_scatter_one_shard"""
    return 2 * I * K / (X * Y) / CHIPS[chip].ici_both


def result_of_the_line(chip, I, K):
    """line_scatter_time: line_scatter_shard"""
    return 3 / 4 * (2 * I * K / 4 / 4) / CHIPS[chip].ici


def one_shard_of_the_line(chip, I, K):
    """line_scatter_time: line_scatter_one_shard"""
    return 2 * I * K / 16 / CHIPS[chip].ici
