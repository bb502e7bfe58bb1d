"""Checks and misconceptions of D3."""

import math

from jax.sharding import PartitionSpec as P

from d3_latency import (
    exercise,
    gather_and_limit,
    gather_on_rings_or_lines,
    latency_bound_below,
    tiny_gather_time,
    two_rings_tiny_time,
)
from grader.exercise import Scenario, larger
from grader.expect import expect_outcomes
from grader.hardware import CHIPS, HOP_TIME, axis_topology, latency, latency_bound_bytes


def drawn(rng, wraps, axes, low, high):
    """Return arrays whose bandwidth time is ``low`` to ``high`` times the time of the hops."""
    for _ in range(50):
        sizes = tuple(rng.choice([3, 4, 5, 6, 8, 12, 16], axes, replace=False).tolist())
        bandwidth, hop = float(rng.choice([4.5e10, 9e10])), float(rng.choice([1e-6, 1.5e-6]))
        hops, links = sum(n // 2 if wraps else n - 1 for n in sizes), axes * (2 if wraps else 1)
        bytes = int(rng.uniform(low, high) * hops * hop * links * bandwidth)
        yield {"bytes": bytes, "sizes": sizes, "wraps": wraps, "one_way_bandwidth": bandwidth, "hop_time": hop}


def example(bytes, sizes, wraps, hop_time=1e-6):
    return {"bytes": bytes, "sizes": sizes, "wraps": wraps, "one_way_bandwidth": 4.5e10, "hop_time": hop_time}


ring = exercise.cases(
    gather_and_limit,
    public=[example(60_000, (6,), True), example(60_000, (5,), True, 1.5e-6)],
    hidden=lambda rng: drawn(rng, True, 1, 0.1, 0.8),
)
line = exercise.cases(
    gather_and_limit,
    public=[example(131_072, (4,), False), example(60_000, (4,), False, 1.5e-6)],
    hidden=lambda rng: drawn(rng, False, 1, 0.1, 0.8),
)
torus = exercise.cases(
    gather_and_limit,
    public=[example(200_000, (4, 8), True), example(9_000_000, (4, 8), True)],
    hidden=lambda rng: [*drawn(rng, True, 2, 0.1, 4), *drawn(rng, True, 3, 0.1, 4), *drawn(rng, False, 2, 0.1, 4)],
)
large = exercise.cases(
    gather_and_limit,
    public=[example(1_048_576, (4,), False), example(12_582_912, (8,), True)],
    hidden=lambda rng: [*drawn(rng, True, 1, 4, 9), *drawn(rng, False, 1, 4, 9)],
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
    """gather_and_limit: small and large arrays over two and three axes"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(large, points=0.25, public=True)
def limit_large(seen):
    """gather_and_limit: large arrays on rings and lines"""
    expect_outcomes(seen, rtol=1e-6)


def slower(waiting, moving):
    return max((waiting, "latency"), (moving, "bandwidth"))


def moving_time(bytes, sizes, wraps, one_way_bandwidth, **rest):
    """Return the time from bandwidth alone."""
    total = math.prod(sizes)
    return bytes * (total - 1) / total / (len(sizes) * (2 if wraps else 1) * one_way_bandwidth)


@exercise.misconception(of=gather_and_limit, fails=[limit_tiny_ring, limit_axes], breaks="small arrays on a ring")
def limit_ring_as_line(sizes, hop_time, **rest):
    """You let a shard go N-1 hops on a ring. A shard goes both ways round, so ⌊N/2⌋ hops reach every chip."""
    return slower(hop_time * sum(n - 1 for n in sizes), moving_time(sizes=sizes, **rest))


@exercise.misconception(of=gather_and_limit, fails=[limit_tiny_ring, limit_axes], breaks="small arrays on a ring")
def limit_whole_turn(sizes, wraps, hop_time, **rest):
    """You let a shard go all the way round a ring, N hops. A shard goes both ways round, so ⌊N/2⌋ hops reach every chip."""
    hops = sum(n if wraps else n - 1 for n in sizes)
    return slower(hops * hop_time, moving_time(sizes=sizes, wraps=wraps, **rest))


@exercise.misconception(of=gather_and_limit, fails=[limit_tiny_line, limit_axes], breaks="small arrays on a line")
def limit_line_as_ring(sizes, hop_time, **rest):
    """You let a shard go N/2 hops on a line. The ends have no link between them, so a shard goes N-1 hops from end to end."""
    return slower(hop_time * sum(n // 2 for n in sizes), moving_time(sizes=sizes, **rest))


@exercise.misconception(of=gather_and_limit, fails=limit_axes, breaks="small and large arrays over two and three axes")
def limit_one_long_axis(sizes, wraps, hop_time, **rest):
    """You took all chips as one long ring or line. A shard crosses the axes one after the other: count the hops of each axis and add them."""
    total = math.prod(sizes)
    hops = total // 2 if wraps else total - 1
    return slower(hops * hop_time, moving_time(sizes=sizes, wraps=wraps, **rest))


@exercise.misconception(
    of=gather_and_limit,
    fails=[limit_tiny_ring, limit_tiny_line, limit_axes, limit_large],
    breaks="time = max(time by latency, time by bandwidth)",
)
def limit_summed(bytes, sizes, wraps, one_way_bandwidth, hop_time):
    """You added latency and bandwidth. A hop carries bytes during its latency: take the longer of the two."""
    waiting = hop_time * sum(n // 2 if wraps else n - 1 for n in sizes)
    moving = moving_time(bytes, sizes, wraps, one_way_bandwidth)
    return waiting + moving, slower(waiting, moving)[1]


@exercise.misconception(of=gather_and_limit, fails=[limit_tiny_ring, limit_tiny_line, limit_axes])
def limit_bytes_only(hop_time, **rest):
    """You counted bytes only. A hop takes 1 µs even if it carries very few bytes."""
    return moving_time(**rest), "bandwidth"


@exercise.misconception(of=gather_and_limit, fails=[limit_axes, limit_large], breaks="large arrays on rings and lines")
def limit_hops_only(sizes, wraps, hop_time, **rest):
    """You counted hops only. A large shard takes longer than a hop: compare with the time of the bytes."""
    return hop_time * sum(n // 2 if wraps else n - 1 for n in sizes), "latency"


TIMES = [limit_tiny_ring, limit_tiny_line, limit_axes]


def waiting_time(sizes, wraps, hop_time, **rest):
    """Return the time of the hops alone."""
    return hop_time * sum(n // 2 if wraps else n - 1 for n in sizes)


@exercise.misconception(of=gather_and_limit, fails=[limit_axes, limit_large])
def limit_book_on_rings(sizes, wraps, **rest):
    """You used V/W on a ring. This function is exact: (N-1)/N of V moves, on rings too."""
    total = math.prod(sizes)
    call = {"sizes": sizes, "wraps": wraps, **rest}
    return slower(waiting_time(**call), moving_time(**call) * (total / (total - 1) if wraps else 1))


@exercise.misconception(of=gather_and_limit, fails=[limit_axes, limit_large])
def limit_whole_array(sizes, **rest):
    """You let each chip receive all of V. A chip already has its own shard: (N-1)/N of V moves."""
    total = math.prod(sizes)
    call = {"sizes": sizes, **rest}
    return slower(waiting_time(**call), moving_time(**call) * total / (total - 1))


@exercise.misconception(of=gather_and_limit, fails=[limit_tiny_ring, limit_axes, limit_large])
def limit_one_link_on_rings(wraps, **rest):
    """You counted one link per axis on rings. A chip of a ring receives over two links."""
    call = {"wraps": wraps, **rest}
    return slower(waiting_time(**call), moving_time(**call) * (2 if wraps else 1))


@exercise.misconception(of=gather_and_limit, fails=[limit_axes, limit_large])
def limit_two_links_on_lines(wraps, **rest):
    """You counted two links per axis on lines. The last chip of a line receives over one link."""
    call = {"wraps": wraps, **rest}
    return slower(waiting_time(**call), moving_time(**call) / (1 if wraps else 2))


@exercise.misconception(of=gather_and_limit, fails=limit_axes)
def limit_links_of_one_axis(sizes, **rest):
    """You used the links of one axis. All axes carry bytes at the same time: add their links."""
    call = {"sizes": sizes, **rest}
    return slower(waiting_time(**call), moving_time(**call) * len(sizes))


@exercise.misconception(of=gather_and_limit, fails=limit_axes)
def limit_part_of_one_axis(sizes, **rest):
    """Your factor (N-1)/N counts the chips along the first axis. N is the number of all chips."""
    call, total = {"sizes": sizes, **rest}, math.prod(sizes)
    return slower(waiting_time(**call), moving_time(**call) * total / (total - 1) * (sizes[0] - 1) / sizes[0])


@exercise.misconception(of=gather_and_limit, fails=limit_axes)
def limit_factors_multiplied(sizes, **rest):
    """You multiplied the factors (n-1)/n of the axes. N is the number of all chips, and the factor is (N-1)/N."""
    call, total = {"sizes": sizes, **rest}, math.prod(sizes)
    factors = math.prod((n - 1) / n for n in sizes)
    return slower(waiting_time(**call), moving_time(**call) * total / (total - 1) * factors)


@exercise.misconception(of=gather_and_limit, fails=limit_axes)
def limit_longest_axis(sizes, wraps, hop_time, **rest):
    """You counted the hops of the longest axis. A shard crosses the axes one after the other: add their hops."""
    hops = max(n // 2 if wraps else n - 1 for n in sizes)
    return slower(hops * hop_time, moving_time(sizes=sizes, wraps=wraps, **rest))


@exercise.misconception(of=gather_and_limit, fails=limit_axes)
def limit_hops_multiplied(sizes, wraps, hop_time, **rest):
    """You multiplied the hops of the axes. A shard crosses the axes one after the other: add their hops."""
    hops = math.prod(n // 2 if wraps else n - 1 for n in sizes)
    return slower(hops * hop_time, moving_time(sizes=sizes, wraps=wraps, **rest))


@exercise.misconception(of=gather_and_limit, fails=[*TIMES, limit_large])
def limit_labels_swapped(**call):
    """You swapped the labels. Return "latency" if the hops take longer. Return "bandwidth" if the bytes take longer."""
    seconds, limit = gather_and_limit(**call)
    return seconds, {"latency": "bandwidth", "bandwidth": "latency"}[limit]


@exercise.misconception(of=gather_and_limit, fails=[*TIMES, limit_large])
def limit_seconds_only(**call):
    """You returned the seconds alone. Return the seconds and what sets them, `(seconds, "latency")` or `(seconds, "bandwidth")`."""
    return gather_and_limit(**call)[0]


@exercise.misconception(of=gather_and_limit, fails=[*TIMES, limit_large])
def limit_shorter(**call):
    """You took the shorter of the two times. The gather ends when both the hops and the bytes are done: take the longer time."""
    return min((waiting_time(**call), "latency"), (moving_time(**call), "bandwidth"))


@exercise.misconception(of=gather_and_limit, fails=[limit_tiny_ring, limit_axes])
def limit_hops_rounded_up(sizes, wraps, hop_time, **rest):
    """You rounded N/2 up on an odd ring. The farthest chip is ⌊N/2⌋ hops away."""
    hops = sum((n + 1) // 2 if wraps else n - 1 for n in sizes)
    return slower(hops * hop_time, moving_time(sizes=sizes, wraps=wraps, **rest))


@exercise.misconception(of=gather_and_limit, fails=[limit_tiny_ring, limit_axes])
def limit_half_hops(sizes, wraps, hop_time, **rest):
    """You counted half a hop on an odd ring. The farthest chip is ⌊N/2⌋ hops away, a whole number."""
    hops = sum(n / 2 if wraps else n - 1 for n in sizes)
    return slower(hops * hop_time, moving_time(sizes=sizes, wraps=wraps, **rest))


@exercise.misconception(of=gather_and_limit, fails=[limit_tiny_line, limit_axes])
def limit_hop_per_chip(sizes, wraps, hop_time, **rest):
    """You counted N hops on a line. Between N chips in a row there are N-1 links."""
    hops = sum(n // 2 if wraps else n for n in sizes)
    return slower(hops * hop_time, moving_time(sizes=sizes, wraps=wraps, **rest))


@exercise.misconception(of=gather_and_limit, fails=TIMES)
def limit_one_microsecond(hop_time, **rest):
    """You set a hop to 1 µs. Use the argument `hop_time`."""
    return gather_and_limit(hop_time=1e-6, **rest)


def tiny_parts(chip, N, R, L, C):
    """Return (hops, bytes) of the two arrays, with the axis's own topology."""
    return [gather_on_rings_or_lines(2 * rows * C, (N,), chip, axis_topology(chip, N)) for rows in (R, L)]


def two_rings_parts(chip, X, Y, R, L, C):
    return [gather_on_rings_or_lines(2 * rows * C, (X, Y), chip, "ring") for rows in (R, L)]


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_other_hops(chip, N, **arrays):
    """You counted the hops of a ring on a line, or of a line on a ring. On this chip only an axis of 16 wraps around."""
    hops = latency(N, "line" if axis_topology(chip, N) == "ring" else "ring")
    return sum(max(hops, bytes) for _, bytes in tiny_parts(chip, N, **arrays))


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_bytes_only(**params):
    """You counted bytes only. A small shard passes its link in less than the 1 µs of a hop, so the hops decide."""
    return sum(bytes for _, bytes in tiny_parts(**params))


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_hops_only(**params):
    """You counted hops only. A large shard needs more than 1 µs per link, so the bytes decide."""
    return sum(hops for hops, _ in tiny_parts(**params))


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_summed(**params):
    """You added latency and bandwidth. A hop carries bytes during its latency: take the longer of the two."""
    return sum(map(sum, tiny_parts(**params)))


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_as_lines(X, Y, **rest):
    """You counted N-1 hops along each axis. On a ring a shard goes both ways, so ⌊N/2⌋ hops reach every chip."""
    return sum(max(latency((X, Y), "line"), bytes) for _, bytes in two_rings_parts(X=X, Y=Y, **rest))


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_longer_only(X, Y, **rest):
    """You counted the longer axis only. A shard for the opposite corner crosses both axes: add their hops."""
    return sum(max(latency(Y), bytes) for _, bytes in two_rings_parts(X=X, Y=Y, **rest))


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_bytes_only(**params):
    """You counted bytes only. For the small array the hops of 1 µs take longer."""
    return sum(bytes for _, bytes in two_rings_parts(**params))


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_hops_only(**params):
    """You counted hops only. For the large array the bytes take longer."""
    return sum(hops for hops, _ in two_rings_parts(**params))


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_summed(**params):
    """You added latency and bandwidth. A hop carries bytes during its latency: take the longer of the two."""
    return sum(map(sum, two_rings_parts(**params)))


@exercise.misconception(of=latency_bound_below)
def latency_bound_shard(chip, N):
    """Your answer is the size of one shard, W1 · 1 µs. The whole array has N shards."""
    return latency_bound_bytes(chip)


@exercise.misconception(of=latency_bound_below)
def latency_bound_line(chip, N):
    """You counted N-1 hops. On a ring a shard goes both ways round: N/2 hops."""
    return (N - 1) * HOP_TIME * CHIPS[chip].ici_both


@exercise.misconception(of=latency_bound_below)
def latency_bound_one_way(chip, N):
    """You used one direction of the link. On a ring data flows both ways round at once: W = 2·W1."""
    return latency_bound_below(chip=chip, N=N) / 2


def other_kind(chip, N):
    """Return "line" for a ring and "ring" for a line."""
    return "line" if axis_topology(chip, N) == "ring" else "ring"


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_other_kind(chip, N, R, L, C):
    """You took a line for a ring, or a ring for a line. On this chip only an axis of 16 wraps around."""
    parts = [gather_on_rings_or_lines(2 * rows * C, (N,), chip, other_kind(chip, N)) for rows in (R, L)]
    return sum(map(max, parts))


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_other_bytes(chip, N, R, L, C):
    """Your hops are right, but not the bandwidth: a ring takes V/W, a line takes (N-1)/N · V/W1."""
    hops = latency(N, axis_topology(chip, N))
    others = [gather_on_rings_or_lines(2 * rows * C, (N,), chip, other_kind(chip, N))[1] for rows in (R, L)]
    return sum(max(hops, bytes) for bytes in others)


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_other_bytes_only(chip, N, R, L, C):
    """You counted bytes only, and used a ring's rule for a line or a line's rule for a ring. For the small array the hops take longer. On this chip only an axis of 16 wraps around."""
    return sum(gather_on_rings_or_lines(2 * rows * C, (N,), chip, other_kind(chip, N))[1] for rows in (R, L))


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_other_factor(chip, N, **arrays):
    """You left out (N-1)/N on a line, or used it on a ring. A ring takes V/W, a line takes (N-1)/N · V/W1."""
    factor = (N - 1) / N if axis_topology(chip, N) == "ring" else N / (N - 1)
    return sum(max(hops, factor * bytes) for hops, bytes in tiny_parts(chip, N, **arrays))


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_other_direction(chip, N, **arrays):
    """You mixed up W and W1. On a ring, count both directions of a link (W). On a line, count one direction (W1)."""
    factor = 2 if axis_topology(chip, N) == "ring" else 1 / 2
    return sum(max(hops, factor * bytes) for hops, bytes in tiny_parts(chip, N, **arrays))


@exercise.misconception(of=tiny_gather_time)
def tiny_gather_large_only(**params):
    """You left out the small array. The all-gathers follow one another, and the small array's hops take time too."""
    return max(tiny_parts(**params)[1])


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_one_ring(X, Y, **rest):
    """You used W, the bandwidth of one ring. Both rings carry bytes at the same time: 2·W."""
    return sum(max(hops, 2 * bytes) for hops, bytes in two_rings_parts(X=X, Y=Y, **rest))


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_four(**params):
    """You divided by 4·W. W counts both directions of a link already, so two rings carry 2·W."""
    return sum(max(hops, bytes / 2) for hops, bytes in two_rings_parts(**params))


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_one_long(X, Y, **rest):
    """You took all chips as one long ring. A shard crosses the axes one after the other: add their hops."""
    return sum(max(latency(X * Y), bytes) for _, bytes in two_rings_parts(X=X, Y=Y, **rest))


@exercise.misconception(of=two_rings_tiny_time)
def two_rings_large_only(**params):
    """You left out the small array. The all-gathers follow one another, and the small array's hops take time too."""
    return max(two_rings_parts(**params)[1])


@exercise.misconception(of=latency_bound_below)
def latency_bound_doubled(**params):
    """Your answer is too large by a factor of two. The farthest chip is N/2 hops away, and W already counts both directions."""
    return 2 * latency_bound_below(**params)


@exercise.misconception(of=latency_bound_below)
def latency_bound_exact(chip, N):
    """You used (N-1)/N of V. This question's model is V/W."""
    return N / (N - 1) * latency_bound_below(chip=chip, N=N)


@exercise.misconception(of=latency_bound_below)
def latency_bound_as_line(chip, N):
    """You used the rules of a line: N-1 hops, and W1. On a ring there are N/2 hops, and both directions of a link carry data (W)."""
    return (N - 1) * HOP_TIME * CHIPS[chip].ici


def branches(parts):
    return tuple(larger(hops=hops, bytes=bytes) for hops, bytes in parts)


def about_tiny(chip, N, R, L, C):
    ring = axis_topology(chip, N) == "ring"
    return Scenario(
        chip=chip, rings=(N,) if ring else (), lines=() if ring else (N,), mesh={"x": N},
        arrays=[((R, C), P("x")), ((L, C), P("x"))], least=2 * latency(N, axis_topology(chip, N)),
        branches=branches(tiny_parts(chip, N, R, L, C)),
    )  # fmt: skip


exercise.scenario(tiny_gather_time, about_tiny, published=[2, 3])  # question 3 and pop quiz 2 of the book
exercise.scenario(
    two_rings_tiny_time,
    lambda chip, X, Y, R, L, C: Scenario(
        chip=chip, rings=(X, Y), mesh={"x": X, "y": Y}, arrays=[((n, C), P(("x", "y"))) for n in (R, L)],
        least=2 * latency((X, Y)), branches=branches(two_rings_parts(chip, X, Y, R, L, C)),
    ),
)  # fmt: skip
exercise.scenario(latency_bound_below, lambda chip, N: Scenario(chip=chip, rings=(N,)), published=[45])
