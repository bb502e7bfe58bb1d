"""What goes wrong in D6."""

from d6_gpu_network import (
    cluster_exchange,
    cluster_many_nodes,
    cluster_one_node,
    cluster_sharp,
    cluster_time,
    exercise,
    gpu_least_batch,
    node_gather_time,
    nodes_gather_time,
    ragged_exchange_time,
    sharp_reduce_time,
)
from grader.hardware import GPUS, all_reduce_time, all_to_all_time, tree_time


@exercise.misconception(of=cluster_time, fails=cluster_many_nodes)
def cluster_network_only(gpus, node, gpu_egress, node_egress, **rest):
    """You looked at the network only. With few nodes the switches inside them need longer: take the slower level."""
    fast = gpu_egress if gpus <= node or rest["kind"] == "sharp_all_reduce" else 1e30
    return cluster_time(gpus=gpus, node=node, gpu_egress=fast, node_egress=node_egress, **rest)


@exercise.misconception(of=cluster_time, fails=[cluster_many_nodes, cluster_sharp, cluster_exchange])
def cluster_flat(gpus, node, node_egress, **rest):
    """You took the cluster for one big node. Between nodes all GPUs of a node share its egress."""
    return cluster_time(gpus=gpus, node=gpus, node_egress=node_egress, **rest)


@exercise.misconception(of=cluster_time, fails=cluster_many_nodes)
def cluster_levels_added(gpus, node, gpu_egress, node_egress, kind, **rest):
    """You added the levels. They work at the same time on different parts, so the slower one counts."""
    both = {"gpu_egress": gpu_egress, "node_egress": node_egress}
    whole = cluster_time(kind=kind, gpus=gpus, node=node, **both, **rest)
    if gpus <= node or kind in ("all_to_all", "sharp_all_reduce"):
        return whole
    inside = cluster_time(kind=kind, gpus=node, node=node, **both, **rest)
    both["gpu_egress"] = 1e30
    return inside + cluster_time(kind=kind, gpus=gpus, node=node, **both, **rest)


@exercise.misconception(of=cluster_time, fails=[cluster_one_node, cluster_sharp])
def cluster_sharp_as_two_passes(kind, **rest):
    """You let an all-reduce in the switches take two passes. The switch adds, so every array goes up once: V / W."""
    return cluster_time(kind="all_reduce" if kind == "sharp_all_reduce" else kind, **rest)


@exercise.misconception(of=cluster_time, fails=[cluster_one_node, cluster_many_nodes, cluster_sharp, cluster_exchange])
def cluster_both_directions(gpu_egress, node_egress, **rest):
    """You doubled the bandwidth. Behind a switch a GPU receives as much as it sends, at the same time: count one direction."""
    return cluster_time(gpu_egress=2 * gpu_egress, node_egress=2 * node_egress, **rest)


@exercise.misconception(of=cluster_time, fails=cluster_exchange)
def cluster_dense_exchange(k, **rest):
    """You sent everything. In a ragged all-to-all only k of the parts have data: times min(k / parts, 1)."""
    return cluster_time(k=10**6, **rest)


@exercise.misconception(of=cluster_time, fails=cluster_exchange)
def cluster_ring_exchange(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """You took a quarter of an all-gather for the all-to-all. That is a ring's rule; behind switches it is 1/N, or 1/M of nodes."""
    right = cluster_time(kind, bytes, gpus, node, gpu_egress, node_egress, k)
    return right * (gpus if gpus <= node else gpus // node) / 4 if kind == "all_to_all" else right


@exercise.misconception(of=node_gather_time)
def node_gather_both_ways(**params):
    """You are a factor of two short: the NVLink figure of the data sheet counts both directions, egress is half; and a bfloat16 has 2 bytes."""
    return node_gather_time(**params) / 2


@exercise.misconception(of=node_gather_time)
def node_gather_all_of_it(chip, I, J):
    """You used V/W. Each GPU already has its own eighth: 7/8 of V comes in."""
    return 2 * I * J / GPUS[chip].egress


@exercise.misconception(of=node_gather_time)
def node_gather_in_bits(**params):
    """You took GB/s for gigabits per second. The table's figures are bytes."""
    return 8 * node_gather_time(**params)


@exercise.misconception(of=nodes_gather_time)
def nodes_gather_cards_in_bytes(chip, M, I, J):
    """You took the cards' 400 Gb/s for 400 GB/s. A byte has 8 bits: eight cards give a node 400 GB/s, not 3200."""
    return tree_time(2 * I * J, [(8, GPUS[chip].egress), (M, 3200e9)])


@exercise.misconception(of=nodes_gather_time)
def nodes_gather_one_card(M, **rest):
    """You used one network card, 50 GB/s. All eight of a node send at once."""
    return 8 * nodes_gather_time(M=M, **rest)


@exercise.misconception(of=nodes_gather_time)
def nodes_gather_all_of_it(chip, M, I, J):
    """You used V/W. Each node already has its own part: (M-1)/M of V comes in."""
    return 2 * I * J / 400e9


@exercise.misconception(of=nodes_gather_time)
def nodes_gather_added(chip, M, I, J):
    """You added the levels. They work at the same time on different parts, so the slower one counts."""
    return tree_time(2 * I * J, [(8, GPUS[chip].egress)]) + tree_time(2 * I * J, [(M, 400e9)])


@exercise.misconception(of=sharp_reduce_time)
def sharp_reduce_two_passes(chip, I, J):
    """You reduced without the switch's help. With it every GPU sends its array once and receives the sum once."""
    return all_reduce_time(2 * I * J, 8, chip, topology="switch")


@exercise.misconception(of=sharp_reduce_time)
def sharp_reduce_twice(**params):
    """You are a factor of two too slow: a reduce-scatter and an all-gather are what SHARP saves; each array goes up once."""
    return 2 * sharp_reduce_time(**params)


@exercise.misconception(of=sharp_reduce_time)
def sharp_reduce_without_own(**params):
    """You left out the own eighth. The switch needs every GPU's part of every element, so all of V goes up."""
    return 7 / 8 * sharp_reduce_time(**params)


@exercise.misconception(of=ragged_exchange_time)
def ragged_exchange_dense(chip, B, D, k):
    """You sent the empty places too. Only k of 8 experts of a token have data."""
    return all_to_all_time(2 * B * 8 * D, 8, chip, topology="switch")


@exercise.misconception(of=ragged_exchange_time)
def ragged_exchange_as_ring(**params):
    """You took a quarter of an all-gather. That is a ring's rule; behind a switch it is 1/N, here an eighth."""
    return 2 * ragged_exchange_time(**params)


@exercise.misconception(of=ragged_exchange_time)
def ragged_exchange_as_gather(**params):
    """You took the all-gather's time. Each GPU sends V/N² to each of the others, not V/N."""
    return 8 * ragged_exchange_time(**params)


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_sparse(**params):
    """You used the data sheet's figure with sparsity. Dense matmuls, and ours are dense, reach half of it."""
    return 2 * gpu_least_batch(**params)


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_in_node(chip, **rest):
    """You used the bandwidth inside a node. The GPUs are in many nodes, and the network between them is slower."""
    return gpu_least_batch(chip=chip, **rest) * 400e9 / GPUS[chip].egress


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_all_busy(E, k, **rest):
    """You let every expert compute on every token. All E experts' weights travel, but a token is computed by k of them."""
    return gpu_least_batch(E=1, k=1, **rest)


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_global(N, **rest):
    """That is the global batch. The question is about the tokens of one GPU."""
    return N * gpu_least_batch(N=N, **rest)


@exercise.misconception(of=gpu_least_batch)
def gpu_batch_one_card(**params):
    """You used one network card, 50 GB/s. What leaves a node goes over all eight of them."""
    return 8 * gpu_least_batch(**params)
