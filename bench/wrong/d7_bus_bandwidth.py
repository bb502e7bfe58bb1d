def no_factor(n, MB, ms):
    """reduce_bus_bandwidth: reduce_algorithm_bandwidth"""
    return MB / ms * 1e9


def as_gather(n, MB, ms):
    """reduce_bus_bandwidth: reduce_bus_one_pass"""
    return MB / ms * 1e9 * (n - 1) / n


def factor_two(n, MB, ms):
    """reduce_bus_bandwidth: reduce_bus_all_of_it"""
    return 2 * MB / ms * 1e9


def whole_input(n, MB, busbw):
    """scatter_from_bus_time: scatter_from_algorithm"""
    return n * MB * 1e6 / (busbw * 1e9)


def only_the_output(n, MB, busbw):
    """scatter_from_bus_time: scatter_output_over_bus"""
    return MB * 1e6 / (busbw * 1e9)


def own_share(n, MB, busbw):
    """scatter_from_bus_time: scatter_from_output"""
    return MB * 1e6 * (n - 1) / n / (busbw * 1e9)


def _factor(kind, n):
    return {"all_reduce": 2 * (n - 1) / n, "broadcast": 1, "reduce": 1}.get(kind, (n - 1) / n)


def output_of_a_scatter(kind, bytes_in, bytes_out, ranks, seconds):
    """bandwidths: bandwidths_of_output"""
    s = bytes_in if kind in ("broadcast", "all_to_all", "all_reduce") else bytes_out
    return s / seconds, s / seconds * _factor(kind, ranks)


def input_of_everything(kind, bytes_in, bytes_out, ranks, seconds):
    """bandwidths: bandwidths_of_input"""
    alg = bytes_in / seconds
    return alg, alg * _factor(kind, ranks)


def reduce_factor_once(kind, bytes_in, bytes_out, ranks, seconds):
    """bandwidths: bandwidths_reduced_once"""
    s = max(bytes_in, bytes_out)
    f = 1 if kind in ("broadcast", "reduce") else (ranks - 1) / ranks
    return s / seconds, f * s / seconds


def roots_send_less(kind, bytes_in, bytes_out, ranks, seconds):
    """bandwidths: bandwidths_root_like_ring"""
    s = max(bytes_in, bytes_out)
    f = 2 * (ranks - 1) / ranks if kind == "all_reduce" else (ranks - 1) / ranks
    return s / seconds, f * s / seconds


def wrong_order(kind, bytes_in, bytes_out, ranks, seconds):
    """bandwidths: bandwidths_swapped"""
    s = max(bytes_in, bytes_out)
    return s / seconds * _factor(kind, ranks), s / seconds


def divided_by_the_factor(kind, bytes_in, bytes_out, ranks, seconds):
    """bandwidths: bandwidths_upside_down"""
    s = max(bytes_in, bytes_out)
    return s / seconds, s / seconds / _factor(kind, ranks)


def bytes_of_all_ranks(kind, bytes_in, bytes_out, ranks, seconds):
    """bandwidths: bandwidths_reduced_arrays"""
    s = ranks * max(bytes_in, bytes_out)
    return s / seconds, s / seconds * _factor(kind, ranks)
