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


@exercise.misconception(
    of=bandwidths, fails=bandwidths_cut, breaks="reduce-scatter and all-gather | algbw 401, busbw 301 GB/s"
)
def bandwidths_of_input(bytes_in, bytes_out, **rest):
    """You took an all-gather's input as S. Each rank's part reaches n-1 other ranks. S is the whole array, the output."""
    return bandwidths(bytes_in=bytes_in, bytes_out=bytes_in, **rest)


@exercise.misconception(
    of=bandwidths, fails=[bandwidths_reduced, bandwidths_cut, bandwidths_others], breaks="algbw = S / t"
)
def bandwidths_factor_in_algbw(**call):
    """You multiplied algbw by the factor too. Algorithm bandwidth is S / t. Only bus bandwidth counts the traffic on the wires."""
    _, busbw = bandwidths(**call)
    return busbw * (call["ranks"] - 1) / call["ranks"], busbw


@exercise.misconception(form_of=bandwidths_factor_in_algbw)
def bandwidths_both_of_the_bus(**call):
    """You returned the bus bandwidth twice. Algorithm bandwidth is S / t, without the factor."""
    return (bandwidths(**call)[1],) * 2


@exercise.misconception(
    of=bandwidths,
    fails=[bandwidths_reduced, bandwidths_cut, bandwidths_others],
    breaks="the bytes that a rank must really send, divided by the time",
)
def bandwidths_alike(**call):
    """Your two bandwidths are equal. busbw = algbw · factor counts the bytes that a rank sends: use the table's factors."""
    return (bandwidths(**call)[0],) * 2


@exercise.misconception(of=bandwidths, fails=bandwidths_reduced, breaks="all-reduce | algbw 198, busbw 297 GB/s")
def bandwidths_reduced_once(kind, **rest):
    """You counted the all-reduce as one pass. A rank sends every part twice, once to be added and once as a sum: 2·(n-1)/n."""
    return bandwidths(kind="all_gather" if kind == "all_reduce" else kind, **rest)


@exercise.misconception(of=bandwidths, fails=bandwidths_others, breaks="all-to-all, broadcast and reduce")
def bandwidths_root_like_ring(kind, **rest):
    """You gave broadcast or reduce the factor (n-1)/n. In a broadcast the root sends the whole array. In a reduce the root receives the whole array. The factor is 1."""
    return bandwidths(kind="all_gather" if kind in ("broadcast", "reduce") else kind, **rest)


@exercise.misconception(form_of=bandwidths_root_like_ring)
def bandwidths_broadcast_like_ring(kind, **rest):
    """You gave the broadcast the factor (n-1)/n. The root sends the whole array: factor 1."""
    return bandwidths(kind="all_gather" if kind == "broadcast" else kind, **rest)


@exercise.misconception(form_of=bandwidths_root_like_ring)
def bandwidths_reduce_like_ring(kind, **rest):
    """You gave the reduce the factor (n-1)/n. The root receives the whole array: factor 1."""
    return bandwidths(kind="all_gather" if kind == "reduce" else kind, **rest)


def factored(right, factors, kind, ranks, **rest):
    """Return the bandwidths of ``right``, with ``factors[kind](n)`` in place of its factor."""
    algbw, busbw = right(kind=kind, ranks=ranks, **rest)
    return algbw, algbw * factors[kind](ranks) if kind in factors else busbw


@exercise.misconception(of=bandwidths, fails=bandwidths_reduced)
def bandwidths_reduced_doubled(**call):
    """You gave the all-reduce the factor 2. An all-reduce has two passes. In each pass a rank sends n-1 of its n parts, so the factor is 2·(n-1)/n."""
    return factored(bandwidths, {"all_reduce": lambda n: 2}, **call)


@exercise.misconception(of=bandwidths, fails=bandwidths_cut)
def bandwidths_scattered_whole(**call):
    """You gave the reduce-scatter the factor 1. A rank keeps its own part: (n-1)/n."""
    return factored(bandwidths, {"reduce_scatter": lambda n: 1}, **call)


@exercise.misconception(of=bandwidths, fails=bandwidths_cut)
def bandwidths_gathered_parts(**call):
    """You gave the all-gather the factor n-1. A rank sends n-1 parts of S/n bytes: (n-1)/n of S."""
    return factored(bandwidths, {"all_gather": lambda n: n - 1}, **call)


@exercise.misconception(of=bandwidths, fails=[bandwidths_cut, bandwidths_others])
def bandwidths_share_upside_down(**call):
    """You used n/(n-1). A rank sends all parts but its own: (n-1)/n of S."""
    kinds = ("reduce_scatter", "all_gather", "all_to_all")
    return factored(bandwidths, dict.fromkeys(kinds, lambda n: n / (n - 1)), **call)


@exercise.misconception(of=bandwidths, fails=bandwidths_reduced)
def bandwidths_reduced_arrays(kind, ranks, bytes_in, bytes_out, **rest):
    """You multiplied S of the all-reduce by n. S is the array that each rank holds, not the arrays of all ranks."""
    more = ranks if kind == "all_reduce" else 1
    return bandwidths(kind=kind, ranks=ranks, bytes_in=more * bytes_in, bytes_out=more * bytes_out, **rest)


@exercise.misconception(of=bandwidths, fails=bandwidths_others)
def bandwidths_exchanged_both(kind, bytes_in, bytes_out, **rest):
    """You added input and output of the all-to-all. S is one rank's buffer."""
    more = 2 if kind == "all_to_all" else 1
    return bandwidths(kind=kind, bytes_in=more * bytes_in, bytes_out=more * bytes_out, **rest)


@exercise.misconception(of=bandwidths, fails=bandwidths_others)
def bandwidths_exchanged_once(**call):
    """You gave the all-to-all the factor (n-1)/n². S is one rank's buffer, and a rank sends (n-1)/n of it."""
    return factored(bandwidths, {"all_to_all": lambda n: (n - 1) / n**2}, **call)


@exercise.misconception(of=bandwidths, fails=bandwidths_others)
def bandwidths_exchanged_whole(**call):
    """You gave the all-to-all the factor 1. A rank keeps its own part: (n-1)/n."""
    return factored(bandwidths, {"all_to_all": lambda n: 1}, **call)


@exercise.misconception(of=bandwidths, fails=[bandwidths_reduced, bandwidths_cut, bandwidths_others])
def bandwidths_swapped(**call):
    """You swapped the two bandwidths. Return `(algbw, busbw)`."""
    return bandwidths(**call)[::-1]


@exercise.misconception(of=bandwidths, fails=[bandwidths_reduced, bandwidths_cut, bandwidths_others])
def bandwidths_bus_only(**call):
    """You returned one number. Return both bandwidths, `(algbw, busbw)`."""
    return bandwidths(**call)[1]


@exercise.misconception(of=bandwidths, fails=[bandwidths_reduced, bandwidths_cut, bandwidths_others])
def bandwidths_upside_down(**call):
    """You divided by the factor. A rank sends the factor times S, so busbw = algbw · factor."""
    algbw, busbw = bandwidths(**call)
    return algbw, algbw**2 / busbw


@exercise.misconception(of=bandwidths, fails=[bandwidths_reduced, bandwidths_cut, bandwidths_others])
def bandwidths_in_gigabytes(**call):
    """You returned GB/s. The function returns bytes/s."""
    return tuple(rate / 1e9 for rate in bandwidths(**call))


@exercise.misconception(of=bandwidths, fails=[bandwidths_reduced, bandwidths_cut, bandwidths_others])
def bandwidths_in_and_out(bytes_in, bytes_out, **rest):
    """You added input and output. S is the whole array, the larger of the two."""
    return bandwidths(bytes_in=bytes_in + bytes_out, bytes_out=0, **rest)


@exercise.misconception(of=bandwidths, fails=bandwidths_cut)
def bandwidths_smaller(bytes_in, bytes_out, **rest):
    """You used the smaller of input and output. S is the whole array, the larger of the two."""
    return bandwidths(bytes_in=min(bytes_in, bytes_out), bytes_out=0, **rest)


@exercise.misconception(of=bandwidths, fails=bandwidths_others)
def bandwidths_exchange_of_all(kind, ranks, **rest):
    """You multiplied an all-to-all's buffer by the ranks. S is one rank's buffer."""
    times = ranks if kind == "all_to_all" else 1
    return tuple(times * rate for rate in bandwidths(kind=kind, ranks=ranks, **rest))


@exercise.misconception(of=reduce_bus_bandwidth)
def reduce_algorithm_bandwidth(n, MB, ms):
    """Your answer is the algorithm bandwidth, S / t. A rank sends 2·(n-1)/n times S."""
    return MB * 1e6 / (ms * 1e-3)


@exercise.misconception(of=reduce_bus_bandwidth)
def reduce_bus_one_pass(**params):
    """You counted one pass. An all-reduce sends every part twice, once to be added and once as a sum."""
    return reduce_bus_bandwidth(**params) / 2


@exercise.misconception(of=reduce_bus_bandwidth)
def reduce_bus_all_of_it(n, MB, ms):
    """You doubled algbw. In each of the two passes a rank sends n-1 of its n parts, so the factor is 2·(n-1)/n."""
    return 2 * MB * 1e6 / (ms * 1e-3)


@exercise.misconception(of=scatter_from_bus_time)
def scatter_from_output(n, **rest):
    """You took one GPU's result as S. S is the whole array, n times as large."""
    return scatter_from_bus_time(n=n, **rest) / n


@exercise.misconception(of=scatter_from_bus_time)
def scatter_from_algorithm(n, **rest):
    """You divided S by busbw. The quotient is not the time, because a GPU sends (n-1)/n of S."""
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
    """Your answer is the algorithm bandwidth. For the bus bandwidth, each rank sends (n-1)/n of S."""
    return puzzle_bus_bandwidth(n=n, **rest) * n / (n - 1)


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_half_of_reduce(n, ar, percent):
    """You halved the all-reduce's number because a reduce-scatter is half of an all-reduce. A reduce-scatter sends half the bytes in half the time, so the bandwidth is about the same."""
    return ar / 2 * 1e9


@exercise.misconception(of=reduce_bus_bandwidth)
def reduce_bus_upside_down(n, **rest):
    """You divided by the factor. A rank sends the factor times S: multiply."""
    return reduce_bus_bandwidth(n=n, **rest) / (2 * (n - 1) / n) ** 2


@exercise.misconception(of=reduce_bus_bandwidth)
def reduce_bus_of_all(n, **rest):
    """You multiplied by n. S is the array that every GPU holds, and the factor counts what one GPU sends."""
    return n * reduce_bus_bandwidth(n=n, **rest)


@exercise.misconception(of=scatter_from_bus_time)
def scatter_output_over_bus(n, **rest):
    """You divided one GPU's result by busbw. A GPU sends n-1 parts of this size."""
    return scatter_from_bus_time(n=n, **rest) / (n - 1)


@exercise.misconception(of=scatter_from_bus_time)
def scatter_as_reduce(**params):
    """Your answer is too large by a factor of two. A reduce-scatter is one pass: its factor is (n-1)/n."""
    return 2 * scatter_from_bus_time(**params)


@exercise.misconception(of=scatter_from_bus_time)
def scatter_of_a_part(n, **rest):
    """You divided by n. Each GPU keeps the part that the question names, so the whole array is n times as large."""
    return scatter_from_bus_time(n=n, **rest) / n**2


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_as_reduce(n, ar, percent):
    """Your answer is the all-reduce's bus bandwidth. The two are similar, not equal: compute from the reduce-scatter's printed number."""
    return ar * 1e9


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_factor_taken_out(n, **rest):
    """You divided the printed number by (n-1)/n. The number needs this factor, but it counts only 1/n of S: multiply by n."""
    return puzzle_bus_bandwidth(n=n, **rest) / (n - 1)


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_factor_twice(n, **rest):
    """You multiplied the printed number by (n-1)/n. The printed number includes this factor already, but counts only 1/n of S: multiply by n."""
    return puzzle_bus_bandwidth(n=n, **rest) * (n - 1) / n**2


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_doubled(**params):
    """Your answer is too large by a factor of two. Only an all-reduce has the factor 2·(n-1)/n."""
    return 2 * puzzle_bus_bandwidth(**params)


EGRESS = GPUS["H100"].egress
exercise.scenario(reduce_bus_bandwidth, lambda **_: Scenario(most=EGRESS), published=[277, 297])
exercise.scenario(
    scatter_from_bus_time, lambda n, MB, busbw: Scenario(least=(n - 1) * MB * 1e6 / EGRESS), published=[3.92, 4.06]
)
exercise.scenario(puzzle_bus_bandwidth, lambda **_: Scenario(most=EGRESS), published=[70, 277, 280, 297])
