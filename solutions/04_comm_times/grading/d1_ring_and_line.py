"""Checks and misconceptions of D1."""

from jax.sharding import PartitionSpec as P

from d1_ring_and_line import (
    axis_collective_time,
    exercise,
    line_gather_time,
    line_reduce_time,
    line_scatter_time,
    ring_gather_time,
    ring_reduce_time,
    ring_scatter_time,
)
from grader.exercise import Scenario
from grader.expect import expect_outcomes
from grader.hardware import all_gather_time, all_reduce_time, latency, reduce_scatter_time

KINDS = ("all_gather", "reduce_scatter", "all_reduce")


def case(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """Return one set of arguments, by name."""
    return {
        "kind": kind, "bytes": bytes, "axis_size": axis_size, "one_way_bandwidth": one_way_bandwidth, "wraps": wraps
    }  # fmt: skip


def hidden_cases(rng):
    """Yield each collective on rings, lines and axes of one chip, with small and large arrays; then unknown collectives."""
    for kind in KINDS:
        for wrapped in (True, False):
            for size in (2, 3, 4, 5, 8, 16):
                megabytes, bandwidth = int(rng.integers(1, 500)), float(rng.integers(10, 200))
                yield case(kind, megabytes * 1_000_003, size, bandwidth * 1e9, wrapped)
            yield case(kind, int(rng.integers(1, 500)) * 1_000_003, 1, 4.5e10, wrapped)
            yield case(kind, int(rng.integers(101, 110)), 16, 4.5e10, wrapped)
    for kind in ("gather", "ALL_GATHER", "all_to_all", ""):
        for size in (1, 4):
            yield case(kind, 1_000_000, size, 4.5e10, True)


PUBLIC = [
    *(case(kind, 12_582_912, 4, 4.5e10, wrapped) for kind in KINDS for wrapped in (True, False)),
    *(case(kind, 7_000_000, 5, 9.0e10, wrapped) for kind in KINDS for wrapped in (True, False)),
    case("all_gather", 12_582_912, 2, 4.5e10, True),
    case("all_gather", 101, 16, 4.5e10, True),
    case("all_gather", 101, 16, 4.5e10, False),
    case("all_gather", 12_582_912, 1, 4.5e10, False),
    case("all_mixed", 12_582_912, 4, 4.5e10, True),
    case("all_mixed", 12_582_912, 1, 4.5e10, True),
]

times = exercise.cases(axis_collective_time, public=PUBLIC, hidden=hidden_cases)


@exercise.check(times, points=0.25, public=True)
def ring_gather_seconds(seen):
    """the all-gather's time on a ring"""
    expect_outcomes(seen, where=lambda a: a["kind"] == "all_gather" and a["wraps"] and a["axis_size"] > 1, rtol=1e-6)


@exercise.check(times, points=0.25, public=True)
def line_gather_seconds(seen):
    """the all-gather's time on a line"""
    expect_outcomes(
        seen, where=lambda a: a["kind"] == "all_gather" and not a["wraps"] and a["axis_size"] > 1, rtol=1e-6
    )


@exercise.check(times, points=0.25)
def scatter_seconds(seen):
    """the reduce-scatter's time, on rings and lines"""
    expect_outcomes(seen, where=lambda a: a["kind"] == "reduce_scatter" and a["axis_size"] > 1, rtol=1e-6)


@exercise.check(times, points=0.25)
def reduce_seconds(seen):
    """the all-reduce's time, on rings and lines"""
    expect_outcomes(seen, where=lambda a: a["kind"] == "all_reduce" and a["axis_size"] > 1, rtol=1e-6)


@exercise.check(times, points=0.25, public=True, after=ring_gather_seconds)
def lone_chip_seconds(seen):
    """on an axis of one chip nothing moves: 0 seconds"""
    expect_outcomes(seen, where=lambda a: a["kind"] in KINDS and a["axis_size"] == 1)


@exercise.check(times, points=0.25, public=True, after=ring_gather_seconds)
def unknown_kind_refused(seen):
    """an unknown collective raises ValueError"""
    expect_outcomes(seen, where=lambda a: a["kind"] not in KINDS)


def passes_of(kind):
    """Return the number of passes of a collective, or raise ValueError for an unknown collective."""
    if kind not in KINDS:
        raise ValueError(f"unknown collective {kind!r}")
    return 2 if kind == "all_reduce" else 1


BANDWIDTH_CHECKS = [ring_gather_seconds, line_gather_seconds, scatter_seconds, reduce_seconds]


@exercise.misconception(
    of=axis_collective_time,
    fails=[ring_gather_seconds, scatter_seconds, reduce_seconds],
    breaks="the all-gather's time on a ring",
)
def one_way_on_ring(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You used one direction of the links on the ring. Data flows both ways round at once, so W = 2·W1."""
    return passes_of(kind) * bytes * (axis_size - 1) / axis_size / one_way_bandwidth


@exercise.misconception(
    of=axis_collective_time,
    fails=[line_gather_seconds, scatter_seconds, reduce_seconds],
    breaks="the all-gather's time on a line",
)
def both_ways_on_line(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You did not use `wraps`. The last chip of a line has one neighbour, so it receives everything at W1."""
    return passes_of(kind) * bytes * (axis_size - 1) / axis_size / (2 * one_way_bandwidth)


@exercise.misconception(
    of=axis_collective_time, fails=BANDWIDTH_CHECKS, breaks="must receive the (N − 1)/N of the array"
)
def own_shard_sent_too(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You let each chip receive all of V. A chip already has its own shard, so (N-1)/N of V moves. On an axis of one chip nothing moves."""
    return passes_of(kind) * bytes / ((2 if wraps else 1) * one_way_bandwidth)


@exercise.misconception(
    of=axis_collective_time, fails=BANDWIDTH_CHECKS, breaks="must receive the (N − 1)/N of the array"
)
def fraction_upside_down(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You used N/(N-1). A chip already has its own shard, so it receives less than V: (N-1)/N of V."""
    seconds = axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps)
    return seconds * (axis_size / (axis_size - 1)) ** 2 if axis_size > 1 else seconds


@exercise.misconception(of=axis_collective_time, fails=lone_chip_seconds, breaks="on an axis of one chip nothing moves")
def lone_chip_sends(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You let a lone chip send its shard. With N = 1 no other chip receives it: the time is 0."""
    if axis_size == 1:
        return passes_of(kind) * bytes / ((2 if wraps else 1) * one_way_bandwidth)
    return axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps)


@exercise.misconception(
    of=axis_collective_time,
    fails=BANDWIDTH_CHECKS,
    breaks="V: bytes of the array that the chips of this axis gather or reduce, not of a shard",
)
def shard_for_array(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You divided by N once too often. `bytes` is the full array: each chip receives N-1 whole shards."""
    return axis_collective_time(kind, bytes / axis_size, axis_size, one_way_bandwidth, wraps)


@exercise.misconception(
    of=axis_collective_time, fails=reduce_seconds, breaks="the all-reduce's time, on rings and lines"
)
def reduce_counted_once(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You counted the all-reduce as one pass. An all-reduce is a reduce-scatter and then an all-gather."""
    return axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps) / passes_of(kind)


@exercise.misconception(of=axis_collective_time, fails=reduce_seconds)
def reduced_both_ways_on_line(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """Either you gave an all-reduce on a line the links of a ring, or you counted one pass of it. An all-reduce has two
    passes. In both passes the chip at an end has one link: W1, not W."""
    return axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps or kind == "all_reduce")


@exercise.misconception(
    of=axis_collective_time, fails=[scatter_seconds, reduce_seconds, ring_gather_seconds, line_gather_seconds]
)
def shards_of_whole_bytes(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You rounded the bytes of a shard to a whole number, so the time of a small array is wrong. Divide without
    rounding."""
    return axis_collective_time(kind, bytes // axis_size * axis_size, axis_size, one_way_bandwidth, wraps)


@exercise.misconception(
    of=axis_collective_time, fails=scatter_seconds, breaks="the reduce-scatter's time, on rings and lines"
)
def scatter_thought_cheaper(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You made the reduce-scatter cheaper than the all-gather. A reduce-scatter sends one partial sum per hop, as large as a shard."""
    seconds = axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps)
    return seconds / 2 if kind == "reduce_scatter" else seconds


@exercise.misconception(
    of=axis_collective_time,
    fails=[scatter_seconds, reduce_seconds],
    breaks="the reduce-scatter's time, on rings and lines",
)
def scatter_of_a_shard(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You counted only a shard in a reduce-scatter. Every chip starts with a partial sum of the whole array, so a reduce-scatter takes as long as an all-gather."""
    gather = axis_collective_time("all_gather", bytes, axis_size, one_way_bandwidth, wraps)
    if kind == "all_gather":
        return gather
    scatter = axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps) / passes_of(kind) / axis_size
    return scatter if kind == "reduce_scatter" else gather + scatter


@exercise.misconception(of=axis_collective_time, fails=scatter_seconds)
def scatter_result(kind, axis_size, **rest):
    """You computed the reduce-scatter from its result, one shard. Every chip starts with a partial sum of the whole array and receives N-1 parts of it, as in an all-gather."""
    right = axis_collective_time(kind, axis_size=axis_size, **rest)
    return right / (axis_size if kind == "reduce_scatter" else 1)


@exercise.misconception(form_of=scatter_result)
def scatter_one_part(kind, axis_size, **rest):
    """Like `scatter_result`, but the shard is not multiplied by (N-1)/N."""
    right = axis_collective_time(kind, axis_size=axis_size, **rest)
    return right / (max(axis_size - 1, 1) if kind == "reduce_scatter" else 1)


@exercise.misconception(
    of=axis_collective_time, fails=unknown_kind_refused, breaks="an unknown collective raises `ValueError`"
)
def unknown_as_gather(kind, **rest):
    """You took every unknown name for an all-gather. Raise ValueError for a name that is not one of the three collectives."""
    return axis_collective_time(kind if kind in KINDS else "all_gather", **rest)


@exercise.misconception(of=axis_collective_time, fails=[ring_gather_seconds, scatter_seconds, reduce_seconds])
def book_rule_on_rings(kind, bytes, axis_size, wraps, **rest):
    """You used the book's V/W on a ring. This function is exact: (N-1)/N of V moves, on rings too."""
    right = axis_collective_time(kind, bytes, axis_size, wraps=wraps, **rest)
    return right * axis_size / (axis_size - 1) if wraps and axis_size > 1 else right


@exercise.misconception(of=axis_collective_time, fails=BANDWIDTH_CHECKS)
def array_for_shard(axis_size, **rest):
    """You took `bytes` as one shard. `bytes` is V, the full array: a shard is V/N, and N-1 shards move."""
    return axis_size * axis_collective_time(axis_size=axis_size, **rest)


@exercise.misconception(of=axis_collective_time, fails=BANDWIDTH_CHECKS)
def one_shard_received(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You moved one shard. Each chip receives the N-1 shards of the other chips."""
    right = axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps)
    return right / max(axis_size - 1, 1)


@exercise.misconception(of=axis_collective_time, fails=BANDWIDTH_CHECKS)
def wraps_inverted(wraps, **rest):
    """You gave rings the links of a line, and lines the links of a ring. If `wraps` is True, a chip receives over two links. If `wraps` is False, the chip at an end receives over one link."""
    return axis_collective_time(wraps=not wraps, **rest)


@exercise.misconception(of=axis_collective_time, fails=BANDWIDTH_CHECKS)
def latency_added(axis_size, wraps, **rest):
    """You added a latency for each hop. This function returns the time of the bytes alone, without latency."""
    hops = axis_size // 2 if wraps else axis_size - 1
    return axis_collective_time(axis_size=axis_size, wraps=wraps, **rest) + 1e-6 * hops


@exercise.misconception(of=axis_collective_time, fails=[ring_gather_seconds, scatter_seconds, reduce_seconds])
def one_link_for_two_chips(axis_size, wraps, **rest):
    """You gave a ring of two chips one link. If `wraps` is True, two links join the two chips."""
    return axis_collective_time(axis_size=axis_size, wraps=wraps and axis_size > 2, **rest)


@exercise.misconception(of=axis_collective_time, fails=BANDWIDTH_CHECKS)
def microseconds(**call):
    """You returned microseconds. The function returns seconds."""
    return 1e6 * axis_collective_time(**call)


@exercise.misconception(of=axis_collective_time, fails=scatter_seconds)
def scatter_counted_twice(kind, **rest):
    """You counted the reduce-scatter as two passes. Only an all-reduce has two passes."""
    return axis_collective_time(kind, **rest) * (2 if kind == "reduce_scatter" else 1)


@exercise.misconception(of=axis_collective_time, fails=unknown_kind_refused)
def unknown_on_one_chip(kind, axis_size, **rest):
    """You returned 0 for an axis of one chip before you looked at `kind`. Raise ValueError for an unknown kind on such an axis too."""
    return 0.0 if axis_size == 1 else axis_collective_time(kind, axis_size=axis_size, **rest)


@exercise.misconception(of=axis_collective_time, fails=unknown_kind_refused)
def unknown_key(kind, **rest):
    """You raised KeyError for an unknown collective. Raise ValueError: test whether the table has the name before you use the name as a key."""
    if kind not in KINDS:
        raise KeyError(kind)
    return axis_collective_time(kind, **rest)


@exercise.misconception(of=ring_gather_time)
def ring_gather_one_way(chip, N, R, C):
    """Your answer is too large by a factor of two. On a ring shards travel both ways round at once (W = 2·W1), and an all-gather is one pass."""
    return 2 * ring_gather_time(chip=chip, N=N, R=R, C=C)


@exercise.misconception(of=ring_gather_time)
def ring_gather_two_bytes(chip, N, R, C):
    """Your answer is too small by a factor of two. A float32 has 4 bytes, and W already counts both directions."""
    return ring_gather_time(chip=chip, N=N, R=R, C=C) / 2


@exercise.misconception(of=ring_gather_time)
def ring_gather_elements(chip, N, R, C):
    """You counted elements, not bytes. Multiply by the size of the dtype."""
    return ring_gather_time(chip=chip, N=N, R=R, C=C) / 4


@exercise.misconception(of=ring_gather_time)
def ring_gather_shard(chip, N, R, C):
    """You took one chip's shard as V. V is the full array: each chip receives all the other shards too."""
    return ring_gather_time(chip=chip, N=N, R=R, C=C) / N


@exercise.misconception(of=ring_gather_time)
def ring_gather_exact(chip, N, R, C):
    """You used (N-1)/N of V, the least that must move. This question's model is V/W."""
    return all_gather_time(4 * R * C, N, chip, topology="ring", model="exact")


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_one_way(chip, X, Y, I, K):
    """Your answer is too large by a factor of two. Partial sums travel both ways round a ring at once (W = 2·W1). A reduce-scatter is one pass. A bfloat16 has 2 bytes."""
    return 2 * ring_scatter_time(chip=chip, X=X, Y=Y, I=I, K=K)


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_elements(chip, X, Y, I, K):
    """Your answer is too small by a factor of two. A bfloat16 has 2 bytes, and W already counts both directions."""
    return ring_scatter_time(chip=chip, X=X, Y=Y, I=I, K=K) / 2


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_whole_rows(chip, X, Y, I, K):
    """You left out y. y has already cut the array: each ring along x works on its own 1/Y of C."""
    return Y * ring_scatter_time(chip=chip, X=X, Y=Y, I=I, K=K)


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_shard(chip, X, Y, I, K):
    """You took the result's shard as V. V is the array before the scatter cuts it over x."""
    return ring_scatter_time(chip=chip, X=X, Y=Y, I=I, K=K) / X


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_one_shard(X, **rest):
    """You moved one shard of the result. Each chip receives X-1 parts of this size: one from each of the other chips."""
    return ring_scatter_time(X=X, **rest) / (X - 1)


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_book(chip, X, Y, I, K):
    """You used V/W. This question's model is exact: only (N-1)/N of V has to move."""
    return reduce_scatter_time(2 * I * K / Y, X, chip, topology="ring", model="book")


@exercise.misconception(of=ring_reduce_time)
def ring_reduce_one_way(chip, N, D, F):
    """Your answer is too large by a factor of two. Data flows both ways round a ring at once (W = 2·W1). An all-reduce is two passes. A bfloat16 has 2 bytes."""
    return 2 * ring_reduce_time(chip=chip, N=N, D=D, F=F)


@exercise.misconception(of=ring_reduce_time)
def ring_reduce_once(chip, N, D, F):
    """Your answer is too small by a factor of two. An all-reduce is a reduce-scatter and an all-gather, and a bfloat16 has two bytes."""
    return ring_reduce_time(chip=chip, N=N, D=D, F=F) / 2


@exercise.misconception(of=ring_reduce_time)
def ring_reduce_shard(chip, N, D, F):
    """You took 1/N of the array as V. Every chip starts with a partial sum of the whole array."""
    return ring_reduce_time(chip=chip, N=N, D=D, F=F) / N


@exercise.misconception(of=ring_reduce_time)
def ring_reduce_exact(chip, N, D, F):
    """You used (N-1)/N of V, the least that must move. This question's model is V/W."""
    return all_reduce_time(2 * D * F, N, chip, topology="ring", model="exact")


@exercise.misconception(of=line_gather_time)
def line_gather_wrapped(chip, X, Y, R, C):
    """You took y for a ring and used V/W. On this chip only an axis of 16 wraps around. So y is a line, and its last chip receives through one link."""
    return all_gather_time(2 * R * C, Y, chip, topology="ring", model="book")


@exercise.misconception(of=line_gather_time)
def line_gather_both_ways(chip, X, Y, R, C):
    """Your answer is too small by a factor of two. The last chip of a line receives from one side only, at W1, and a bfloat16 has 2 bytes."""
    return all_gather_time(2 * R * C, Y, chip, topology="ring", model="exact")


@exercise.misconception(of=line_gather_time)
def line_gather_all_of_it(chip, X, Y, R, C):
    """You used V/W1. The last chip already has its own shard: only N-1 shards pass its link."""
    return line_gather_time(chip=chip, X=X, Y=Y, R=R, C=C) * Y / (Y - 1)


@exercise.misconception(of=line_gather_time)
def line_gather_four_bytes(chip, X, Y, R, C):
    """Your answer is too large by a factor of two. A bfloat16 has 2 bytes, and an all-gather is one pass."""
    return 2 * line_gather_time(chip=chip, X=X, Y=Y, R=R, C=C)


@exercise.misconception(of=line_gather_time)
def line_gather_shard(chip, X, Y, R, C):
    """You took one chip's shard as V. V is the full array: each chip receives all the other shards too."""
    return line_gather_time(chip=chip, X=X, Y=Y, R=R, C=C) / Y


@exercise.misconception(of=line_scatter_time)
def line_scatter_wrapped(chip, I, K):
    """Either you took z for a ring and used V/W, or your factor (N-1)/N counts the chips along x. An axis of 4 wraps around only in a slice of full 4x4x4 cubes, and z has 4 chips."""
    return reduce_scatter_time(2 * I * K / 4, 4, chip, topology="ring", model="book")


@exercise.misconception(of=line_scatter_time)
def line_scatter_both_ways(chip, I, K):
    """Your answer is too small by a factor of two. At the end of a line data flows on one side only, at W1. A bfloat16 has 2 bytes, and only y cuts C."""
    return reduce_scatter_time(2 * I * K / 4, 4, chip, topology="ring", model="exact")


@exercise.misconception(of=line_scatter_time)
def line_scatter_all_of_it(**params):
    """You used V/W1. The chip at the end keeps its own part: N-1 of the N parts pass its link."""
    return line_scatter_time(**params) * 4 / 3


@exercise.misconception(of=line_scatter_time)
def line_scatter_whole_rows(**params):
    """You left out y. y has already cut the array: each line along z works on its own quarter of C."""
    return 4 * line_scatter_time(**params)


@exercise.misconception(of=line_scatter_time)
def line_scatter_shard(**params):
    """You took the result's shard as V. V is the array before the scatter cuts it over z."""
    return line_scatter_time(**params) / 4


@exercise.misconception(of=line_scatter_time)
def line_scatter_one_shard(**params):
    """You moved one shard of the result. The chip at the end receives three parts of this size: one from each of the other chips along z."""
    return line_scatter_time(**params) / 3


@exercise.misconception(of=line_reduce_time)
def line_reduce_wrapped(chip, D, F):
    """You took y for a ring and used 2·V/W. On this chip only an axis of 16 wraps around, so 8 chips in a row are a line."""
    return all_reduce_time(4 * D * F, 8, chip, topology="ring", model="book")


@exercise.misconception(of=line_reduce_time)
def line_reduce_half(chip, D, F):
    """Your answer is too small by a factor of two. An all-reduce passes the line twice. The chip at the end receives at W1, not W. A float32 has 4 bytes."""
    return line_reduce_time(chip=chip, D=D, F=F) / 2


@exercise.misconception(of=line_reduce_time)
def line_reduce_all_of_it(chip, D, F):
    """You used 2·V/W1. In each phase only N-1 of the N parts pass the last link."""
    return line_reduce_time(chip=chip, D=D, F=F) * 8 / 7


@exercise.misconception(of=line_reduce_time)
def line_reduce_elements(chip, D, F):
    """Your answer is too small by a factor of four. Either you counted elements or you counted one pass of a ring. A float32 has 4 bytes. y is a line. An all-reduce is two passes."""
    return line_reduce_time(chip=chip, D=D, F=F) / 4


@exercise.misconception(of=line_reduce_time)
def line_reduce_shard(chip, D, F):
    """You took 1/N of the array as V. Every chip starts with a partial sum of the whole array."""
    return line_reduce_time(chip=chip, D=D, F=F) / 8


@exercise.misconception(of=ring_gather_time)
def ring_gather_as_line(chip, N, R, C):
    """You used the rule of a line, (N-1)/N · V/W1. This axis is a ring, and the model is V/W."""
    return all_gather_time(4 * R * C, N, chip, topology="line", model="exact")


@exercise.misconception(of=ring_gather_time)
def ring_gather_array_as_shard(N, **rest):
    """You took the whole array as one shard and counted N-1 of them. A shard is 1/N of the array."""
    return (N - 1) * ring_gather_time(N=N, **rest)


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_cut_by_x(X, Y, **rest):
    """You divided by X to get V. Before the reduce-scatter along x, only y cuts the array."""
    return Y / X * ring_scatter_time(X=X, Y=Y, **rest)


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_part_of_y(X, Y, **rest):
    """Your factor (N-1)/N counts the chips along y. N is the number of chips along x, the axis of the collective."""
    return (Y - 1) / Y * X / (X - 1) * ring_scatter_time(X=X, Y=Y, **rest)


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_axes_swapped(X, Y, **rest):
    """You swapped the axes. The collective runs along x, so N counts the chips along x. y cuts the array."""
    return ring_scatter_time(X=Y, Y=X, **rest)


@exercise.misconception(of=ring_reduce_time)
def ring_reduce_as_line(chip, N, D, F):
    """You used the rule of a line, 2 · (N-1)/N · V/W1. This axis is a ring, and the model is 2 · V/W."""
    return all_reduce_time(2 * D * F, N, chip, topology="line", model="exact")


@exercise.misconception(of=line_gather_time)
def line_gather_along_x(X, Y, **rest):
    """Your factor (N-1)/N counts the chips along x. N is the number of chips along y, the axis of the all-gather."""
    return (X - 1) / X * Y / (Y - 1) * line_gather_time(X=X, Y=Y, **rest)


@exercise.misconception(of=line_gather_time)
def line_gather_cut_by_x(X, **rest):
    """You divided by the chips along x. No axis but y cuts A, so every line along y gathers all of it."""
    return line_gather_time(X=X, **rest) / X


@exercise.misconception(of=line_gather_time)
def line_gather_array_as_shard(Y, **rest):
    """You took the whole array as one shard and counted N-1 of them. A shard is 1/N of the array."""
    return Y * line_gather_time(Y=Y, **rest)


@exercise.misconception(of=line_scatter_time)
def line_scatter_doubled(**params):
    """Your answer is too large by a factor of two. Either you left out y and took z for a ring, or you counted two passes or 4 bytes. A reduce-scatter is one pass, and a bfloat16 has 2 bytes."""
    return 2 * line_scatter_time(**params)


@exercise.misconception(of=line_reduce_time)
def line_reduce_doubled(**params):
    """Your answer is too large by a factor of two. An all-reduce is two passes. A float32 has 4 bytes. W1 is the link's rate in one direction."""
    return 2 * line_reduce_time(**params)


@exercise.misconception(of=line_reduce_time)
def line_reduce_along_x(chip, D, F):
    """Your factor (N-1)/N counts the chips along x. N is the number of chips along y, the axis of the all-reduce."""
    return all_reduce_time(4 * D * F, 16, chip, topology="line", model="exact")


@exercise.misconception(of=line_reduce_time)
def line_reduce_over_x(**params):
    """You reduced over x, a ring of 16 chips. The all-reduce runs over y, a line of 8."""
    return (15 / 16) / (2 * 7 / 8) * line_reduce_time(**params)


@exercise.misconception(of=line_reduce_time)
def line_reduce_cut_by_x(**params):
    """You divided by the chips along x. No axis cuts this gradient, so every line along y reduces all of it."""
    return line_reduce_time(**params) / 16


PUBLISHED = [373, 377, 559, 680, 746, 756]  # answers to pop quiz 2 of the book, by the book and by its readers

exercise.scenario(
    ring_gather_time,
    lambda chip, N, R, C: Scenario(chip=chip, rings=(N,), mesh={"x": N}, arrays=[((R, C), P("x"))], least=latency(N)),
)
exercise.scenario(
    ring_scatter_time,
    lambda chip, X, Y, I, K: Scenario(
        chip=chip, rings=(X, Y), mesh={"x": X, "y": Y}, arrays=[((I, K), P("y", "x"))], least=latency(X)
    ),
)
exercise.scenario(
    ring_reduce_time,
    lambda chip, N, D, F: Scenario(
        chip=chip, rings=(N,), mesh={"x": N}, arrays=[((D, F), P("x"))], least=2 * latency(N)
    ),
)
exercise.scenario(
    line_gather_time,
    lambda chip, X, Y, R, C: Scenario(
        chip=chip, slice=(X, Y), lines=(Y,), mesh={"y": Y}, arrays=[((R, C), P("y"))], least=latency(Y, "line")
    ),
    published=PUBLISHED,
)
exercise.scenario(
    line_scatter_time,
    lambda chip, I, K: Scenario(
        chip=chip, slice=(2, 4, 4), lines=(4,), mesh={"y": 4, "z": 4},
        arrays=[((I, K), P("y", "z"))], least=latency(4, "line"),
    ),
)  # fmt: skip
exercise.scenario(
    line_reduce_time,
    lambda chip, D, F: Scenario(
        chip=chip, slice=(16, 8), lines=(8,), mesh={"y": 8}, arrays=[((D, F), P("y"))], least=2 * latency(8, "line")
    ),
)
