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
from grader.hardware import CHIPS, GPUS, all_gather_time, all_to_all_time, latency


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
    public=[example("ring", 4, 8), example("ring", 8, 4), example("line", 3, 5)],
    hidden=lambda rng: [
        *drawn(rng, ["ring", "line"], [3, 4, 5, 8, 16], 2), *drawn(rng, ["ring", "line"], [2, 4, 8, 12], 3)
    ],
)  # fmt: skip


@exercise.check(rings, points=0.25, public=True)
def exchange_rings(seen):
    """exchange_time: all-to-alls on rings that send both ways or one way, even and odd N"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(lines, points=0.25, public=True)
def exchange_lines(seen):
    """exchange_time: all-to-alls on lines"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(switches, points=0.25)
def exchange_switches(seen):
    """exchange_time: all-to-alls behind a switch"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(meshes, points=0.25)
def exchange_axes(seen):
    """exchange_time: all-to-alls over two and three unequal axes"""
    expect_outcomes(seen, rtol=1e-6)


EVERY = [exchange_rings, exchange_lines, exchange_switches, exchange_axes]


@exercise.misconception(of=exchange_time, fails=EVERY, breaks="rings that send both ways, even and odd N")
def exchange_as_gather(bytes, sizes, network, one_way_bandwidth):
    """You used the all-gather's time. In an all-gather every chip needs everything. In an all-to-all it needs one chunk from each chip."""
    total = math.prod(sizes)
    return bytes * (total - 1) / total / (len(sizes) * (2 if network == "ring" else 1) * one_way_bandwidth)


@exercise.misconception(
    of=exchange_time, fails=EVERY, breaks=["rings that send one way, even and odd N", "lines | ⌊N/2⌋·⌈N/2⌉"]
)
def exchange_quarter_everywhere(bytes, sizes, network, one_way_bandwidth):
    """You used V/(4·W) for every network. This rule holds for a ring of even size that uses both directions of its links."""
    return bytes * max(sizes) / math.prod(sizes) / (8 * one_way_bandwidth)


@exercise.misconception(of=exchange_time, fails=exchange_rings, breaks="rings that send one way, even and odd N")
def exchange_one_way_as_both(network, **rest):
    """You let a one-way ring send both ways. On a one-way ring a chunk for the previous chip passes N - 1 wires."""
    return exchange_time(network="ring" if network == "one_way_ring" else network, **rest)


@exercise.misconception(of=exchange_time, fails=exchange_switches, breaks="behind a switch")
def exchange_switch_as_line(network, **rest):
    """You sent chunks through a switch as along a line. Behind a switch no chip passes chunks on: each chunk takes one wire up and one wire down."""
    return exchange_time(network="line" if network == "switch" else network, **rest)


@exercise.misconception(
    of=exchange_time,
    fails=[exchange_rings, exchange_lines, exchange_axes],
    breaks="rings that send both ways, even and odd N",
)
def exchange_even_only(bytes, sizes, network, one_way_bandwidth):
    """You used the formula for even sizes. With an odd number of chips the halves are unequal: ⌊N/2⌋·⌈N/2⌉ pairs, not N²/4."""
    n, total = max(sizes), math.prod(sizes)
    chunks = {"ring": n * n / 8, "line": n * n / 4, "one_way_ring": n * (n - 1) / 2, "switch": n - 1}[network]
    return chunks / n**2 * bytes * n / total / one_way_bandwidth


@exercise.misconception(of=exchange_time, fails=exchange_axes, breaks="over two and three unequal axes")
def exchange_whole_array_per_axis(bytes, sizes, **rest):
    """You sent the whole array along the longest axis. The rings along this axis share the array: each ring moves n / (all chips) of the array."""
    return exchange_time(bytes=bytes, sizes=(max(sizes),), **rest)


@exercise.misconception(of=exchange_time, fails=exchange_axes)
def exchange_axes_share_nothing(bytes, sizes, **rest):
    """You sent the whole array along every axis. The rings along an axis of n chips share the array: each ring moves V·n/N bytes."""
    return max(exchange_time(bytes=bytes, sizes=(n,), **rest) for n in sizes)


@exercise.misconception(of=exchange_time, fails=exchange_axes, breaks="the slowest axis sets the time")
def exchange_shortest_axis(bytes, sizes, **rest):
    """You let the shortest axis decide. Chunks travel farthest on the longest axis, so its wires are the busiest."""
    return exchange_time(bytes=bytes * min(sizes) / math.prod(sizes), sizes=(min(sizes),), **rest)


def busiest(bytes, sizes, network, one_way_bandwidth, **wrong):
    """Return the time of the slowest axis, with ``wrong[network](n)`` in place of the chunks on its busiest wire."""

    def chunks(n):
        across = (n // 2) * ((n + 1) // 2)
        right = {"ring": across / 2, "one_way_ring": n * (n - 1) / 2, "line": across, "switch": n - 1}
        return wrong[network](n) if network in wrong else right[network]

    total = math.prod(sizes)
    return max(chunks(n) / n**2 * bytes * n / total for n in sizes) / one_way_bandwidth


@exercise.misconception(of=exchange_time, fails=[exchange_rings, exchange_axes])
def exchange_even_rings(**call):
    """You used N²/8 chunks for odd rings too. With an odd number of chips a wire carries ⌊N/2⌋·⌈N/2⌉ / 2 chunks."""
    return busiest(**call, ring=lambda n: n * n / 8)


@exercise.misconception(of=exchange_time, fails=[exchange_lines, exchange_axes])
def exchange_even_lines(**call):
    """You used N²/4 chunks for odd lines too. With an odd number of chips the halves are unequal: ⌊N/2⌋·⌈N/2⌉."""
    return busiest(**call, line=lambda n: n * n / 4)


@exercise.misconception(of=exchange_time, fails=[exchange_rings, exchange_axes])
def exchange_ring_not_halved(**call):
    """You counted the chunks of a line on a ring. Chunks go both ways round the ring, so a wire carries half as many."""
    return busiest(**call, ring=lambda n: (n // 2) * ((n + 1) // 2))


@exercise.misconception(of=exchange_time, fails=[exchange_rings, exchange_axes])
def exchange_ring_one_way(**call):
    """You counted a ring's chunks as if all chunks went one way round. Each chunk takes the shorter way, so a wire carries
    ⌊N/2⌋·⌈N/2⌉ / 2 chunks."""
    return busiest(**call, ring=lambda n: n * (n - 1) / 2)


@exercise.misconception(of=exchange_time, fails=[exchange_rings, exchange_axes])
def exchange_ring_as_gather(**call):
    """You used the all-gather's time V/W on a ring. In an all-to-all a chip needs only one chunk from each chip: a wire carries ⌊N/2⌋·⌈N/2⌉ / 2 chunks."""
    return busiest(**call, ring=lambda n: n * n / 2)


@exercise.misconception(of=exchange_time, fails=exchange_rings)
def exchange_one_way_halved(**call):
    """You halved the chunks of the one-way ring. There all chunks go the same way round, so a wire carries N·(N-1)/2 chunks."""
    return busiest(**call, one_way_ring=lambda n: n * (n - 1) / 4)


@exercise.misconception(of=exchange_time, fails=exchange_rings)
def exchange_one_way_as_line(**call):
    """You counted the chunks of a line on the one-way ring. There a chunk passes up to N-1 wires: N·(N-1)/2 chunks on each
    wire."""
    return busiest(**call, one_way_ring=lambda n: (n // 2) * ((n + 1) // 2))


@exercise.misconception(of=exchange_time, fails=exchange_rings)
def exchange_whole_chunks(**call):
    """You rounded the number of chunks down. Opposite chips send half a chunk each way round, so a wire may carry half
    chunks."""
    return busiest(**call, ring=lambda n: (n // 2) * ((n + 1) // 2) // 2)


@exercise.misconception(of=exchange_time, fails=exchange_switches)
def exchange_switch_halved(**call):
    """You halved the chunks behind a switch. W1 counts one direction, and all N-1 chunks of a GPU leave in this direction."""
    return busiest(**call, switch=lambda n: (n - 1) / 2)


@exercise.misconception(of=exchange_time, fails=[exchange_rings, exchange_lines, exchange_axes])
def exchange_both_halves_down(**call):
    """You rounded both halves down. With an odd number of chips the halves are ⌊N/2⌋ and ⌈N/2⌉."""
    return busiest(**call, ring=lambda n: (n // 2) ** 2 / 2, line=lambda n: (n // 2) ** 2)


@exercise.misconception(of=exchange_time, fails=[exchange_rings, exchange_lines, exchange_axes])
def exchange_both_halves_up(**call):
    """You rounded both halves up. With an odd number of chips the halves are ⌊N/2⌋ and ⌈N/2⌉."""
    return busiest(**call, ring=lambda n: ((n + 1) // 2) ** 2 / 2, line=lambda n: ((n + 1) // 2) ** 2)


@exercise.misconception(of=exchange_time, fails=exchange_rings)
def exchange_one_way_hop(**call):
    """You let each chunk pass one wire of the one-way ring. A chunk for the k-th chip passes k wires, so each wire carries N·(N-1)/2 chunks."""
    return busiest(**call, one_way_ring=lambda n: n - 1)


@exercise.misconception(of=exchange_time, fails=exchange_rings)
def exchange_one_way_square(**call):
    """You used N²/2 chunks on a one-way ring. A chip keeps its own chunk: count N·(N-1)/2 chunks."""
    return busiest(**call, one_way_ring=lambda n: n * n / 2)


@exercise.misconception(of=exchange_time, fails=exchange_rings)
def exchange_one_way_doubled(**call):
    """You counted N·(N-1) chunks on a one-way ring. On average a chunk travels half-way round: count N·(N-1)/2 chunks."""
    return busiest(**call, one_way_ring=lambda n: n * (n - 1))


@exercise.misconception(of=exchange_time, fails=[exchange_lines, exchange_axes])
def exchange_lower_halves(**call):
    """You used ⌊N/2⌋² chunks on a line. With an odd number of chips one half is larger: ⌊N/2⌋·⌈N/2⌉."""
    return busiest(**call, line=lambda n: (n // 2) ** 2)


@exercise.misconception(of=exchange_time, fails=[exchange_lines, exchange_axes])
def exchange_line_halved(**call):
    """You halved the chunks on a line. Only a ring has a second way round."""
    return busiest(**call, line=lambda n: (n // 2) * ((n + 1) // 2) / 2)


@exercise.misconception(of=exchange_time, fails=[exchange_lines, exchange_axes])
def exchange_line_doubled(**call):
    """You added both directions of a line's middle wire. Both directions work at the same time: count the chunks of one direction, at W1."""
    return busiest(**call, line=lambda n: 2 * (n // 2) * ((n + 1) // 2))


@exercise.misconception(of=exchange_time, fails=exchange_switches)
def exchange_switch_own_chunk(**call):
    """You sent N chunks. A GPU keeps its own chunk and sends N-1 chunks."""
    return busiest(**call, switch=lambda n: n)


@exercise.misconception(of=exchange_time, fails=exchange_switches)
def exchange_switch_all(**call):
    """You counted the chunks of all GPUs. Each wire of the switch carries the N-1 chunks of one GPU."""
    return busiest(**call, switch=lambda n: n * (n - 1))


@exercise.misconception(of=exchange_time, fails=exchange_switches)
def exchange_switch_as_ring(**call):
    """You counted the chunks of a ring. Behind a switch no chip passes chunks on, so a wire carries N-1 chunks."""
    return busiest(**call, switch=lambda n: (n // 2) * ((n + 1) // 2) / 2)


@exercise.misconception(of=exchange_time, fails=exchange_axes)
def exchange_axes_added(bytes, sizes, network, one_way_bandwidth):
    """You added the times of the axes. All axes work at the same time: take the time of the slowest axis."""
    total = math.prod(sizes)
    return sum(exchange_time(bytes * n / total, (n,), network, one_way_bandwidth) for n in sizes)


@exercise.misconception(of=exchange_time, fails=exchange_axes)
def exchange_one_long_axis(bytes, sizes, network, one_way_bandwidth):
    """You took all chips as one long axis. Chunks go along one axis, then along the next: use the sizes of the axes."""
    return exchange_time(bytes, (math.prod(sizes),), network, one_way_bandwidth)


@exercise.misconception(of=exchange_time, fails=exchange_axes)
def exchange_chunks_of_all(bytes, sizes, network, one_way_bandwidth):
    """Your chunks have V/N² bytes, where N counts all chips. Along an axis of n chips, chunks have V·n/N / n² bytes."""
    return max(exchange_time(bytes, (n,), network, one_way_bandwidth) * n**2 for n in sizes) / math.prod(sizes) ** 2


@exercise.misconception(of=exchange_time, fails=exchange_axes)
def exchange_first_axis(bytes, sizes, network, one_way_bandwidth):
    """You used the first axis of `sizes`. The slowest axis counts, first or not."""
    return exchange_time(bytes * sizes[0] / math.prod(sizes), sizes[:1], network, one_way_bandwidth)


@exercise.misconception(of=exchange_time, fails=exchange_axes)
def exchange_last_axis(bytes, sizes, network, one_way_bandwidth):
    """You used the last axis of `sizes`. The slowest axis counts, last or not."""
    return exchange_time(bytes * sizes[-1] / math.prod(sizes), sizes[-1:], network, one_way_bandwidth)


@exercise.misconception(of=exchange_time, fails=EVERY)
def exchange_shard_as_array(bytes, sizes, network, one_way_bandwidth):
    """You took V/N, one chip's part, as the array. V is the array over all chips. The rings along an axis of n chips share the array: each ring moves V·n/N bytes."""
    return max(exchange_time(bytes / math.prod(sizes), (n,), network, one_way_bandwidth) for n in sizes)


@exercise.misconception(of=exchange_time, fails=EVERY)
def exchange_both_ways(bytes, sizes, network, one_way_bandwidth):
    """You divided by W. The table counts the chunks that pass a wire in one direction. The bandwidth of one direction is W1."""
    return exchange_time(bytes, sizes, network, 2 * one_way_bandwidth)


@exercise.misconception(of=exchange_time, fails=EVERY)
def exchange_large_chunks(bytes, sizes, network, one_way_bandwidth):
    """Your chunks have V/N bytes. A chip's V/N bytes are for N chips: a chunk has V/N² bytes."""
    total = math.prod(sizes)
    return max(n * exchange_time(bytes * n / total, (n,), network, one_way_bandwidth) for n in sizes)


@exercise.misconception(of=ring_exchange_time)
def ring_exchange_as_gather(chip, N, I, J):
    """You used the all-gather's time. A chunk goes to one chip only, N/4 hops on average, so an all-to-all takes a quarter of this time."""
    return all_gather_time(2 * I * J, N, chip)


@exercise.misconception(of=ring_exchange_time)
def ring_exchange_half(**params):
    """Your answer is too large by a factor of two. A one-way ring takes half the all-gather's time, but a ring used both ways takes a quarter. A bfloat16 has 2 bytes."""
    return 2 * ring_exchange_time(**params)


@exercise.misconception(of=ring_exchange_time)
def ring_exchange_shard(N, **rest):
    """Your answer is N times too small. V is the full array, not one chip's shard, and the ring's rule has no other 1/N."""
    return ring_exchange_time(N=N, **rest) / N


@exercise.misconception(of=line_exchange_time)
def line_exchange_as_ring(**params):
    """Your answer is too small by a factor of two. On this chip only an axis of 16 wraps around. So x is a line: a quarter of V crosses its middle wire each way, at W1."""
    return line_exchange_time(**params) / 2


@exercise.misconception(of=line_exchange_time)
def line_exchange_as_gather(chip, X, Y, I, J):
    """You used the all-gather's time on a line. Only a quarter of V has to cross the middle wire."""
    return all_gather_time(2 * I * J, X, chip, topology="line")


@exercise.misconception(of=line_exchange_time)
def line_exchange_half(**params):
    """Your answer is too large by a factor of two. A quarter of V crosses the middle to the right. At the same time a quarter crosses to the left. A bfloat16 has 2 bytes."""
    return 2 * line_exchange_time(**params)


@exercise.misconception(of=switch_exchange_time)
def switch_exchange_as_ring(N, **rest):
    """You used a quarter of the all-gather's time. This rule holds for a ring. Behind a switch no chip passes chunks on: use 1/N of the all-gather's time."""
    return N / 4 * switch_exchange_time(N=N, **rest)


@exercise.misconception(of=switch_exchange_time)
def switch_exchange_as_gather(N, **rest):
    """You used the all-gather's time. Each GPU sends V/N² bytes to each other GPU, not V/N bytes."""
    return N * switch_exchange_time(N=N, **rest)


@exercise.misconception(of=switch_exchange_time)
def switch_exchange_elements(**params):
    """Your answer is too small by a factor of two. A bfloat16 has two bytes, and the table's egress is one direction of a GPU's links."""
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


@exercise.misconception(of=ring_exchange_time)
def ring_exchange_as_gather_exact(N, **rest):
    """You used (N-1)/N · V/W, the all-gather's time. A chunk goes to one chip only: V/(4·W)."""
    return 4 * (N - 1) / N * ring_exchange_time(N=N, **rest)


@exercise.misconception(of=ring_exchange_time)
def ring_exchange_as_switch(N, **rest):
    """You used V/(N·W), the rule behind a switch. On a ring a chunk passes N/4 wires on average: V/(4·W)."""
    return 4 / N * ring_exchange_time(N=N, **rest)


@exercise.misconception(of=ring_exchange_time)
def ring_exchange_as_switch_exact(N, **rest):
    """You used (N-1)/N² · V/W, the rule behind a switch. On a ring a chunk passes N/4 wires on average: V/(4·W)."""
    return 4 * (N - 1) / N**2 * ring_exchange_time(N=N, **rest)


@exercise.misconception(of=ring_exchange_time)
def ring_exchange_own_chunk(N, **rest):
    """You used (N-1)/N of V. On an even ring V/(4·W) is exact: it already leaves out the chunks that stay."""
    return (N - 1) / N * ring_exchange_time(N=N, **rest)


@exercise.misconception(of=ring_exchange_time)
def ring_exchange_half_of_it(**params):
    """Your answer is too small by a factor of two. A bfloat16 has 2 bytes, and W already counts both directions."""
    return ring_exchange_time(**params) / 2


@exercise.misconception(of=line_exchange_time)
def line_exchange_whole(**params):
    """You sent all of V over the middle wire. Only chunks from one half to the other cross it, a quarter of V each way."""
    return 4 * line_exchange_time(**params)


@exercise.misconception(of=line_exchange_time)
def line_exchange_shard(X, **rest):
    """You took one chip's shard as V. V is the full array over the line."""
    return line_exchange_time(X=X, **rest) / X


@exercise.misconception(of=line_exchange_time)
def line_exchange_as_switch(X, **rest):
    """You counted the chunks of one chip, N-1. The middle wire also carries what other chips of its side send: N²/4 chunks."""
    return 4 * (X - 1) / X**2 * line_exchange_time(X=X, **rest)


@exercise.misconception(of=switch_exchange_time)
def switch_exchange_whole_node(chip, N, **rest):
    """You took N from the size of the node. Only the GPUs named in the question take part."""
    return switch_exchange_time(chip=chip, N=GPUS[chip].node, **rest)


@exercise.misconception(of=switch_exchange_time)
def switch_exchange_own_chunk(N, **rest):
    """You used V/N. A GPU keeps its own chunk and sends N-1 of its N chunks."""
    return N / (N - 1) * switch_exchange_time(N=N, **rest)


@exercise.misconception(of=switch_exchange_time)
def switch_exchange_one_chunk(N, **rest):
    """You counted one chunk. A GPU sends a chunk to each of the N-1 other GPUs."""
    return switch_exchange_time(N=N, **rest) / (N - 1)


@exercise.misconception(of=switch_exchange_time)
def switch_exchange_whole_array(N, **rest):
    """You sent all of V out of each GPU. A GPU holds V/N bytes and sends them once."""
    return N**2 / (N - 1) * switch_exchange_time(N=N, **rest)


@exercise.misconception(of=switch_exchange_time)
def switch_exchange_quarter(N, **rest):
    """You used a quarter of V. This rule holds for a ring. Behind a switch each GPU sends its own V/N, without the part that stays."""
    return N**2 / (4 * (N - 1)) * switch_exchange_time(N=N, **rest)


@exercise.misconception(of=switch_exchange_time)
def switch_exchange_doubled(**params):
    """Your answer is too large by a factor of two. A bfloat16 has two bytes, and the table's egress is already one direction: do not halve it."""
    return 2 * switch_exchange_time(**params)


@exercise.misconception(of=torus_exchange_time)
def torus_exchange_chips_added(X, Y, **rest):
    """You took X + Y for the number of chips. The mesh has X · Y chips."""
    return X * Y / (X + Y) * torus_exchange_time(X=X, Y=Y, **rest)


@exercise.misconception(of=torus_exchange_time)
def torus_exchange_two_rings(X, **rest):
    """Your answer is too large. Along the longer axis X rings share the array, and each ring moves V / X bytes. An all-to-all of V / X takes a quarter of the all-gather's time."""
    return X / 2 * torus_exchange_time(X=X, **rest)


@exercise.misconception(of=torus_exchange_time)
def torus_exchange_axes_added(X, Y, **rest):
    """You added the times of the axes. Both axes work at the same time: the longer axis counts."""
    return (X + Y) / Y * torus_exchange_time(X=X, Y=Y, **rest)


@exercise.misconception(of=torus_exchange_time)
def torus_exchange_one_way(**params):
    """Your answer is too large by a factor of two. W counts both directions of a link, and a bfloat16 has 2 bytes."""
    return 2 * torus_exchange_time(**params)


@exercise.misconception(of=torus_exchange_time)
def torus_exchange_half(**params):
    """Your answer is too small by a factor of two. A bfloat16 has 2 bytes, and along an axis a chip has one ring: W."""
    return torus_exchange_time(**params) / 2


@exercise.misconception(of=torus_exchange_time)
def torus_exchange_shard(Y, **rest):
    """You took one chip's part as V. The rings along the longer axis share the array: each ring moves V / X bytes."""
    return torus_exchange_time(Y=Y, **rest) / Y


@exercise.misconception(of=torus_exchange_time)
def torus_exchange_mean_axis(X, Y, **rest):
    """You used the mean of X and Y. The longer axis alone sets the time."""
    return (X + Y) / (2 * Y) * torus_exchange_time(X=X, Y=Y, **rest)


@exercise.misconception(of=line_exchange_time)
def line_exchange_cut_by_y(Y, **rest):
    """You divided by the chips along y. A is whole along y, so every line along x exchanges all of it."""
    return line_exchange_time(Y=Y, **rest) / Y


def traded(I, J, axes):
    """Return the array's shape and spec before and after an all-to-all that moves the axes from its rows to its columns."""
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
