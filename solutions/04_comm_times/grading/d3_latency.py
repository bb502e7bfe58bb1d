"""What is checked in D3, and what goes wrong."""

import math

from d3_latency import exercise, gather_and_limit, latency_bound_below, tiny_gather_time, two_rings_tiny_time
from grader.expect import expect_outcomes
from grader.hardware import CHIPS, HOP_TIME, all_gather_time, axis_topology, latency, latency_bound_bytes


def drawn(rng, wraps, axes, low, high, tries=50):
    """Arrays so large that bandwidth takes ``low`` to ``high`` times as long as the hops."""
    for _ in range(tries):
        sizes = tuple(rng.choice([3, 4, 5, 6, 8, 12, 16], axes, replace=False).tolist())
        bandwidth, hop = float(rng.choice([4.5e10, 9e10])), float(rng.choice([1e-6, 1.5e-6]))
        hops, links = sum(n // 2 if wraps else n - 1 for n in sizes), axes * (2 if wraps else 1)
        bytes = int(rng.uniform(low, high) * hops * hop * links * bandwidth)
        yield {"bytes": bytes, "sizes": sizes, "wraps": wraps, "one_way_bandwidth": bandwidth, "hop_time": hop}


def example(bytes, sizes, wraps):
    return {"bytes": bytes, "sizes": sizes, "wraps": wraps, "one_way_bandwidth": 4.5e10, "hop_time": 1e-6}


ring = exercise.cases(
    gather_and_limit, public=[example(60_000, (6,), True)], hidden=lambda rng: drawn(rng, True, 1, 0.1, 0.8)
)
line = exercise.cases(
    gather_and_limit, public=[example(131_072, (4,), False)], hidden=lambda rng: drawn(rng, False, 1, 0.1, 0.8)
)
torus = exercise.cases(
    gather_and_limit,
    public=[example(200_000, (4, 8), True), example(9_000_000, (4, 8), True)],
    hidden=lambda rng: [*drawn(rng, True, 2, 0.1, 4), *drawn(rng, True, 3, 0.1, 4), *drawn(rng, False, 2, 0.1, 4)],
)
large = exercise.cases(
    gather_and_limit,
    public=[example(1_048_576, (4,), False), example(12_582_912, (8,), True)],
    hidden=lambda rng: [*drawn(rng, True, 1, 2, 9), *drawn(rng, False, 1, 2, 9)],
)


@exercise.check(ring, points=0.25, public=True)
def limit_tiny_ring(seen):
    """gather_and_limit: small arrays on a ring"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(line, points=0.25, public=True)
def limit_tiny_line(seen):
    """gather_and_limit: small arrays on a line"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(torus, points=0.25)
def limit_axes(seen):
    """gather_and_limit: two and three axes at once, small and large arrays"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(large, points=0.25, public=True)
def limit_large(seen):
    """gather_and_limit: large arrays on rings and lines"""
    expect_outcomes(seen, rtol=1e-6)


def slower(waiting, moving):
    return max((waiting, "latency"), (moving, "bandwidth"))


def moving_time(bytes, sizes, wraps, one_way_bandwidth, **rest):
    """Bandwidth alone."""
    total = math.prod(sizes)
    return bytes * (total - 1) / total / (len(sizes) * (2 if wraps else 1) * one_way_bandwidth)


@exercise.misconception(of=gather_and_limit, fails=[limit_tiny_ring, limit_axes])
def limit_ring_as_line(sizes, hop_time, **rest):
    """You let a shard go N-1 hops on a ring. It goes both ways round, so ⌊N/2⌋ hops reach everybody."""
    return slower(hop_time * sum(n - 1 for n in sizes), moving_time(sizes=sizes, **rest))


@exercise.misconception(of=gather_and_limit, fails=[limit_tiny_line, limit_axes])
def limit_line_as_ring(sizes, hop_time, **rest):
    """You let a shard go N/2 hops on a line. Without a link between the ends it goes N-1 hops from end to end."""
    return slower(hop_time * sum(n // 2 for n in sizes), moving_time(sizes=sizes, **rest))


@exercise.misconception(of=gather_and_limit, fails=limit_axes)
def limit_one_long_axis(sizes, wraps, hop_time, **rest):
    """You took all chips for one long ring or line. Axes are walked one after the other: add their hops, not multiply."""
    total = math.prod(sizes)
    hops = total // 2 if wraps else total - 1
    return slower(hops * hop_time, moving_time(sizes=sizes, wraps=wraps, **rest))


@exercise.misconception(of=gather_and_limit, fails=[limit_tiny_ring, limit_tiny_line, limit_axes, limit_large])
def limit_summed(bytes, sizes, wraps, one_way_bandwidth, hop_time):
    """You added latency and bandwidth. A hop carries bytes while it lasts, so the longer of the two counts."""
    waiting = hop_time * sum(n // 2 if wraps else n - 1 for n in sizes)
    moving = moving_time(bytes, sizes, wraps, one_way_bandwidth)
    return waiting + moving, slower(waiting, moving)[1]


@exercise.misconception(of=gather_and_limit, fails=[limit_tiny_ring, limit_tiny_line, limit_axes])
def limit_bytes_only(hop_time, **rest):
    """You counted bytes only. A hop takes 1 µs even when it carries next to nothing."""
    return moving_time(**rest), "bandwidth"


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_other_hops(chip, N, R, C):
    """You counted the hops of a ring on a line, or of a line on a ring. On this chip only an axis of 16 wraps around."""
    return latency(N, "line" if axis_topology(chip, N) == "ring" else "ring")


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_bytes_only(chip, N, R, C):
    """You counted bytes only. A shard passes its link in less than the 1 µs that a hop takes, so hops decide."""
    return all_gather_time(2 * R * C, N, chip, topology=axis_topology(chip, N))


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_summed(chip, N, R, C):
    """You added latency and bandwidth. A hop carries bytes while it lasts, so the longer of the two counts."""
    topology = axis_topology(chip, N)
    return latency(N, topology) + all_gather_time(2 * R * C, N, chip, topology=topology)


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_as_lines(chip, X, Y, R, C):
    """You walked N-1 hops along each axis. On a ring a shard goes both ways, and ⌊N/2⌋ hops reach everybody."""
    return latency((X, Y), "line")


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_longer_only(chip, X, Y, R, C):
    """You counted the longer axis only. A shard for the opposite corner walks along both axes: add their hops."""
    return latency(Y)


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_bytes_only(chip, X, Y, R, C):
    """You counted bytes only. The hops of 1 µs each take longer."""
    return all_gather_time(2 * R * C, X * Y, chip, axes=2)


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_summed(chip, X, Y, R, C):
    """You added latency and bandwidth. A hop carries bytes while it lasts, so the longer of the two counts."""
    return latency((X, Y)) + all_gather_time(2 * R * C, X * Y, chip, axes=2)


@exercise.misconception(of=latency_bound_below)
def latency_bound_shard(chip, N):
    """That is one shard, W1 · 1 µs. The whole array is N of them."""
    return latency_bound_bytes(chip)


@exercise.misconception(of=latency_bound_below)
def latency_bound_line(chip, N):
    """You counted N-1 hops. On a ring a shard goes both ways round: N/2 hops."""
    return (N - 1) * HOP_TIME * CHIPS[chip].ici_both


@exercise.misconception(of=latency_bound_below)
def latency_bound_one_way(chip, N):
    """You used one direction of the link. On a ring data flows both ways round at once: W = 2·W1."""
    return latency_bound_below(chip=chip, N=N) / 2
