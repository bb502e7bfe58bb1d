import itertools
import math
from itertools import product
from math import prod


def made(strategies, devices, node, order, divides=True, counts=True, ones=True):
    sizes = dict(strategies)
    known = prod(n for n in sizes.values() if n > 0)
    for axis, n in sizes.items():
        if n == -1:
            sizes[axis] = devices // known
    if counts and (prod(sizes.values()) != devices):
        raise ValueError("devices")
    tp = sizes.get("tp", 1)
    if (divides and node % tp) or tp > node:
        raise ValueError("tp")
    return [(axis, sizes[axis]) for axis in order if axis in sizes and (ones or sizes[axis] != 1)]


def tp_in_front(strategies, devices, node):
    """mesh_for: tp_outermost"""
    return made(strategies, devices, node, ["tp", "cp", "pp", "dp_replicate", "dp_shard"])


def order_of_the_dict(strategies, devices, node):
    """mesh_for: in_the_order_given"""
    return made(strategies, devices, node, list(strategies))


def ones_left_out(strategies, devices, node):
    """mesh_for: axis_of_one_dropped"""
    return made(strategies, devices, node, ["pp", "dp_replicate", "dp_shard", "cp", "tp"], ones=False)


def tp_at_most_a_node(strategies, devices, node):
    """mesh_for: tp_only_smaller"""
    return made(strategies, devices, node, ["pp", "dp_replicate", "dp_shard", "cp", "tp"], divides=False)


def product_not_compared(strategies, devices, node):
    """mesh_for: product_not_asked"""
    return made(strategies, devices, node, ["pp", "dp_replicate", "dp_shard", "cp", "tp"], counts=False)


def shard_outside(strategies, devices, node):
    """mesh_for: replicas_inside"""
    return made(strategies, devices, node, ["pp", "dp_shard", "dp_replicate", "cp", "tp"])


def cp_outermost(strategies, devices, node):
    """mesh_for: cp_far_out"""
    return made(strategies, devices, node, ["cp", "pp", "dp_replicate", "dp_shard", "tp"])


def consecutive(mesh, axes):
    """groups: neighbours_in_rank"""
    size = prod(n for a, n in mesh if a in axes)
    ranks = list(range(prod(n for _, n in mesh)))
    return [ranks[i : i + size] for i in range(0, len(ranks), size)]


def same_along_the_axes(mesh, axes):
    """groups: the_other_axes"""
    found = {}
    for rank, at in enumerate(product(*(range(n) for _, n in mesh))):
        key = tuple(i for i, (a, _) in zip(at, mesh) if a in axes)
        found.setdefault(key, []).append(rank)
    return list(found.values())


def strided(mesh, axes):
    """groups: reshaped_not_moved"""
    size, count = prod(n for a, n in mesh if a in axes), prod(n for _, n in mesh)
    return [list(range(i, count, count // size)) for i in range(count // size)]


def first_axis_counts_fastest(mesh, axes):
    """groups: first_axis_fastest"""
    found = {}
    for rank, at in enumerate(product(*(range(n) for _, n in reversed(mesh)))):
        key = tuple(i for i, (a, _) in zip(at, reversed(mesh)) if a not in axes)
        found.setdefault(key, []).append(rank)
    return list(found.values())


def without_cp(what, mesh):
    """axes_for: cp_forgotten"""
    data = ("dp_replicate", "dp_shard")
    return tuple(a for a, _ in mesh if a in (data if what != "weights" else ("dp_shard",)))


def cp_in_the_batch(what, mesh):
    """axes_for: cp_reads_other_sequences"""
    of = {"weights": ("dp_shard", "cp")}
    return tuple(a for a, _ in mesh if a in of.get(what, ("dp_replicate", "dp_shard", "cp")))


def weights_over_all_data(what, mesh):
    """axes_for: replicas_cut_weights"""
    of = {"batch": ("dp_replicate", "dp_shard")}
    return tuple(a for a, _ in mesh if a in of.get(what, ("dp_replicate", "dp_shard", "cp")))


def batch_is_axis_0(what, mesh):
    """axes_for: first_axis_is_data"""
    of = {"loss": {"dp_replicate", "dp_shard", "cp"}, "weights": {"dp_shard", "cp"}}
    return (mesh[0][0],) if what == "batch" else tuple(a for a, _ in mesh if a in of[what])


def time_of_one_layer(T, L, B, D):
    """tp_outermost_time: of_one_layer"""
    return 4 * 2 * 2 * B * D * (T - 1) / T / 50e9


def time_inside_a_node(T, L, B, D):
    """tp_outermost_time: inside_the_node"""
    return 16 * L * B * D * (T - 1) / T / 450e9


def two_reductions_a_layer(T, L, B, D):
    """tp_outermost_time: one_pass"""
    return 2 * L * 2 * 2 * B * D * (T - 1) / T / 50e9


def nodes_without_cp(P, R, S, C, T):
    """nodes_of_a_weight: without_cp"""
    return S * T / 8


def each_axis_alone(mesh, axes):
    """groups: one_axis_of_several"""
    names = [n for n, _ in mesh]
    sizes = [s for _, s in mesh]
    out = []
    for axis in axes:
        found = {}
        for rank, place in enumerate(itertools.product(*map(range, sizes))):
            key = tuple(c for n, c in zip(names, place) if n != axis)
            found.setdefault(key, []).append(rank)
        out += found.values()
    return out


def rest_rounded_down(strategies, devices, node):
    """mesh_for: product_not_asked"""
    sizes = dict(strategies)
    known = math.prod(s for s in sizes.values() if s != -1)
    if not any(s == -1 for s in sizes.values()) and known != devices:
        raise ValueError("sizes")
    for name in sizes:
        if sizes[name] == -1:
            sizes[name] = devices // known
    if node % sizes.get("tp", 1):
        raise ValueError("tp")
    return [(n, sizes[n]) for n in ("pp", "dp_replicate", "dp_shard", "cp", "tp") if n in sizes]


def fixed_order(what, mesh):
    """axes_for: axes_in_a_fixed_order"""
    wanted = {
        "batch": ("dp_replicate", "dp_shard"),
        "loss": ("dp_replicate", "dp_shard", "cp"),
        "weights": ("dp_shard", "cp"),
    }[what]
    here = [n for n, _ in mesh]
    return tuple(n for n in wanted if n in here)


def tp_in_the_loss(what, mesh):
    """axes_for: tp_shares_the_loss"""
    wanted = {
        "batch": {"dp_replicate", "dp_shard"},
        "loss": {"dp_replicate", "dp_shard", "cp", "tp"},
        "weights": {"dp_shard", "cp"},
    }[what]
    return tuple(n for n, _ in mesh if n in wanted)


def _sized(strategies, devices, check=True):
    sizes = dict(strategies)
    known = math.prod(n for n in sizes.values() if n != -1)
    for axis, n in sizes.items():
        if n == -1:
            if check and devices % known:
                raise ValueError("does not divide")
            sizes[axis] = devices // known
    if check and math.prod(sizes.values()) != devices:
        raise ValueError("wrong number of devices")
    return sizes


def shards_outside_the_replicas(strategies, devices, node):
    """mesh_for: replicas_inside"""
    sizes = _sized(strategies, devices)
    if node % sizes.get("tp", 1):
        raise ValueError("tp does not fit a node")
    return [(a, sizes[a]) for a in ("pp", "dp_shard", "dp_replicate", "cp", "tp") if a in sizes]


def trivial_axes_dropped(strategies, devices, node):
    """mesh_for: axis_of_one_dropped"""
    sizes = _sized(strategies, devices)
    if node % sizes.get("tp", 1):
        raise ValueError("tp does not fit a node")
    return [(a, sizes[a]) for a in ("pp", "dp_replicate", "dp_shard", "cp", "tp") if sizes.get(a, 1) > 1]


def rounds_down(strategies, devices, node):
    """mesh_for: product_not_asked"""
    sizes = _sized(strategies, devices, check=False)
    if node % sizes.get("tp", 1):
        raise ValueError("tp does not fit a node")
    return [(a, sizes[a]) for a in ("pp", "dp_replicate", "dp_shard", "cp", "tp") if a in sizes]


def ranks_that_share_the_axes(mesh, axes):
    """groups: the_other_axes"""
    names, sizes = [a for a, _ in mesh], [n for _, n in mesh]
    found = {}
    for rank in range(math.prod(sizes)):
        left, at = rank, {}
        for name, n in zip(reversed(names), reversed(sizes)):
            left, at[name] = divmod(left, n)
        found.setdefault(tuple(at[a] for a in axes), []).append(rank)
    return list(found.values())


def sequences_cut_are_other_sequences(what, mesh):
    """axes_for: cp_reads_other_sequences"""
    wanted = {
        "batch": ("dp_replicate", "dp_shard", "cp"),
        "loss": ("dp_replicate", "dp_shard", "cp"),
        "weights": ("dp_shard", "cp"),
    }[what]
    return tuple(axis for axis, _ in mesh if axis in wanted)


def loss_over_the_data_axes(what, mesh):
    """axes_for: cp_forgotten"""
    if what in ("batch", "loss"):
        return tuple(a for a, _ in mesh if a.startswith("dp"))
    return tuple(a for a, _ in mesh if a in ("dp_shard", "cp"))


def network_not_shared(T, L, B, D):
    """tp_outermost_time: node_for_one"""
    return 4 * L * 2 * (B * D * 2) * (T - 1) / T / 400e9


def links_inside_the_node(T, L, B, D):
    """tp_outermost_time: inside_the_node"""
    return 4 * L * 2 * (B * D * 2) * (T - 1) / T / 450e9


def a_node_for_each_shard(P, R, S, C, T):
    """nodes_of_a_weight: packed"""
    return S
