"""What goes wrong in D3."""

import math

from d3_latency import (
    exercise,
    gather_and_limit,
    latency_bound_below,
    limit_axes,
    limit_large,
    limit_tiny_line,
    limit_tiny_ring,
    tiny_gather_time,
    two_rings_tiny_time,
)
from grader.hardware import CHIPS, HOP_TIME, all_gather_time, axis_topology, latency, latency_bound_bytes


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
