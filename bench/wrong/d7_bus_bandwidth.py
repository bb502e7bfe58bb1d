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
