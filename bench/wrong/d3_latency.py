import math

from grader.hardware import CHIPS


def of_a_shard(chip, N):
    """latency_bound_below: latency_bound_shard"""
    return 1e-6 / 2 * CHIPS[chip].ici_both


def one_direction(chip, N):
    """latency_bound_below: latency_bound_one_way"""
    return N / 2 * 1e-6 * CHIPS[chip].ici


def a_line(chip, N):
    """latency_bound_below: latency_bound_line, latency_bound_doubled, latency_bound_as_line"""
    return N * 1e-6 * CHIPS[chip].ici_both


def _both(bytes, sizes, wraps, w1, hop):
    hops = sum(n // 2 if wraps else n - 1 for n in sizes)
    chips = math.prod(sizes)
    return hops * hop, (chips - 1) / chips * bytes / ((2 if wraps else 1) * len(sizes) * w1)


def latency_added(bytes, sizes, wraps, one_way_bandwidth, hop_time):
    """gather_and_limit: limit_summed"""
    a, b = _both(bytes, sizes, wraps, one_way_bandwidth, hop_time)
    return a + b, "latency" if a > b else "bandwidth"


def book_bandwidth(bytes, sizes, wraps, one_way_bandwidth, hop_time):
    """gather_and_limit: limit_whole_array"""
    a, _ = _both(bytes, sizes, wraps, one_way_bandwidth, hop_time)
    b = bytes / one_way_bandwidth / len(sizes) / (2 if wraps else 1)
    return (a, "latency") if a > b else (b, "bandwidth")


def shorter_way_on_a_line(bytes, sizes, wraps, one_way_bandwidth, hop_time):
    """gather_and_limit: limit_line_as_ring"""
    _, b = _both(bytes, sizes, wraps, one_way_bandwidth, hop_time)
    a = sum(n // 2 for n in sizes) * hop_time
    return (a, "latency") if a > b else (b, "bandwidth")


def longest_axis_counts(bytes, sizes, wraps, one_way_bandwidth, hop_time):
    """gather_and_limit: limit_longest_axis"""
    _, b = _both(bytes, sizes, wraps, one_way_bandwidth, hop_time)
    a = max(n // 2 if wraps else n - 1 for n in sizes) * hop_time
    return (a, "latency") if a > b else (b, "bandwidth")


def one_link_on_rings(bytes, sizes, wraps, one_way_bandwidth, hop_time):
    """gather_and_limit: limit_one_link_on_rings"""
    a, _ = _both(bytes, sizes, wraps, one_way_bandwidth, hop_time)
    n = math.prod(sizes)
    b = bytes * (n - 1) / n / (len(sizes) * one_way_bandwidth)
    return max((a, "latency"), (b, "bandwidth"))


def one_axis_of_links(bytes, sizes, wraps, one_way_bandwidth, hop_time):
    """gather_and_limit: limit_links_of_one_axis"""
    a, b = _both(bytes, sizes, wraps, one_way_bandwidth, hop_time)
    return max((a, "latency"), (b * len(sizes), "bandwidth"))


def chips_of_the_longest_axis(bytes, sizes, wraps, one_way_bandwidth, hop_time):
    """gather_and_limit: limit_one_long_axis"""
    _, b = _both(bytes, sizes, wraps, one_way_bandwidth, hop_time)
    n = math.prod(sizes)
    a = (n // 2 if wraps else n - 1) * hop_time
    return max((a, "latency"), (b, "bandwidth"))
