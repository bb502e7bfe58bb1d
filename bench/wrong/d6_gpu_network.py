# Learners do not check that the data sheet has a bandwidth or FLOPs.
# pyright: reportOptionalOperand=false

from grader.hardware import GPUS

FACTOR = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}


def _gather(V, gpus, node, wg, wn):
    if gpus <= node:
        return V * (gpus - 1) / gpus / wg
    M = gpus // node
    return V * max((node - 1) / node / wg, (M - 1) / M / wn)


def _exchange(V, gpus, node, wg, wn, k):
    n, w = (gpus, wg) if gpus <= node else (gpus // node, wn)
    return V * (n - 1) / n**2 / w * min(k / n, 1)


def reductions_like_gathers(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """cluster_time: cluster_reduced_once"""
    if kind == "all_to_all":
        return _exchange(bytes, gpus, node, gpu_egress, node_egress, k)
    if kind == "sharp_all_reduce":
        return bytes / (gpu_egress if gpus <= node else min(gpu_egress, node_egress))
    return _gather(bytes, gpus, node, gpu_egress, node_egress)


def levels_added(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """cluster_time: cluster_levels_added"""
    if kind == "all_to_all":
        return _exchange(bytes, gpus, node, gpu_egress, node_egress, k)
    M = max(gpus // node, 1)
    if kind == "sharp_all_reduce":
        return bytes / gpu_egress + (bytes / node_egress if M > 1 else 0)
    d = min(gpus, node)
    return FACTOR[kind] * bytes * ((d - 1) / d / gpu_egress + (M - 1) / M / node_egress)


def gpus_at_the_network(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """cluster_time: cluster_between_gpus"""
    if kind == "all_to_all":
        return _exchange(bytes, gpus, node, gpu_egress, node_egress, k)
    if kind == "sharp_all_reduce":
        return bytes / (gpu_egress if gpus <= node else min(gpu_egress, node_egress))
    d = min(gpus, node)
    outside = (gpus - 1) / gpus / node_egress if gpus > node else 0
    return FACTOR[kind] * bytes * max((d - 1) / d / gpu_egress, outside)


def exchange_like_a_gather(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """cluster_time: cluster_exchange_as_gather"""
    if kind == "all_to_all":
        n, w = (gpus, gpu_egress) if gpus <= node else (gpus // node, node_egress)
        return bytes * (n - 1) / n / w * min(k / n, 1)
    if kind == "sharp_all_reduce":
        return bytes / (gpu_egress if gpus <= node else min(gpu_egress, node_egress))
    return FACTOR[kind] * _gather(bytes, gpus, node, gpu_egress, node_egress)


def ragged_over_gpus(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """cluster_time: cluster_ragged_over_gpus"""
    if kind == "all_to_all":
        n, w = (gpus, gpu_egress) if gpus <= node else (gpus // node, node_egress)
        return bytes * (n - 1) / n**2 / w * min(k / gpus, 1)
    if kind == "sharp_all_reduce":
        return bytes / (gpu_egress if gpus <= node else min(gpu_egress, node_egress))
    return FACTOR[kind] * _gather(bytes, gpus, node, gpu_egress, node_egress)


def ragged_above_one(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """cluster_time: cluster_ragged_without_min"""
    if kind == "all_to_all":
        n, w = (gpus, gpu_egress) if gpus <= node else (gpus // node, node_egress)
        return bytes * (n - 1) / n**2 / w * k / n
    if kind == "sharp_all_reduce":
        return bytes / (gpu_egress if gpus <= node else min(gpu_egress, node_egress))
    return FACTOR[kind] * _gather(bytes, gpus, node, gpu_egress, node_egress)


def switch_adds_but_twice(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """cluster_time: cluster_sharp_as_two_passes"""
    if kind == "all_to_all":
        return _exchange(bytes, gpus, node, gpu_egress, node_egress, k)
    return (1 + kind.endswith("reduce")) * _gather(bytes, gpus, node, gpu_egress, node_egress)


def network_alone(kind, bytes, gpus, node, gpu_egress, node_egress, k):
    """cluster_time: cluster_network_only, cluster_sharp_by_node"""
    if kind == "all_to_all":
        return _exchange(bytes, gpus, node, gpu_egress, node_egress, k)
    if kind == "sharp_all_reduce":
        return bytes / (gpu_egress if gpus <= node else node_egress)
    if gpus <= node:
        return FACTOR[kind] * _gather(bytes, gpus, node, gpu_egress, node_egress)
    M = gpus // node
    return FACTOR[kind] * bytes * (M - 1) / M / node_egress


def whole_array_received(chip, I, J):
    """node_gather_time: node_gather_all_of_it"""
    return 2 * I * J / GPUS[chip].egress


def both_directions(chip, I, J):
    """node_gather_time: node_gather_both_ways"""
    return 2 * I * J * 7 / 8 / (2 * GPUS[chip].egress)


def shard_only(chip, I, J):
    """node_gather_time: node_gather_shard"""
    return 2 * I * J / 8 / GPUS[chip].egress


def _nodes(chip, M, I, J, f):
    V, wg, wn = 2 * I * J, GPUS[chip].egress, 8 * 400e9 / 8
    return sum(f(V * 7 / 8 / wg, V * (m - 1) / m / wn) for m in (2, M))


def levels_in_turn(chip, M, I, J):
    """nodes_gather_time: nodes_gather_added"""
    return _nodes(chip, M, I, J, lambda a, b: a + b)


def network_only(chip, M, I, J):
    """nodes_gather_time: nodes_gather_network_only"""
    return _nodes(chip, M, I, J, lambda a, b: b)


def inside_only(chip, M, I, J):
    """nodes_gather_time: nodes_gather_cards_in_bytes"""
    return _nodes(chip, M, I, J, lambda a, b: a)


def bits_for_bytes(chip, M, I, J):
    """nodes_gather_time: nodes_gather_cards_in_bytes"""
    V, wg, wn = 2 * I * J, GPUS[chip].egress, 8 * 400e9
    return sum(max(V * 7 / 8 / wg, V * (m - 1) / m / wn) for m in (2, M))


def one_card(chip, M, I, J):
    """nodes_gather_time: nodes_gather_one_card"""
    V, wg, wn = 2 * I * J, GPUS[chip].egress, 400e9 / 8
    return sum(max(V * 7 / 8 / wg, V * (m - 1) / m / wn) for m in (2, M))


def ordinary_reduce(chip, I, J):
    """sharp_reduce_time: sharp_reduce_two_passes"""
    return 2 * 2 * I * J * 7 / 8 / GPUS[chip].egress


def sharp_of_a_gather(chip, I, J):
    """sharp_reduce_time: sharp_reduce_without_own"""
    return 2 * I * J * 7 / 8 / GPUS[chip].egress


def sharp_up_and_down(chip, I, J):
    """sharp_reduce_time: sharp_reduce_twice"""
    return 2 * 2 * I * J / GPUS[chip].egress


def dense_exchange(chip, B, D, k):
    """ragged_exchange_time: ragged_exchange_dense"""
    return 2 * B * 8 * D * 7 / 64 / GPUS[chip].egress


def one_expert_of_bytes(chip, B, D, k):
    """ragged_exchange_time: ragged_exchange_one_place"""
    return k / 8 * 2 * B * D * 7 / 64 / GPUS[chip].egress


def ragged_as_gather(chip, B, D, k):
    """ragged_exchange_time: ragged_exchange_as_gather"""
    return k / 8 * 2 * B * 8 * D * 7 / 8 / GPUS[chip].egress


def ragged_k_times(chip, B, D, k):
    """ragged_exchange_time: ragged_exchange_as_gather"""
    return 2 * B * k * D * 7 / 8 / GPUS[chip].egress


def with_sparsity(chip, sheet, N, E, k):
    """gpu_least_batch: gpu_batch_sparse"""
    return E / k * 2 * GPUS[chip].bf16 / 400e9


def experts_forgotten(chip, sheet, N, E, k):
    """gpu_least_batch: gpu_batch_all_busy"""
    return GPUS[chip].bf16 / 400e9


def all_tokens(chip, sheet, N, E, k):
    """gpu_least_batch: gpu_batch_global"""
    return GPUS[chip].bf16 / 400e9 * E / k * N


def egress_of_a_gpu(chip, sheet, N, E, k):
    """gpu_least_batch: gpu_batch_in_node"""
    return GPUS[chip].bf16 / GPUS[chip].egress * E / k
