"""Checks and misconceptions of D6."""

from types import SimpleNamespace

from jax.sharding import PartitionSpec as P

from d6_gpu_network import (
    cluster_time,
    exercise,
    gpu_least_batch,
    node_gather_time,
    nodes_gather_time,
    ragged_exchange_time,
    sharp_reduce_time,
)
from grader.exercise import Scenario, larger
from grader.expect import expect_outcomes
from grader.hardware import GPUS, all_reduce_time, all_to_all_time, tree_time


def job(kind, gpus, megabytes=33, node=8, gpu_egress=450e9, node_egress=400e9, k=10**6):
    return {
        "kind": kind, "bytes": megabytes * 10**6, "gpus": gpus, "node": node, "gpu_egress": gpu_egress,
        "node_egress": node_egress, "k": k,
    }  # fmt: skip


def drawn(rng, kinds, sizes, ragged=True):
    """Draw cases. A size up to 1 is a share of a node's GPUs, a size from 2 is a number of nodes.

    ``ragged`` makes k small. Only all-to-alls use k.
    """
    for kind in kinds * 8:
        for name in ("H100", "B200", "GB200 NVL72"):
            row, size = GPUS[name], rng.choice(sizes)
            gpus = int(row.node * size)
            k = int(rng.integers(1, 10)) if ragged else 10**6
            assert row.node_egress
            yield job(kind, gpus, int(rng.integers(1, 900)), row.node, row.egress, row.node_egress, k)


IN_NODE, NODES = [0.25, 0.5, 0.75, 1], [2, 3, 4, 8, 16, 32]
GATHERS = ["all_gather", "reduce_scatter", "all_reduce"]
one_node = exercise.cases(
    cluster_time,
    public=[job("all_gather", 8), job("all_reduce", 4), job("sharp_all_reduce", 8)],
    hidden=lambda rng: drawn(rng, [*GATHERS, "sharp_all_reduce"], IN_NODE),
)
many_nodes = exercise.cases(
    cluster_time,
    public=[job("all_gather", 16), job("all_gather", 256), job("all_reduce", 64)],
    hidden=lambda rng: drawn(rng, GATHERS, NODES),
)
in_switches = exercise.cases(
    cluster_time,
    public=[job("sharp_all_reduce", 64)],
    hidden=lambda rng: drawn(rng, ["sharp_all_reduce"] * 3, NODES),
)
exchanges = exercise.cases(
    cluster_time,
    public=[job("all_to_all", 8), job("all_to_all", 32), job("all_to_all", 8, k=2)],
    hidden=lambda rng: [
        *drawn(rng, ["all_to_all"], IN_NODE, ragged=False), *drawn(rng, ["all_to_all"], NODES, ragged=False),
        *drawn(rng, ["all_to_all"], IN_NODE), *drawn(rng, ["all_to_all"], NODES),
    ],
)  # fmt: skip


@exercise.check(one_node, points=0.25, public=True)
def cluster_one_node(seen):
    """cluster_time: gathers and reductions inside one node"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(many_nodes, points=0.25, public=True)
def cluster_many_nodes(seen):
    """cluster_time: gathers and reductions over 2 to 32 nodes"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(in_switches, points=0.25)
def cluster_sharp(seen):
    """cluster_time: all-reduces over nodes whose switches add (SHARP)"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(exchanges, points=0.25)
def cluster_exchange(seen):
    """cluster_time: all-to-alls, dense and ragged, in one node and over many nodes"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.misconception(
    of=cluster_time, fails=cluster_many_nodes, breaks="gathers and reductions inside one node and over 2 to 32 nodes"
)
def cluster_network_only(gpus, node, gpu_egress, node_egress, **rest):
    """You counted the network only. With few nodes the switches inside the nodes need longer: take the slower level."""
    fast = gpu_egress if gpus <= node or rest["kind"] == "sharp_all_reduce" else 1e30
    return cluster_time(gpus=gpus, node=node, gpu_egress=fast, node_egress=node_egress, **rest)


@exercise.misconception(of=cluster_time, fails=[cluster_many_nodes, cluster_sharp, cluster_exchange])
def cluster_flat(gpus, node, node_egress, **rest):
    """You took the cluster as one big node. Between nodes all GPUs of a node share the node's egress."""
    return cluster_time(gpus=gpus, node=gpus, node_egress=node_egress, **rest)


@exercise.misconception(of=cluster_time, fails=cluster_many_nodes, breaks="V · max((d−1)/(d·Wg), (M−1)/(M·Wn))")
def cluster_levels_added(gpus, node, gpu_egress, node_egress, kind, **rest):
    """You added the levels. Both levels work at the same time on different parts: take the slower level."""
    both = {"gpu_egress": gpu_egress, "node_egress": node_egress}
    whole = cluster_time(kind=kind, gpus=gpus, node=node, **both, **rest)
    if gpus <= node or kind in ("all_to_all", "sharp_all_reduce"):
        return whole
    inside = cluster_time(kind=kind, gpus=node, node=node, **both, **rest)
    both["gpu_egress"] = 1e30
    return inside + cluster_time(kind=kind, gpus=gpus, node=node, **both, **rest)


@exercise.misconception(
    of=cluster_time, fails=[cluster_one_node, cluster_sharp], breaks="all-reduces over nodes whose switches add (SHARP)"
)
def cluster_sharp_as_two_passes(kind, **rest):
    """You let an all-reduce in the switches take two passes. The switch adds, so every array goes up once: V / W."""
    return cluster_time(kind="all_reduce" if kind == "sharp_all_reduce" else kind, **rest)


@exercise.misconception(
    of=cluster_time,
    fails=[cluster_one_node, cluster_many_nodes],
    breaks="all-reduces | twice a gather's time | twice a gather's time",
)
def cluster_reduced_once(kind, **rest):
    """You counted the all-reduce as one pass. An all-reduce is a reduce-scatter and an all-gather: twice the time."""
    return cluster_time(kind="all_gather" if kind == "all_reduce" else kind, **rest)


@exercise.misconception(
    of=cluster_time,
    fails=[cluster_one_node, cluster_many_nodes, cluster_sharp, cluster_exchange],
    breaks="gathers and reductions inside one node",
)
def cluster_both_directions(gpu_egress, node_egress, **rest):
    """You doubled the bandwidth. Behind a switch a GPU sends and receives equally much at the same time: count one direction."""
    return cluster_time(gpu_egress=2 * gpu_egress, node_egress=2 * node_egress, **rest)


@exercise.misconception(
    of=cluster_time, fails=cluster_exchange, breaks="A *ragged* all-to-all sends each row to at most k parts"
)
def cluster_dense_exchange(k, **rest):
    """You sent everything. In a ragged all-to-all only k of the parts have data: multiply by min(k / parts, 1)."""
    return cluster_time(k=10**6, **rest)


@exercise.misconception(
    of=cluster_time, fails=cluster_exchange, breaks="all-to-alls, dense and ragged, in one node and over many nodes"
)
def cluster_ring_exchange(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """You used a quarter of an all-gather for the all-to-all. This rule holds for a ring. Behind switches the all-to-all takes 1/N of an all-gather, or 1/M for M nodes."""
    right = cluster_time(kind, bytes, gpus, node, gpu_egress, node_egress, k)
    return right * (gpus if gpus <= node else gpus // node) / 4 if kind == "all_to_all" else right


def by_rules(call, **rules):
    """Return the right time of a call, but with ``rules`` in place of some of its parts.

    Args:
        rules: functions of the call: ``inside`` and ``between``, seconds per byte of the two levels; ``sharp``,
            bytes/s; ``parts``, ``egress`` and ``share`` of an all-to-all; ``times``, a factor of the whole time.
    """
    c = SimpleNamespace(**call)
    c.members, c.nodes = min(c.gpus, c.node), max(c.gpus // c.node, 1)
    c.parts, c.egress = (c.nodes, c.node_egress) if c.nodes > 1 else (c.members, c.gpu_egress)

    def rule(name, right):
        return rules[name](c) if name in rules else right

    volume = rule("times", 1) * c.bytes
    if c.kind == "all_to_all":
        parts = rule("parts", c.parts)
        return volume * (parts - 1) / (parts**2 * rule("egress", c.egress)) * rule("share", min(c.k / parts, 1))
    if c.kind == "sharp_all_reduce":
        return volume / rule("sharp", min(c.gpu_egress, c.egress))
    inside = rule("inside", (c.members - 1) / (c.members * c.gpu_egress))
    between = rule("between", (c.nodes - 1) / (c.nodes * c.node_egress))
    return volume * max(inside, between) * (2 if c.kind == "all_reduce" else 1)


@exercise.misconception(of=cluster_time, fails=cluster_many_nodes)
def cluster_inside_only(**call):
    """Either you left out the level between the nodes, or you multiplied a node's egress by its GPUs. `node_egress` is the egress of the whole node, and with many nodes it sets the time."""
    return by_rules(call, between=lambda c: 0)


@exercise.misconception(of=cluster_time, fails=cluster_many_nodes)
def cluster_inside_of_all(**call):
    """You took N for d inside a node. There d GPUs share the array: a GPU receives (d-1)/d of V."""
    return by_rules(call, inside=lambda c: (c.gpus - 1) / (c.gpus * c.gpu_egress))


@exercise.misconception(of=cluster_time, fails=cluster_many_nodes)
def cluster_between_gpus(**call):
    """You took N for M between the nodes. There M nodes share the array: a node receives (M-1)/M of V."""
    return by_rules(call, between=lambda c: (c.gpus - 1) / (c.gpus * c.node_egress) if c.nodes > 1 else 0)


@exercise.misconception(of=cluster_time, fails=cluster_one_node)
def cluster_whole_node(**call):
    """You used the size of the node in a collective of fewer GPUs. N counts the GPUs that take part."""
    return by_rules(call, inside=lambda c: (c.node - 1) / (c.node * c.gpu_egress))


@exercise.misconception(of=cluster_time, fails=[cluster_one_node, cluster_sharp])
def cluster_sharp_own_part(**call):
    """You used (N-1)/N of V. With SHARP the switch needs every GPU's part of every element: all of V goes up."""
    return by_rules(call, times=lambda c: (c.gpus - 1) / c.gpus if c.kind == "sharp_all_reduce" else 1)


@exercise.misconception(of=cluster_time, fails=[cluster_one_node, cluster_sharp])
def cluster_sharp_doubled(**call):
    """You counted two passes with SHARP. Arrays go up while the sum comes down, so V counts once."""
    return by_rules(call, times=lambda c: 2 if c.kind == "sharp_all_reduce" else 1)


@exercise.misconception(of=cluster_time, fails=cluster_sharp)
def cluster_sharp_by_node(**call):
    """You used the node's egress for every SHARP all-reduce over nodes. The slower of the two levels counts: min(Wg, Wn)."""
    return by_rules(call, sharp=lambda c: c.egress)


@exercise.misconception(of=cluster_time, fails=cluster_sharp)
def cluster_sharp_by_gpu(**call):
    """You used a GPU's egress for a SHARP all-reduce over nodes. The slower of the two levels counts: min(Wg, Wn)."""
    return by_rules(call, sharp=lambda c: c.gpu_egress)


@exercise.misconception(of=cluster_time, fails=cluster_sharp)
def cluster_sharp_faster(**call):
    """You took the faster of the two levels with SHARP. The slower level counts: min(Wg, Wn)."""
    return by_rules(call, sharp=lambda c: max(c.gpu_egress, c.egress))


@exercise.misconception(of=cluster_time, fails=cluster_one_node)
def cluster_sharp_slower_in_node(**call):
    """You used the node's egress inside one node. There nothing leaves the node: V / Wg."""
    return by_rules(call, sharp=lambda c: min(c.gpu_egress, c.node_egress))


@exercise.misconception(of=cluster_time, fails=cluster_exchange)
def cluster_exchange_as_gather(**call):
    """You used the all-gather's time for the all-to-all. A GPU sends V/N² bytes to each other GPU, not V/N bytes."""
    return by_rules(call, times=lambda c: c.parts if c.kind == "all_to_all" else 1)


@exercise.misconception(of=cluster_time, fails=[cluster_one_node, cluster_many_nodes])
def cluster_ragged_gathers(**call):
    """You multiplied the time of a gather or reduction by min(k / parts, 1). k is for all-to-alls only."""
    ragged = call["kind"] in ("all_gather", "reduce_scatter", "all_reduce")
    return by_rules(call, times=lambda c: min(c.k / c.parts, 1) if ragged else 1)


@exercise.misconception(form_of=cluster_ragged_gathers)
def cluster_ragged_gathers_over_gpus(**call):
    """Like `cluster_ragged_gathers`, but this program counts GPUs as the parts, also over many nodes."""
    ragged = call["kind"] in ("all_gather", "reduce_scatter", "all_reduce")
    return by_rules(call, times=lambda c: min(c.k / c.gpus, 1) if ragged else 1)


@exercise.misconception(of=cluster_time, fails=[cluster_one_node, cluster_many_nodes])
def cluster_all_of_the_array(**call):
    """You moved all of V. A GPU already has its own part, and a node has its own part: count (d-1)/d and (M-1)/M of V."""
    return by_rules(call, inside=lambda c: 1 / c.gpu_egress, between=lambda c: 1 / c.node_egress if c.nodes > 1 else 0)


@exercise.misconception(of=cluster_time, fails=cluster_exchange)
def cluster_ragged_without_min(**call):
    """You multiplied by k / parts even if k is larger than the number of parts. No row has data for more parts than there are: min(k / parts, 1)."""
    return by_rules(call, share=lambda c: c.k / c.parts)


@exercise.misconception(of=cluster_time, fails=cluster_exchange)
def cluster_ragged_over_gpus(**call):
    """You divided k by the GPUs. Over many nodes the parts are nodes: min(k / M, 1)."""
    return by_rules(call, share=lambda c: min(c.k / c.gpus, 1))


@exercise.misconception(of=cluster_time, fails=cluster_exchange)
def cluster_ragged_over_node(**call):
    """You divided k by the size of a node. The parts are the GPUs that take part, or the nodes."""
    return by_rules(call, share=lambda c: min(c.k / c.node, 1))


@exercise.misconception(of=cluster_time, fails=cluster_exchange)
def cluster_exchange_at_gpu_egress(**call):
    """You used a GPU's egress for an all-to-all over nodes. Between nodes a node's egress counts."""
    return by_rules(call, egress=lambda c: c.gpu_egress)


@exercise.misconception(of=cluster_time, fails=cluster_exchange)
def cluster_exchange_over_gpus(**call):
    """You used N, the GPUs, in an all-to-all over nodes. Between nodes use M, the number of nodes: V·(M-1)/(M²·Wn)."""
    return by_rules(call, parts=lambda c: c.gpus)


@exercise.misconception(form_of=cluster_exchange_over_gpus)
def cluster_exchange_between_gpus(**call):
    """You took all GPUs as the parts of an all-to-all between nodes. There the nodes are the parts: V·(M-1)/(M²·Wn)."""
    return by_rules(call, parts=lambda c: c.gpus, share=lambda c: min(c.k / c.parts, 1))


@exercise.misconception(of=cluster_time, fails=[cluster_one_node, cluster_many_nodes])
def cluster_scatter_twice(**call):
    """You counted the reduce-scatter as two passes. Only an all-reduce has two passes."""
    return by_rules(call, times=lambda c: 2 if c.kind == "reduce_scatter" else 1)


@exercise.misconception(of=cluster_time, fails=cluster_one_node)
def cluster_one_node_doubled(**call):
    """You doubled a GPU's egress inside a node. A GPU sends and receives equally much at the same time: count one direction."""
    return by_rules(call, inside=lambda c: (c.members - 1) / (c.members * c.gpu_egress) / (1 if c.nodes > 1 else 2))


@exercise.misconception(of=node_gather_time)
def node_gather_both_ways(**params):
    """Your answer is too small by a factor of two. The NVLink figure of the data sheet counts both directions, and egress is half of it. A bfloat16 has 2 bytes."""
    return node_gather_time(**params) / 2


@exercise.misconception(of=node_gather_time)
def node_gather_all_of_it(chip, I, J):
    """You used all of V, or the egress of a node. Each GPU already has its own eighth and receives 7/8 of V, at its own egress."""
    return 2 * I * J / GPUS[chip].egress


@exercise.misconception(of=node_gather_time)
def node_gather_in_bits(**params):
    """Your answer is too large by a factor of eight. Either you took the array as one GPU's shard, or you read GB/s as gigabits per second."""
    return 8 * node_gather_time(**params)


def levels(chip, M, I, J, card=400e9):
    """Return (seconds in the nodes, seconds between the nodes) of the two all-gathers."""
    inside = tree_time(2 * I * J, [(8, GPUS[chip].egress)])
    return [(inside, tree_time(2 * I * J, [(nodes, card)])) for nodes in (2, M)]


@exercise.misconception(of=nodes_gather_time)
def nodes_gather_cards_in_bytes(**params):
    """You left out the level between the nodes, or read the cards' 400 Gb/s as 400 GB/s. A byte has 8 bits: eight cards give a node 400 GB/s, not 3200."""
    return sum(map(max, levels(**params, card=3200e9)))


@exercise.misconception(of=nodes_gather_time)
def nodes_gather_one_card(**params):
    """You used one network card, 50 GB/s. All eight cards of a node send at once."""
    return sum(map(max, levels(**params, card=50e9)))


@exercise.misconception(of=nodes_gather_time)
def nodes_gather_network_only(**params):
    """You counted the network only. Between two nodes only half of `A` travels, and the switches inside the nodes need longer."""
    return sum(between for _, between in levels(**params))


@exercise.misconception(of=nodes_gather_time)
def nodes_gather_all_of_it(chip, M, I, J):
    """You used V/W. Each node already has its own part: it receives (M-1)/M of V."""
    return 2 * 2 * I * J / 400e9


@exercise.misconception(of=nodes_gather_time)
def nodes_gather_added(**params):
    """You added the levels. Both levels work at the same time on different parts: take the slower level."""
    return sum(map(sum, levels(**params)))


@exercise.misconception(of=sharp_reduce_time)
def sharp_reduce_two_passes(chip, I, J):
    """You reduced without the switch. With SHARP every GPU sends its array once and receives the sum once."""
    return all_reduce_time(2 * I * J, 8, chip, topology="switch")


@exercise.misconception(of=sharp_reduce_time)
def sharp_reduce_twice(**params):
    """Your answer is too large by a factor of two. With SHARP each array goes up once. A bfloat16 has 2 bytes, and the table's egress is already one direction."""
    return 2 * sharp_reduce_time(**params)


@exercise.misconception(of=sharp_reduce_time)
def sharp_reduce_without_own(**params):
    """You left out the GPU's own eighth. The switch needs every GPU's part of every element, so all of V goes up."""
    return 7 / 8 * sharp_reduce_time(**params)


@exercise.misconception(of=ragged_exchange_time)
def ragged_exchange_dense(chip, B, D, k):
    """You sent the empty parts too. A token has data for only k of 8 experts."""
    return all_to_all_time(2 * B * 8 * D, 8, chip, topology="switch")


@exercise.misconception(of=ragged_exchange_time)
def ragged_exchange_as_ring(**params):
    """You used a quarter of an all-gather. This rule holds for a ring. Behind a switch an all-to-all takes 1/N of an all-gather, here an eighth."""
    return 2 * ragged_exchange_time(**params)


@exercise.misconception(of=ragged_exchange_time)
def ragged_exchange_as_gather(**params):
    """Your answer is too large by a factor of eight. Either you used the all-gather's time, or you multiplied by k in
    place of k / 8. Each GPU sends V/N² bytes to each other GPU, and k of 8 parts have data."""
    return 8 * ragged_exchange_time(**params)


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_sparse(**params):
    """You used the data sheet's figure with sparsity. Dense matmuls, as here, reach half of this figure."""
    return 2 * gpu_least_batch(**params)


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_in_node(chip, **rest):
    """You used the bandwidth inside a node. The GPUs are in many nodes, and the network between nodes is slower."""
    return gpu_least_batch(chip=chip, **rest) * 400e9 / GPUS[chip].egress


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_all_busy(E, k, **rest):
    """You let every expert compute on every token. The weights of all E experts travel, but only k experts compute on a token."""
    return gpu_least_batch(E=1, k=1, **rest)


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_one_expert(E, k, **rest):
    """You left out the experts per token. Each token computes with k experts, so fewer tokens are enough than with one expert."""
    return gpu_least_batch(E=E, k=1, **rest)


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_times_k(E, k, **rest):
    """You multiplied by the experts per token. More experts per token mean more arithmetic per token, so fewer tokens are enough: divide by k."""
    return k * gpu_least_batch(E=1, k=1, **rest)


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_global(N, **rest):
    """Your answer is the global batch. The question asks for the tokens of one GPU."""
    return N * gpu_least_batch(N=N, **rest)


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_one_card(**params):
    """You used one network card, 50 GB/s. A node sends over all eight of its cards."""
    return 8 * gpu_least_batch(**params)


@exercise.misconception(of=node_gather_time)
def node_gather_shard(**params):
    """You took one GPU's shard, V/8, as the bytes that it receives. A GPU receives the shards of the 7 other GPUs."""
    return node_gather_time(**params) / 7


@exercise.misconception(of=node_gather_time)
def node_gather_doubled(**params):
    """Your answer is too large by a factor of two. An all-gather is one pass. A bfloat16 has 2 bytes. The table's egress is already one direction."""
    return 2 * node_gather_time(**params)


@exercise.misconception(of=node_gather_time)
def node_gather_as_exchange(**params):
    """Your answer is 8 times too small. V is the gathered array, not one GPU's shard. In an all-gather each GPU sends its whole shard to each other GPU."""
    return node_gather_time(**params) / 8


@exercise.misconception(of=node_gather_time)
def node_gather_over_card(chip, I, J):
    """You used a network card, 50 GB/s. Inside a node data flows over the GPU's own links."""
    return 2 * I * J * 7 / 8 / 50e9


@exercise.misconception(of=nodes_gather_time)
def nodes_gather_twice(**params):
    """Your answer is twice the right one. A bfloat16 has 2 bytes, and an all-gather sends each part once, not twice like an all-reduce."""
    return 2 * nodes_gather_time(**params)


@exercise.misconception(of=nodes_gather_time)
def nodes_gather_large_only(**params):
    """You left out the all-gather over 2 nodes. The question asks for both jobs together."""
    return max(levels(**params)[1])


@exercise.misconception(of=nodes_gather_time)
def nodes_gather_whole_array(chip, M, I, J):
    """Your share of V is too large on one of the levels. Inside a node a GPU receives 7/8 of V, and between M nodes a node receives (M-1)/M of V."""
    return 2 * I * J * (7 / 8 / GPUS[chip].egress + 1 / 400e9)


@exercise.misconception(of=sharp_reduce_time)
def sharp_reduce_half(**params):
    """Your answer is too small by a factor of two. The NVLink figure of the data sheet counts both directions, and egress is half of it. A bfloat16 has 2 bytes."""
    return sharp_reduce_time(**params) / 2


@exercise.misconception(of=sharp_reduce_time)
def sharp_reduce_measured(chip, I, J):
    """You used the measured gain, 30 %. This question's model is V / egress."""
    return all_reduce_time(2 * I * J, 8, chip, topology="switch") / 1.3


@exercise.misconception(of=sharp_reduce_time)
def sharp_reduce_eighth(**params):
    """You sent one eighth of the array. Every GPU has a partial sum of the whole array and sends all of it."""
    return sharp_reduce_time(**params) / 8


@exercise.misconception(of=ragged_exchange_time)
def ragged_exchange_one_place(**params):
    """You took one part per token for the dense array. The dense array has 8 parts per token, one for each expert."""
    return ragged_exchange_time(**params) / 8


@exercise.misconception(of=ragged_exchange_time)
def ragged_exchange_half(**params):
    """Your answer is too small by a factor of two. The NVLink figure of the data sheet counts both directions, and egress is half of it. A bfloat16 has 2 bytes."""
    return ragged_exchange_time(**params) / 2


@exercise.misconception(of=ragged_exchange_time)
def ragged_exchange_one_place_dense(k, **rest):
    """You took one part per token for the dense array, and you left out the factor k / 8. The dense array has 8 parts per token, and k of them have data."""
    return ragged_exchange_time(k=k, **rest) / k


@exercise.misconception(of=ragged_exchange_time)
def ragged_exchange_own_part(**params):
    """Your answer is too large by about a seventh. Check three facts. A GPU keeps its own part, so (N-1)/N travels. The factor is k / 8, not k / 7. A GPU's egress counts, not a node's."""
    return 8 / 7 * ragged_exchange_time(**params)


@exercise.misconception(of=ragged_exchange_time)
def ragged_exchange_k_twice(k, **rest):
    """You counted k twice. The dense array has 8 parts per token, and the factor k / 8 leaves out the empty parts."""
    return k / 8 * ragged_exchange_time(k=k, **rest)


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_experts_upside_down(E, k, **rest):
    """You divided by the experts. More experts mean more weights to move for the same arithmetic: E / k."""
    return (k / E) ** 2 * gpu_least_batch(E=E, k=k, **rest)


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_cards_in_bytes(**params):
    """You read the cards' 400 Gb/s as 400 GB/s. A byte has 8 bits: eight cards give a node 400 GB/s, not 3200."""
    return gpu_least_batch(**params) / 8


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_half(**params):
    """Your answer is too small by a factor of two. A node's 400 GB/s are one way, and dense matmuls reach half of the data sheet's rate, not a quarter."""
    return gpu_least_batch(**params) / 2


exercise.scenario(node_gather_time, lambda chip, I, J: Scenario(mesh={"x": 8}, arrays=[((I, J), P("x"))]))
exercise.scenario(
    nodes_gather_time,
    lambda chip, M, I, J: Scenario(
        mesh={"gpu": 8, "few": 2, "node": M},
        arrays=[((I, J), P(("gpu", "few"))), ((I, J), P(("gpu", "node")))],
        branches=tuple(larger(inside=inside, between=between) for inside, between in levels(chip, M, I, J)),
    ),
)
exercise.scenario(sharp_reduce_time, lambda chip, I, J: Scenario(mesh={"x": 8}, arrays=[((I, J), P("x"))]))
exercise.scenario(
    ragged_exchange_time, lambda chip, B, D, k: Scenario(mesh={"x": 8}, arrays=[((B, 8, D), P("x")), ((8,), P("x"))])
)
exercise.scenario(
    gpu_least_batch,
    lambda chip, sheet, N, E, k: Scenario(mesh={"gpu": 8}, arrays=[((N,), P("gpu"))]),
    published=[2200, 2475, 2500, 5625],
)
