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
    """Return every kind on rings and lines, even and odd, one lone chip of each, and names that are not collectives."""
    for kind in KINDS:
        for wrapped in (True, False):
            for size in (2, 3, 4, 5, 8, 16):
                megabytes, bandwidth = int(rng.integers(1, 500)), float(rng.integers(10, 200))
                yield case(kind, megabytes * 1_000_003, size, bandwidth * 1e9, wrapped)
            yield case(kind, int(rng.integers(1, 500)) * 1_000_003, 1, 4.5e10, wrapped)
    for kind in ("gather", "ALL_GATHER", "all_to_all", ""):
        yield case(kind, 1_000_000, 4, 4.5e10, True)


PUBLIC = [
    *(case(kind, 12_582_912, 4, 4.5e10, wrapped) for kind in KINDS for wrapped in (True, False)),
    *(case(kind, 7_000_000, 5, 9.0e10, wrapped) for kind in KINDS for wrapped in (True, False)),
    case("all_gather", 12_582_912, 1, 4.5e10, False),
    case("all_mixed", 12_582_912, 4, 4.5e10, True),
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
    """Return how often the bytes go round, or raise ValueError for an unknown collective."""
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
    """You let each chip receive all of V. It already has its own shard, so (N-1)/N of V moves. On an axis of 1 nothing moves."""
    return passes_of(kind) * bytes / ((2 if wraps else 1) * one_way_bandwidth)


@exercise.misconception(of=axis_collective_time, fails=lone_chip_seconds, breaks="on an axis of one chip nothing moves")
def lone_chip_sends(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You let a lone chip send its shard. With N = 1 no other chip receives it: the time is 0."""
    if axis_size == 1:
        return passes_of(kind) * bytes / ((2 if wraps else 1) * one_way_bandwidth)
    return axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps)


@exercise.misconception(
    of=axis_collective_time, fails=BANDWIDTH_CHECKS, breaks="V: bytes of the full array over this axis, not of a shard"
)
def shard_for_array(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You divided by N once too often. `bytes` is the full array: each chip receives N-1 whole shards."""
    return axis_collective_time(kind, bytes / axis_size, axis_size, one_way_bandwidth, wraps)


@exercise.misconception(
    of=axis_collective_time, fails=reduce_seconds, breaks="the all-reduce's time, on rings and lines"
)
def reduce_counted_once(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You counted the all-reduce as one pass. It is a reduce-scatter and then an all-gather."""
    return axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps) / passes_of(kind)


@exercise.misconception(
    of=axis_collective_time, fails=scatter_seconds, breaks="the reduce-scatter's time, on rings and lines"
)
def scatter_thought_cheaper(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """You made the reduce-scatter cheaper than the all-gather. It sends one partial sum per hop, as large as a shard."""
    seconds = axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps)
    return seconds / 2 if kind == "reduce_scatter" else seconds


@exercise.misconception(
    of=axis_collective_time, fails=unknown_kind_refused, breaks="an unknown collective raises `ValueError`"
)
def unknown_as_gather(kind, **rest):
    """You took every other name for an all-gather. Raise ValueError for a name that is none of the three."""
    return axis_collective_time(kind if kind in KINDS else "all_gather", **rest)


@exercise.misconception(of=ring_gather_time)
def ring_gather_one_way(chip, N, R, C):
    """You used one direction of the link. On a ring shards travel both ways round at once, so divide by W = 2·W1."""
    return 2 * ring_gather_time(chip=chip, N=N, R=R, C=C)


@exercise.misconception(of=ring_gather_time)
def ring_gather_two_bytes(chip, N, R, C):
    """You counted 2 bytes per element. The array is float32: 4 bytes each."""
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
    """You used one direction of the link. On a ring partial sums travel both ways round at once, so divide by W = 2·W1."""
    return 2 * ring_scatter_time(chip=chip, X=X, Y=Y, I=I, K=K)


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_elements(chip, X, Y, I, K):
    """You counted one byte per element. A bfloat16 has two."""
    return ring_scatter_time(chip=chip, X=X, Y=Y, I=I, K=K) / 2


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_whole_rows(chip, X, Y, I, K):
    """You left out y. It has already cut the array: each ring along x works on its own 1/Y of C."""
    return Y * ring_scatter_time(chip=chip, X=X, Y=Y, I=I, K=K)


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_shard(chip, X, Y, I, K):
    """You took the result's shard as V. V is the array before the scatter cuts it over x."""
    return ring_scatter_time(chip=chip, X=X, Y=Y, I=I, K=K) / X


@exercise.misconception(of=ring_scatter_time)
def ring_scatter_book(chip, X, Y, I, K):
    """You used V/W. This question's model is exact: only (N-1)/N of V has to move."""
    return reduce_scatter_time(2 * I * K / Y, X, chip, topology="ring", model="book")


@exercise.misconception(of=ring_reduce_time)
def ring_reduce_one_way(chip, N, D, F):
    """You used one direction of the link. On a ring data flows both ways round at once, so divide by W = 2·W1."""
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
    """You used both directions of the link on a line. The last chip receives from one side only, so divide by W1."""
    return all_gather_time(2 * R * C, Y, chip, topology="ring", model="exact")


@exercise.misconception(of=line_gather_time)
def line_gather_all_of_it(chip, X, Y, R, C):
    """You used V/W1. The last chip already has its own shard: N-1 shards pass its link, not N."""
    return line_gather_time(chip=chip, X=X, Y=Y, R=R, C=C) * Y / (Y - 1)


@exercise.misconception(of=line_gather_time)
def line_gather_four_bytes(chip, X, Y, R, C):
    """You counted 4 bytes per element. A bfloat16 has two."""
    return 2 * line_gather_time(chip=chip, X=X, Y=Y, R=R, C=C)


@exercise.misconception(of=line_gather_time)
def line_gather_shard(chip, X, Y, R, C):
    """You took one chip's shard as V. V is the full array: each chip receives all the other shards too."""
    return line_gather_time(chip=chip, X=X, Y=Y, R=R, C=C) / Y


@exercise.misconception(of=line_scatter_time)
def line_scatter_wrapped(chip, slice, I, K):
    """You took z for a ring and used V/W. An axis of 4 wraps around only in a slice of full 4x4x4 cubes, and this slice is not one."""
    return reduce_scatter_time(2 * I * K / 2, 4, chip, topology="ring", model="book")


@exercise.misconception(of=line_scatter_time)
def line_scatter_both_ways(chip, slice, I, K):
    """You used both directions of the link on a line. At its end data flows on one side only, so divide by W1. Also check that you counted 2 bytes per bfloat16."""
    return reduce_scatter_time(2 * I * K / 2, 4, chip, topology="ring", model="exact")


@exercise.misconception(of=line_scatter_time)
def line_scatter_all_of_it(chip, slice, I, K):
    """You used V/W1. The chip at the end keeps its own part: N-1 of the N parts pass its link."""
    return line_scatter_time(chip=chip, slice=slice, I=I, K=K) * 4 / 3


@exercise.misconception(of=line_scatter_time)
def line_scatter_whole_rows(chip, slice, I, K):
    """You left out x. It has already cut the array: each line along z works on its own half of C."""
    return 2 * line_scatter_time(chip=chip, slice=slice, I=I, K=K)


@exercise.misconception(of=line_scatter_time)
def line_scatter_shard(chip, slice, I, K):
    """You took the result's shard as V. V is the array before the scatter cuts it over z."""
    return line_scatter_time(chip=chip, slice=slice, I=I, K=K) / 4


@exercise.misconception(of=line_reduce_time)
def line_reduce_wrapped(chip, D, F):
    """You took y for a ring and used 2·V/W. On this chip only an axis of 16 wraps around, so 8 chips in a row are a line."""
    return all_reduce_time(4 * D * F, 8, chip, topology="ring", model="book")


@exercise.misconception(of=line_reduce_time)
def line_reduce_half(chip, D, F):
    """Your answer is too small by a factor of two. An all-reduce passes the line twice (reduce-scatter, all-gather), and the chip at the end receives at W1, not W."""
    return line_reduce_time(chip=chip, D=D, F=F) / 2


@exercise.misconception(of=line_reduce_time)
def line_reduce_all_of_it(chip, D, F):
    """You used 2·V/W1. In each phase N-1 of the N parts pass the last link, not N."""
    return line_reduce_time(chip=chip, D=D, F=F) * 8 / 7


@exercise.misconception(of=line_reduce_time)
def line_reduce_elements(chip, D, F):
    """You counted elements, not bytes. Multiply by the size of the dtype."""
    return line_reduce_time(chip=chip, D=D, F=F) / 4


@exercise.misconception(of=line_reduce_time)
def line_reduce_shard(chip, D, F):
    """You took 1/N of the array as V. Every chip starts with a partial sum of the whole array."""
    return line_reduce_time(chip=chip, D=D, F=F) / 8


PUBLISHED = [373, 377, 559, 680, 746, 756]  # pop quiz 2 of the book, and what readers made of it

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
    lambda chip, slice, I, K: Scenario(
        chip=chip, slice=tuple(map(int, slice.split("x"))), lines=(4,), mesh={"x": 2, "z": 4},
        arrays=[((I, K), P("x", "z"))], least=latency(4, "line"),
    ),
)  # fmt: skip
exercise.scenario(
    line_reduce_time,
    lambda chip, D, F: Scenario(
        chip=chip, slice=(4, 8), lines=(8,), mesh={"y": 8}, arrays=[((D, F), P("y"))], least=2 * latency(8, "line")
    ),
)
