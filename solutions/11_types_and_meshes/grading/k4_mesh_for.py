"""K4: checks, misconceptions and alternatives."""

import itertools
import math
import operator

import numpy as np

from grader.exercise import Scenario
from grader.expect import Failure, expect_outcomes
from k4_mesh_for import axes_for, exercise, groups, mesh_for, nodes_of_a_weight, tp_outermost_time

AXES = ["pp", "dp_replicate", "dp_shard", "cp", "tp"]


def drawn(rng, count, needed, *, rest=None, near=False, one=False):
    """Draw strategies that have these axes and perhaps others, in any order.

    Args: rest: whether one size is -1; drawn if not given. near: tp and cp do not fit in a node together. one: the
    first axis has size 1.
    """
    while count:
        names = [axis for axis in AXES if axis in needed or rng.integers(2)]
        sizes = dict(zip(names, rng.choice([2, 3, 4, 6], len(names)).tolist(), strict=True))
        sizes |= {"tp": int(rng.choice([2, 4, 8]))} if "tp" in sizes else {}
        sizes |= {"cp": int(rng.choice([2, 4, 8]))} if "cp" in sizes else {}
        sizes |= {names[0]: 1} if one and names else {}
        devices = math.prod(sizes.values())
        if len(names) < 2 or devices % 8 or devices > 768 or (near and sizes["tp"] * sizes["cp"] <= 8):
            continue
        count -= 1
        if rng.integers(2) if rest is None else rest:
            sizes[names[rng.integers(len(names))]] = -1
        turned = {names[i]: sizes[names[i]] for i in rng.permutation(len(names))}
        yield {"strategies": turned, "devices": devices, "node": 8}


def no_mesh(rng):
    """Draw sizes that do not multiply to the number of devices, and groups of tp that do not fit in a node."""
    for case in drawn(rng, 40, ["tp", "dp_shard"]):
        for more in (8, case["devices"]):
            wrong = {**case, "devices": case["devices"] + more}
            try:
                mesh_for(**wrong)
            except ValueError:
                yield wrong
    for devices, strategies in [
        (192, {"dp_shard": -1, "tp": 16, "cp": 2}),
        (96, {"tp": -1, "pp": 2, "cp": 3}),
        (192, {"cp": 4, "tp": 3, "dp_shard": -1}),
        (96, {"dp_shard": 4, "tp": 6, "dp_replicate": 4}),
    ]:
        yield {"strategies": strategies, "devices": devices, "node": 8}


def meshes(rng, count):
    """Draw meshes with axes in any order and unequal sizes."""
    for _ in range(count):
        names = [AXES[i] for i in rng.permutation(len(AXES))][: int(rng.integers(3, 6))]
        yield list(zip(names, rng.choice([2, 3, 4, 5], len(names)).tolist(), strict=True))


def fibres(rng):
    """Draw meshes, each with a tuple of one or several of its axes, in any order."""
    for mesh in meshes(rng, 40):
        names = [axis for axis, _ in mesh]
        chosen = [names[i] for i in rng.permutation(len(names))][: int(rng.integers(1, 4))]
        yield {"mesh": mesh, "axes": tuple(chosen)}


@exercise.helper
def nodes_touched(mesh, axis, node):
    """Return the largest number of nodes that a group over the axis touches, and the distance between neighbouring
    ranks of the group."""
    names, shape = zip(*mesh, strict=True)
    ranks = np.arange(math.prod(shape)).reshape(shape)
    rows = np.moveaxis(ranks, names.index(axis), -1).reshape(-1, dict(mesh)[axis])
    return max(len(set(row.tolist())) for row in rows // node), math.prod(shape[names.index(axis) + 1 :])


@exercise.helper
def expect_mesh(seen, told):
    """Compare each mesh's axes and sizes; ``told(mesh, due, args)`` returns a further fault, if any."""
    for args, got, want in seen.outcomes:
        call = f"for {args['strategies']} on {args['devices']} devices, nodes of {args['node']}, it "
        try:
            mesh = [(axis, operator.index(size)) for axis, size in got.value]
            wrong = "" if sorted(mesh) == sorted(want.value) else f"returned {got.value}: wrong axes or sizes"
        except (TypeError, ValueError):
            wrong = f"raised {got.error}" if got.error else f"returned {got.value!r}, no list of (axis, size)"
        wrong = wrong or told(mesh, want.value, args)
        if wrong:
            raise Failure(call + wrong if seen.public else "a mesh of a hidden case is wrong", staff=call + wrong)


SMALL = {"strategies": {"tp": 4, "cp": 2, "dp_shard": -1}, "devices": 32, "node": 8}
LARGE = {"strategies": {"dp_shard": 3, "tp": 4, "dp_replicate": 2, "pp": 2}, "devices": 48, "node": 8}
ODD = {"strategies": {"dp_shard": -1, "pp": 3}, "devices": 15, "node": 5}
sized = exercise.cases(
    mesh_for, public=[SMALL, LARGE], hidden=lambda rng: [ODD, *drawn(rng, 60, []), *drawn(rng, 20, [], one=True)]
)
near = exercise.cases(
    mesh_for,
    public=[SMALL, {"strategies": {"cp": 4, "tp": 4, "pp": 2, "dp_shard": 3}, "devices": 96, "node": 8}],
    hidden=lambda rng: [
        *drawn(rng, 20, ["tp", "dp_shard"]), *drawn(rng, 20, ["tp", "cp", "dp_shard"]),
        *drawn(rng, 20, ["tp", "cp", "pp"], near=True),
    ],
)  # fmt: skip
inner = exercise.cases(mesh_for, public=[LARGE], hidden=lambda rng: drawn(rng, 40, ["dp_shard", "dp_replicate"]))
refused = exercise.cases(
    mesh_for,
    public=[
        {"strategies": {"tp": 4, "dp_shard": 3}, "devices": 24, "node": 8},
        {"strategies": {"tp": 16, "dp_shard": -1}, "devices": 64, "node": 8},
    ],
    hidden=no_mesh,
)
one_fibre = exercise.cases(
    groups,
    public=[
        {"mesh": [("dp_shard", 3), ("tp", 2)], "axes": ("tp",)},
        {"mesh": [("dp_shard", 3), ("tp", 2)], "axes": ("dp_shard",)},
        {"mesh": [("dp_replicate", 2), ("dp_shard", 3), ("cp", 2)], "axes": ("dp_replicate", "cp")},
    ],
    hidden=fibres,
)
FULL = [("pp", 2), ("dp_replicate", 3), ("dp_shard", 4), ("cp", 2), ("tp", 2)]
named = exercise.cases(
    axes_for,
    public=[{"what": what, "mesh": FULL} for what in ("batch", "loss", "weights")],
    hidden=lambda rng: [
        {"what": what, "mesh": mesh} for mesh, what in itertools.product(meshes(rng, 20), ["batch", "loss", "weights"])
    ],
)


@exercise.check(sized, points=0.25, public=True)
def mesh_sizes(seen):
    """mesh_for: an axis for each strategy, with its size"""
    expect_mesh(seen, lambda mesh, due, args: "")


@exercise.check(near, points=0.5, public=True)
def mesh_near(seen):
    """mesh_for: each group of tp in one node, each group of cp in as few nodes as possible"""

    def told(mesh, due, args):
        for axis in ("tp", "cp"):
            if axis in dict(mesh):
                count, least = (nodes_touched(one, axis, args["node"])[0] for one in (mesh, due))
                if count > least:
                    return f"returned {mesh}: a group of {axis} touches {count} nodes; {least} are enough"
        return ""

    expect_mesh(seen, told)


@exercise.check(inner, points=0.25, public=True)
def mesh_inner(seen):
    """mesh_for: dp_shard inside dp_replicate"""

    def told(mesh, due, args):
        apart = [nodes_touched(mesh, axis, args["node"])[1] for axis in ("dp_shard", "dp_replicate")]
        return "" if apart[0] < apart[1] else f"returned {mesh}: dp_replicate is inside dp_shard"

    expect_mesh(seen, told)


@exercise.check(refused, points=0.25, public=True, after=mesh_sizes)
def mesh_refused(seen):
    """mesh_for: ValueError if there is no such mesh"""
    expect_outcomes(seen)


@exercise.check(one_fibre, points=0.5, public=True)
def rank_groups(seen):
    """groups: the ranks that differ along the given axes only"""
    for args, got, want in seen.outcomes:
        try:
            found = sorted(sorted(operator.index(rank) for rank in group) for group in got.value)
        except (TypeError, ValueError):
            found = None
        if found != sorted(sorted(group) for group in want.value):
            it = f"raised {got.error}" if got.error else f"returned {got.value}"
            told = f"for the mesh {args['mesh']} and {args['axes']} it {it}, expected: {want.value}"
            raise Failure(told if seen.public else "the groups of a hidden case are wrong", staff=told)


@exercise.check(named, points=0.25, public=True)
def axes_by_name(seen):
    """axes_for: the axes of batch, loss and weights"""
    expect_outcomes(seen)


# -- what goes wrong ---------------------------------------------------------------------------


@exercise.misconception(of=mesh_for, fails=mesh_near, breaks="each group of tp is in one node")
def tp_outermost(strategies, devices, node):
    """You put tp outermost. Its ranks communicate most, but now each is in a different node. Put the axis that
    communicates most last."""
    mesh = mesh_for(strategies, devices, node)
    return [axis for axis in mesh if axis[0] == "tp"] + [axis for axis in mesh if axis[0] != "tp"]


@exercise.misconception(
    of=mesh_for, fails=[mesh_near, mesh_inner], breaks="groups of cp touch as few nodes as possible"
)
def in_the_order_given(strategies, devices, node):
    """You kept the order of the strategies, which is arbitrary. Order the axes by how much they communicate."""
    sizes = dict(mesh_for(strategies, devices, node))
    return [(axis, sizes[axis]) for axis in strategies]


@exercise.misconception(of=mesh_for, fails=mesh_near, breaks="groups of cp touch as few nodes as possible")
def cp_far_out(strategies, devices, node):
    """You put cp outside the data axes. cp communicates in each attention layer, so put it next to tp."""
    mesh = mesh_for(strategies, devices, node)
    return [axis for axis in mesh if axis[0] == "cp"] + [axis for axis in mesh if axis[0] != "cp"]


@exercise.misconception(of=mesh_for, fails=mesh_near, breaks="groups of cp touch as few nodes as possible")
def pp_innermost(strategies, devices, node):
    """You put pp innermost, so its groups use the links inside a node. Stages communicate least: put pp outside tp and
    cp."""
    mesh = mesh_for(strategies, devices, node)
    return [axis for axis in mesh if axis[0] != "pp"] + [axis for axis in mesh if axis[0] == "pp"]


@exercise.misconception(of=mesh_for, fails=mesh_inner, breaks="dp_shard is inside dp_replicate")
def replicas_inside(strategies, devices, node):
    """You put dp_replicate inside dp_shard. FSDP gathers weights over dp_shard in every layer, but gradients are summed
    over dp_replicate once a step. Put dp_shard inside."""
    order = ["pp", "dp_shard", "dp_replicate", "cp", "tp"]
    return sorted(mesh_for(strategies, devices, node), key=lambda axis: order.index(axis[0]))


@exercise.misconception(of=mesh_for, fails=mesh_refused, breaks="tp does not divide a node")
def tp_over_nodes(strategies, devices, node):
    """You let a group of tp span several nodes. A group must fit in one node, so tp must divide the node's size."""
    return mesh_for(strategies, devices, devices * math.prod(abs(size) for size in strategies.values()))


@exercise.misconception(of=mesh_for, fails=mesh_refused, breaks="tp does not divide a node")
def tp_only_smaller(strategies, devices, node):
    """You tested whether tp is smaller than a node. tp must divide the node's size: with tp=3 and nodes of 8 the third
    group is in two nodes."""
    sizes = dict(mesh_for(strategies, devices, devices * math.prod(abs(size) for size in strategies.values())))
    if sizes.get("tp", 1) > node:
        raise ValueError("tp is larger than a node")
    return list(sizes.items())


@exercise.misconception(of=mesh_for, fails=mesh_refused, breaks="sizes do not multiply to `devices`")
def product_not_asked(strategies, devices, node):
    """You did not test whether the sizes multiply to the number of devices. Some devices would have no place in the
    mesh, or several places."""
    known = math.prod(size for size in strategies.values() if size != -1)
    return mesh_for({a: devices // known if s == -1 else s for a, s in strategies.items()},
                    known * (devices // known if -1 in strategies.values() else 1), node)  # fmt: skip


@exercise.misconception(form_of=product_not_asked)
def product_asked_without_a_rest(strategies, devices, node):
    """Like `product_not_asked`, but this program omits the test only if a size is -1."""
    known = math.prod(size for size in strategies.values() if size != -1)
    return mesh_for(strategies, known * (devices // known) if -1 in strategies.values() else devices, node)


@exercise.misconception(
    of=mesh_for, fails=[mesh_inner, mesh_near, mesh_sizes], breaks="all devices that the other sizes leave"
)
def axis_left_negative(strategies, devices, node):
    """You left -1 in the mesh. Replace -1 by the number of devices divided by the product of the other sizes."""
    return [(axis, strategies[axis]) for axis, _ in mesh_for(strategies, devices, node)]


@exercise.misconception(of=mesh_for, fails=mesh_sizes, breaks="one axis for each strategy, also for size 1")
def axis_of_one_dropped(strategies, devices, node):
    """You dropped an axis of size 1. Each strategy has an axis, also of size 1, because code that reduces over an axis
    uses its name."""
    return [(axis, size) for axis, size in mesh_for(strategies, devices, node) if size > 1]


@exercise.misconception(of=groups, fails=rank_groups, breaks="the groups, in any order")
def neighbours_in_rank(mesh, axes):
    """You took consecutive ranks. Ranks are consecutive only along the last axis. List one group by hand: its ranks
    differ only along the given axes."""
    sizes = dict(mesh)
    size = math.prod(sizes[axis] for axis in axes)
    return np.arange(math.prod(sizes.values())).reshape(-1, size).tolist()


@exercise.misconception(of=groups, fails=rank_groups, breaks="the groups, in any order")
def reshaped_not_moved(mesh, axes):
    """You reshaped without moving the axes, so the ranks of each group are at equal distances for every choice of axes.
    Move the group's axes to the end, then reshape into rows."""
    sizes = dict(mesh)
    size = math.prod(sizes[axis] for axis in axes)
    return np.arange(math.prod(sizes.values())).reshape(size, -1).T.tolist()


@exercise.misconception(of=groups, fails=rank_groups, breaks="the groups, in any order")
def first_axis_fastest(mesh, axes):
    """You numbered the ranks with the first axis fastest. The last axis varies fastest: its ranks are consecutive."""
    return groups(mesh[::-1], axes)


@exercise.misconception(of=groups, fails=rank_groups, breaks="the groups, in any order")
def the_other_axes(mesh, axes):
    """You grouped the ranks that agree along these axes. The ranks of a group differ along these axes and agree along
    all others."""
    return groups(mesh, tuple(axis for axis, _ in mesh if axis not in axes))


@exercise.misconception(of=groups, fails=rank_groups, breaks="the groups, in any order")
def one_axis_of_several(mesh, axes):
    """You used one of several axes. A collective over two axes joins all ranks that differ along one or both of these axes."""
    return groups(mesh, axes[:1])


@exercise.misconception(
    of=axes_for, fails=axes_by_name, breaks=["axes over which shares of the loss", "FSDP gathers the parts of a weight"]
)
def cp_forgotten(what, mesh):
    """You left out cp. cp cuts sequences, so each rank has a share of the loss. FSDP also cuts weights over cp, because
    the ranks of cp would otherwise hold copies of them."""
    return tuple(axis for axis in axes_for(what, mesh) if axis != "cp")


@exercise.misconception(of=axes_for, fails=axes_by_name, breaks="axes along which ranks read different sequences")
def cp_reads_other_sequences(what, mesh):
    """You let each rank of cp read different sequences. The ranks of cp share one sequence, cut in parts, so cp does
    not enlarge the batch."""
    return axes_for("loss" if what == "batch" else what, mesh)


@exercise.misconception(of=axes_for, fails=axes_by_name, breaks="axes along which ranks read different sequences")
def first_axis_is_data(what, mesh):
    """You assumed that axis 0 is the data axis. Use the names: a mesh may begin with pp or any other axis."""
    return tuple(axis for i, (axis, _) in enumerate(mesh) if i == 0 or (what != "batch" and axis == "cp"))


@exercise.misconception(form_of=first_axis_is_data, breaks="axes along which ranks read different sequences")
def first_axis_is_the_batch(what, mesh):
    """Like `first_axis_is_data`, but only for the batch."""
    return (mesh[0][0],) if what == "batch" else axes_for(what, mesh)


@exercise.misconception(of=axes_for, fails=axes_by_name, breaks="axes over which FSDP gathers the parts")
def replicas_cut_weights(what, mesh):
    """You cut weights over dp_replicate. Ranks along dp_replicate hold copies of the weights."""
    return axes_for("loss" if what == "weights" else what, mesh)


@exercise.misconception(of=axes_for, fails=axes_by_name, breaks="in the order of `mesh` (any order)")
def axes_in_a_fixed_order(what, mesh):
    """You returned the axes in a fixed order. Return them in the mesh's order, which may be any."""
    return tuple(sorted(axes_for(what, mesh), key=AXES.index))


@exercise.misconception(of=axes_for, fails=axes_by_name, breaks="axes over which shares of the loss")
def tp_shares_the_loss(what, mesh):
    """You summed the loss over tp. The ranks of tp compute one loss together: it is equal on all of them."""
    found = axes_for(what, mesh)
    return tuple(axis for axis, _ in mesh if axis in found or (what, axis) == ("loss", "tp"))


@exercise.misconception(of=tp_outermost_time)
def inside_the_node(**drawn):
    """You used the 450 GB/s inside a node. With tp outermost every hop leaves the node."""
    return tp_outermost_time(**drawn) * 400 / 450 / 8


@exercise.misconception(of=tp_outermost_time)
def node_for_one(**drawn):
    """You gave all 400 GB/s of a node to one GPU. The 8 GPUs of a node are in 8 groups, which communicate at the same
    time: 50 GB/s each."""
    return tp_outermost_time(**drawn) / 8


@exercise.misconception(of=tp_outermost_time)
def one_pass(**drawn):
    """Your time is too short by a factor of two. A bfloat16 number has 2 bytes, and an all-reduce is a reduce-scatter
    and an all-gather."""
    return tp_outermost_time(**drawn) / 2


@exercise.misconception(of=tp_outermost_time)
def own_part_too(T, **rest):
    """You let each GPU send the whole array in each pass. A GPU sends (n - 1)/n of the array."""
    return tp_outermost_time(T=T, **rest) * T / (T - 1)


@exercise.misconception(of=tp_outermost_time)
def of_one_layer(L, **rest):
    """You gave the time of one layer. Multiply by the number of layers."""
    return tp_outermost_time(L=L, **rest) / L


@exercise.misconception(of=nodes_of_a_weight)
def without_cp(C, **rest):
    """You left cp out of the FSDP group. The ranks of cp would otherwise hold copies of the weights, so FSDP cuts
    weights over cp as well."""
    return nodes_of_a_weight(C=C, **rest) / C


@exercise.misconception(of=nodes_of_a_weight)
def packed(T, **rest):
    """Either: you put 8 ranks of the group in each node. tp is the inner axis, so a node has only 8 / tp ranks of one group. Or: you counted the ranks along dp_shard. The group includes cp, too."""
    return nodes_of_a_weight(T=T, **rest) / T


@exercise.misconception(of=nodes_of_a_weight)
def replicas_too(R, **rest):
    """You included dp_replicate. Each replica gathers its own copy of the weight."""
    return nodes_of_a_weight(R=R, **rest) * R


@exercise.misconception(of=nodes_of_a_weight)
def a_node_for_each(S, C, **rest):
    """You put each rank in a different node. Each node has 8 / tp ranks of the group."""
    return S * C


exercise.scenario(tp_outermost_time, lambda T, L, B, D: Scenario(mesh={"tp": T, "dp_shard": 16}))
exercise.scenario(
    nodes_of_a_weight,
    lambda P, R, S, C, T: Scenario(mesh={"pp": P, "dp_replicate": R, "dp_shard": S, "cp": C, "tp": T}),
)


# -- other styles ------------------------------------------------------------------------------


@exercise.alternative(of=mesh_for)
def data_outermost(strategies, devices, node):
    """Put the data axes outermost and pp inside them. Return each axis of the mesh as a list."""
    sizes = dict(strategies)
    for axis in sizes:
        if sizes[axis] == -1:
            others = 1
            for other in sizes:
                others *= sizes[other] if other != axis else 1
            sizes[axis] = devices // others
    total = 1
    for size in sizes.values():
        total *= size
    if total != devices:
        raise ValueError("no mesh")
    if "tp" in sizes and node % sizes["tp"] != 0:
        raise ValueError("tp")
    order = ["dp_replicate", "dp_shard", "pp", "cp", "tp"]
    return [[axis, sizes[axis]] for axis in order if axis in sizes]


@exercise.alternative(of=mesh_for)
def cp_innermost(strategies, devices, node):
    """Put cp innermost if tp · cp ranks fill nodes evenly, otherwise tp. Put pp directly after dp_replicate."""
    sizes = dict(strategies)
    left = devices
    for size in sizes.values():
        if size != -1:
            if left % size:
                raise ValueError("no mesh")
            left //= size
    for axis in sizes:
        if sizes[axis] == -1:
            sizes[axis], left = left, 1
    if left != 1 or node % sizes.get("tp", 1):
        raise ValueError("no mesh")
    order = ["dp_replicate", "pp", "dp_shard", "cp", "tp"]
    if node % (sizes.get("tp", 1) * sizes.get("cp", 1)) == 0:
        order = ["dp_replicate", "pp", "dp_shard", "tp", "cp"]
    return tuple((axis, sizes[axis]) for axis in order if axis in sizes)


@exercise.alternative(of=groups)
def by_coordinates(mesh, axes):
    """Sort the ranks by their coordinates along the other axes, without arrays."""
    found = {}
    for rank in range(math.prod(size for _, size in mesh)):
        left, key = rank, []
        for axis, size in reversed(mesh):
            left, at = divmod(left, size)
            key.append(None if axis in axes else at)
        found.setdefault(tuple(key), []).append(rank)
    return list(found.values())


@exercise.alternative(of=axes_for)
def by_if(what, mesh):
    """Loop over the mesh's axes, and choose axes with if-statements."""
    found = []
    for axis, _ in mesh:
        if axis == "dp_shard" or (axis == "cp" and what != "batch") or (axis == "dp_replicate" and what != "weights"):
            found.append(axis)
    return found
