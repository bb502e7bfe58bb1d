"""Checks and misconceptions of D4."""

import math

from jax.sharding import PartitionSpec as P

from d4_all_to_all import (
    exchange_time,
    exercise,
    line_exchange_time,
    ring_exchange_time,
    switch_exchange_time,
    torus_exchange_time,
)
from grader.exercise import Scenario
from grader.expect import expect_outcomes
from grader.hardware import CHIPS, all_gather_time, all_to_all_time, latency


def drawn(rng, networks, lengths, axes=1):
    for network in networks * 40:
        sizes = tuple(rng.choice(lengths, axes, replace=False).tolist())
        bandwidth = float(rng.choice([4.5e10, 9e10, 4.5e11]))
        yield {
            "bytes": int(rng.integers(1, 500)) * 10**6, "sizes": sizes, "network": network, "one_way_bandwidth": bandwidth
        }  # fmt: skip


def example(network, *sizes):
    return {"bytes": 16_777_216, "sizes": sizes, "network": network, "one_way_bandwidth": 4.5e10}


rings = exercise.cases(
    exchange_time,
    public=[example("ring", 8), example("ring", 5), example("one_way_ring", 8)],
    hidden=lambda rng: drawn(rng, ["ring", "ring", "one_way_ring"], [2, 3, 4, 5, 7, 8, 16]),
)
lines = exercise.cases(
    exchange_time,
    public=[example("line", 8), example("line", 5)],
    hidden=lambda rng: drawn(rng, ["line"] * 2, [2, 3, 4, 5, 7, 8, 12]),
)
switches = exercise.cases(
    exchange_time, public=[example("switch", 8)], hidden=lambda rng: drawn(rng, ["switch"] * 2, [2, 3, 5, 8, 36, 72])
)
meshes = exercise.cases(
    exchange_time,
    public=[example("ring", 4, 8)],
    hidden=lambda rng: [
        *drawn(rng, ["ring", "line"], [3, 4, 5, 8, 16], 2), *drawn(rng, ["ring", "line"], [2, 4, 8, 12], 3)
    ],
)  # fmt: skip


@exercise.check(rings, points=0.25, public=True)
def exchange_rings(seen):
    """exchange_time: rings, both ways and one way, even and odd"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(lines, points=0.25, public=True)
def exchange_lines(seen):
    """exchange_time: lines"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(switches, points=0.25)
def exchange_switches(seen):
    """exchange_time: behind a switch"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(meshes, points=0.25)
def exchange_axes(seen):
    """exchange_time: over two and three unequal axes"""
    expect_outcomes(seen, rtol=1e-6)


EVERY = [exchange_rings, exchange_lines, exchange_switches, exchange_axes]


@exercise.misconception(of=exchange_time, fails=EVERY, breaks="rings both ways, even and odd")
def exchange_as_gather(bytes, sizes, network, one_way_bandwidth):
    """You used the all-gather's time. In an all-gather every chip needs everything. In an all-to-all it needs one chunk from each chip."""
    total = math.prod(sizes)
    return bytes * (total - 1) / total / (len(sizes) * (2 if network == "ring" else 1) * one_way_bandwidth)


@exercise.misconception(of=exchange_time, fails=EVERY, breaks=["rings one way, even and odd", "lines | ⌊N/2⌋·⌈N/2⌉"])
def exchange_quarter_everywhere(bytes, sizes, network, one_way_bandwidth):
    """You used V/(4·W) for every network. It holds for a ring of even size that uses both directions of its links."""
    return bytes * max(sizes) / math.prod(sizes) / (8 * one_way_bandwidth)


@exercise.misconception(of=exchange_time, fails=exchange_switches, breaks="behind a switch")
def exchange_switch_as_line(network, **rest):
    """You sent chunks through a switch as along a line. Behind a switch no chip passes chunks on: each chunk takes one wire up and one down."""
    return exchange_time(network="line" if network == "switch" else network, **rest)


@exercise.misconception(
    of=exchange_time, fails=[exchange_rings, exchange_lines, exchange_axes], breaks="rings both ways, even and odd"
)
def exchange_even_only(bytes, sizes, network, one_way_bandwidth):
    """You used the formula for even sizes. With an odd number of chips the halves are unequal: ⌊N/2⌋·⌈N/2⌉ pairs, not N²/4."""
    n, total = max(sizes), math.prod(sizes)
    chunks = {"ring": n * n / 8, "line": n * n / 4, "one_way_ring": n * (n - 1) / 2, "switch": n - 1}[network]
    return chunks / n**2 * bytes * n / total / one_way_bandwidth


@exercise.misconception(of=exchange_time, fails=exchange_axes, breaks="over two and three unequal axes")
def exchange_whole_array_per_axis(bytes, sizes, **rest):
    """You sent the whole array along the longest axis. The rings along it share the array: each has n / (all chips) of it."""
    return exchange_time(bytes=bytes, sizes=(max(sizes),), **rest)


@exercise.misconception(of=exchange_time, fails=exchange_axes, breaks="the slowest counts")
def exchange_shortest_axis(bytes, sizes, **rest):
    """You let the shortest axis decide. Chunks travel farthest on the longest axis, so its wires are the busiest."""
    return exchange_time(bytes=bytes * min(sizes) / math.prod(sizes), sizes=(min(sizes),), **rest)


@exercise.misconception(of=ring_exchange_time)
def ring_exchange_as_gather(chip, N, I, J):
    """You used the all-gather's time. A chunk goes to one chip only, N/4 hops on average: a quarter of that time."""
    return all_gather_time(2 * I * J, N, chip)


@exercise.misconception(of=ring_exchange_time)
def ring_exchange_half(**params):
    """Your answer is too large by a factor of two. A one-way ring takes half the all-gather's time, a ring used both ways a quarter."""
    return 2 * ring_exchange_time(**params)


@exercise.misconception(of=ring_exchange_time)
def ring_exchange_shard(N, **rest):
    """You took one chip's shard as V. V is the full array over the ring."""
    return ring_exchange_time(N=N, **rest) / N


@exercise.misconception(of=line_exchange_time)
def line_exchange_as_ring(**params):
    """You used a quarter of V/W. On this chip only an axis of 16 wraps around. So x is a line, and its middle wire carries V/4 at W1."""
    return line_exchange_time(**params) / 2


@exercise.misconception(of=line_exchange_time)
def line_exchange_as_gather(chip, X, Y, I, J):
    """You used the all-gather's time on a line. Only a quarter of V has to cross the middle wire."""
    return all_gather_time(2 * I * J, X, chip, topology="line")


@exercise.misconception(of=line_exchange_time)
def line_exchange_half(**params):
    """Your answer is too large by a factor of two. A quarter of V crosses the middle to the right, and at the same time a quarter crosses to the left."""
    return 2 * line_exchange_time(**params)


@exercise.misconception(of=switch_exchange_time)
def switch_exchange_as_ring(N, **rest):
    """You used a quarter of the all-gather's time. That holds for a ring. Behind a switch no chip passes chunks on: use 1/N of it."""
    return N / 4 * switch_exchange_time(N=N, **rest)


@exercise.misconception(of=switch_exchange_time)
def switch_exchange_as_gather(N, **rest):
    """You used the all-gather's time. Each GPU sends V/N² to each of the others, not V/N."""
    return N * switch_exchange_time(N=N, **rest)


@exercise.misconception(of=switch_exchange_time)
def switch_exchange_elements(**params):
    """Your answer is too small by a factor of two. A bfloat16 has two bytes, and a GPU's egress is one direction of its links."""
    return switch_exchange_time(**params) / 2


@exercise.misconception(of=torus_exchange_time)
def torus_exchange_one_ring(chip, X, Y, I, J):
    """You used V/(4·W), one ring for the whole array. The rings along the longer axis share the array."""
    return all_to_all_time(2 * I * J, Y, chip)


@exercise.misconception(of=torus_exchange_time)
def torus_exchange_shorter(X, Y, **rest):
    """You let the shorter axis decide. Chunks travel farther on the longer axis, so its wires are the busiest."""
    return X / Y * torus_exchange_time(X=X, Y=Y, **rest)


@exercise.misconception(of=torus_exchange_time)
def torus_exchange_as_gather(chip, X, Y, I, J):
    """You used the all-gather's time over two axes, V/(2·W). In an all-to-all a chunk goes to one chip only."""
    return 2 * I * J / (2 * CHIPS[chip].ici_both)


def traded(I, J, axes):
    """Return the array before and after: first these axes cut its rows, then its columns."""
    return [((I, J), P(axes)), ((I, J), P(None, axes))]


exercise.scenario(
    ring_exchange_time,
    lambda chip, N, I, J: Scenario(chip=chip, rings=(N,), mesh={"x": N}, arrays=traded(I, J, "x"), least=latency(N)),
)
exercise.scenario(
    line_exchange_time,
    lambda chip, X, Y, I, J: Scenario(
        chip=chip, slice=(X, Y), lines=(X,), mesh={"x": X}, arrays=traded(I, J, "x"), least=latency(X, "line")
    ),
)
exercise.scenario(
    switch_exchange_time, lambda chip, N, I, J: Scenario(chip=chip, mesh={"x": N}, arrays=traded(I, J, "x"))
)
exercise.scenario(
    torus_exchange_time,
    lambda chip, X, Y, I, J: Scenario(
        chip=chip, rings=(X, Y), mesh={"x": X, "y": Y}, arrays=traded(I, J, ("x", "y")), least=latency((X, Y))
    ),
)
