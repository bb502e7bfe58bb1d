"""Misconceptions of D7."""

from d7_bus_bandwidth import (
    bandwidths,
    bandwidths_cut,
    bandwidths_others,
    bandwidths_reduced,
    exercise,
    puzzle_bus_bandwidth,
    reduce_bus_bandwidth,
    scatter_from_bus_time,
)
from grader.exercise import Scenario
from grader.hardware import GPUS


@exercise.misconception(of=bandwidths, fails=bandwidths_cut, breaks="reduce-scatter and all-gather")
def bandwidths_of_output(bytes_in, bytes_out, **rest):
    """You took a reduce-scatter's output as S. Each rank sends n-1 times its output. S is the whole array, the input."""
    return bandwidths(bytes_in=bytes_out, bytes_out=bytes_out, **rest)


@exercise.misconception(of=bandwidths, fails=bandwidths_cut, breaks="reduce-scatter and all-gather | 401 and 301 GB/s")
def bandwidths_of_input(bytes_in, bytes_out, **rest):
    """You took an all-gather's input as S. Each rank's part reaches n-1 others. S is the whole array, the output."""
    return bandwidths(bytes_in=bytes_in, bytes_out=bytes_in, **rest)


@exercise.misconception(
    of=bandwidths, fails=[bandwidths_reduced, bandwidths_cut, bandwidths_others], breaks="algbw = S / t"
)
def bandwidths_factor_in_algbw(**call):
    """You multiplied algbw by the factor too. Algorithm bandwidth is S / t. Only bus bandwidth counts the traffic on the wires."""
    _, busbw = bandwidths(**call)
    return busbw * (call["ranks"] - 1) / call["ranks"], busbw


@exercise.misconception(
    of=bandwidths,
    fails=[bandwidths_reduced, bandwidths_cut, bandwidths_others],
    breaks="the bytes that a rank must really send, divided by the time",
)
def bandwidths_alike(**call):
    """Your two bandwidths are equal. busbw = algbw · factor counts the bytes that a rank sends: use the table's factors."""
    return (bandwidths(**call)[0],) * 2


@exercise.misconception(of=bandwidths, fails=bandwidths_reduced, breaks="all-reduce | 198 and 297 GB/s")
def bandwidths_reduced_once(kind, **rest):
    """You counted the all-reduce as one pass. A rank sends every part twice, once to be added and once as a sum: 2·(n-1)/n."""
    return bandwidths(kind="all_gather" if kind == "all_reduce" else kind, **rest)


@exercise.misconception(of=bandwidths, fails=bandwidths_others, breaks="all-to-all, broadcast and reduce")
def bandwidths_root_like_ring(kind, **rest):
    """You gave broadcast or reduce the factor (n-1)/n. The whole array has to leave the root, or reach it: factor 1."""
    return bandwidths(kind="all_gather" if kind in ("broadcast", "reduce") else kind, **rest)


@exercise.misconception(of=reduce_bus_bandwidth)
def reduce_algorithm_bandwidth(n, MB, ms):
    """That is the algorithm bandwidth, S / t. A rank sends 2·(n-1)/n times S."""
    return MB * 1e6 / (ms * 1e-3)


@exercise.misconception(of=reduce_bus_bandwidth)
def reduce_bus_one_pass(**params):
    """You counted one pass. An all-reduce sends every part twice, once to be added and once as a sum."""
    return reduce_bus_bandwidth(**params) / 2


@exercise.misconception(of=reduce_bus_bandwidth)
def reduce_bus_all_of_it(n, MB, ms):
    """You doubled algbw. In each pass a rank keeps one of n parts: 2·(n-1)/n."""
    return 2 * MB * 1e6 / (ms * 1e-3)


@exercise.misconception(of=scatter_from_bus_time)
def scatter_from_output(n, **rest):
    """You took one GPU's result as S. S is the whole array, n times as large."""
    return scatter_from_bus_time(n=n, **rest) / n


@exercise.misconception(of=scatter_from_bus_time)
def scatter_from_algorithm(n, **rest):
    """You divided S by busbw. That is not the time, because a GPU sends (n-1)/n of S."""
    return scatter_from_bus_time(n=n, **rest) * n / (n - 1)


@exercise.misconception(of=scatter_from_bus_time)
def scatter_upside_down(n, **rest):
    """You inverted the factor. t = S/algbw, and algbw = busbw · n/(n-1)."""
    return scatter_from_bus_time(n=n, **rest) * (n / (n - 1)) ** 2


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_as_printed(n, **rest):
    """You used the benchmark's figure as printed. A rank sends n-1 times its output, not (n-1)/n times."""
    return puzzle_bus_bandwidth(n=n, **rest) / n


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_without_own(n, **rest):
    """You multiplied by n-1. The printed number already includes a factor (n-1)/n."""
    return puzzle_bus_bandwidth(n=n, **rest) * (n - 1) / n


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_algorithm_bandwidth(n, **rest):
    """That is the algorithm bandwidth. For the bus bandwidth, each rank sends (n-1)/n of S."""
    return puzzle_bus_bandwidth(n=n, **rest) * n / (n - 1)


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_half_of_reduce(n, ar, percent):
    """You halved the all-reduce's number because a reduce-scatter is half of it. It sends half the bytes in half the time: about the same bandwidth."""
    return ar / 2 * 1e9


EGRESS = GPUS["H100"].egress
exercise.scenario(reduce_bus_bandwidth, lambda **_: Scenario(most=EGRESS), published=[277, 297])
exercise.scenario(
    scatter_from_bus_time, lambda n, MB, busbw: Scenario(least=(n - 1) * MB * 1e6 / EGRESS), published=[3.92, 4.06]
)
exercise.scenario(puzzle_bus_bandwidth, lambda **_: Scenario(most=EGRESS), published=[70, 277, 280, 297])
