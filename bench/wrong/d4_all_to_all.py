import math

from grader.hardware import CHIPS


def as_a_gather(chip, N, I, J):
    """ring_exchange_time: ring_exchange_as_gather"""
    return 2 * I * J / CHIPS[chip].ici_both


def two_directions_forgotten(chip, N, I, J):
    """ring_exchange_time: ring_exchange_half"""
    return 2 * I * J / CHIPS[chip].ici / 4


def a_ring(chip, X, Y, I, J):
    """line_exchange_time: line_exchange_as_ring"""
    return 2 * I * J / 4 / CHIPS[chip].ici_both


def _chunks(n, network):
    if network == "ring":
        return (n // 2) * ((n + 1) // 2) / 2
    if network == "one_way_ring":
        return n * (n - 1) / 2
    if network == "line":
        return (n // 2) * ((n + 1) // 2)
    return n - 1


def even_formula(bytes, sizes, network, one_way_bandwidth):
    """exchange_time: exchange_even_rings"""
    chips = math.prod(sizes)
    times = []
    for n in sizes:
        chunks = n * n / 8 if network == "ring" else _chunks(n, network)
        times.append(chunks * (bytes * n / chips) / n**2 / one_way_bandwidth)
    return max(times)


def chunk_is_a_shard(bytes, sizes, network, one_way_bandwidth):
    """exchange_time: exchange_large_chunks"""
    chips = math.prod(sizes)
    return max(_chunks(n, network) * bytes * n / chips / n / one_way_bandwidth for n in sizes)


def axes_one_after_another(bytes, sizes, network, one_way_bandwidth):
    """exchange_time: exchange_axes_added"""
    chips = math.prod(sizes)
    return sum(_chunks(n, network) * bytes * n / chips / n**2 / one_way_bandwidth for n in sizes)


def whole_array_on_each_ring(bytes, sizes, network, one_way_bandwidth):
    """exchange_time: exchange_axes_share_nothing"""
    return max(_chunks(n, network) * bytes / n**2 / one_way_bandwidth for n in sizes)


def one_ring_of_all(bytes, sizes, network, one_way_bandwidth):
    """exchange_time: exchange_one_long_axis"""
    n = math.prod(sizes)
    return _chunks(n, network) * bytes / n**2 / one_way_bandwidth


def one_chunk_at_the_switch(bytes, sizes, network, one_way_bandwidth):
    """exchange_time: exchange_switch_own_chunk"""
    chips = math.prod(sizes)
    return max(
        (n if network == "switch" else _chunks(n, network)) * bytes * n / chips / n**2 / one_way_bandwidth
        for n in sizes
    )


def every_ring_both_ways(bytes, sizes, network, one_way_bandwidth):
    """exchange_time: exchange_one_way_as_both"""
    chips = math.prod(sizes)
    kind = network.removeprefix("one_way_")
    return max(_chunks(n, kind) * bytes * n / chips / n**2 / one_way_bandwidth for n in sizes)


def line_as_ring(bytes, sizes, network, one_way_bandwidth):
    """exchange_time: exchange_line_halved"""
    chips = math.prod(sizes)
    kind = "ring" if network == "line" else network
    return max(_chunks(n, kind) * bytes * n / chips / n**2 / one_way_bandwidth for n in sizes)
