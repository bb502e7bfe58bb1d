"""# K4 A mesh for these strategies

A mesh is numbered like an array: the last axis varies fastest. With pp=2, dp_shard=3, tp=4 rank 17 is at (1, 1, 1).
A node holds consecutive ranks, and its inner links are several times as fast. So the order of the axes decides
which groups use which links.

| axis | cuts | communication |
|---|---|---|
| `pp` | layers | neighbouring stages, seldom |
| `dp_replicate` | the batch | all-reduce of gradients, once a step |
| `dp_shard` | the batch, and the weights (FSDP) | gathers and scatters of weights, in each layer |
| `cp` | sequences, and the weights (FSDP) | keys and values in each attention |
| `tp` | matrices | activations, several times in each layer |

```
   dp_shard=3, tp=2    tp=0 tp=1    groups over tp        [0 1] [2 3] [4 5]
          dp_shard=0     0    1     groups over dp_shard  [0 2 4] [1 3 5]
          dp_shard=1     2    3
          dp_shard=2     4    5     nodes of 2: each tp stays in one
```

**Write** three functions. A mesh is a list of (axis, size), outermost first.

| | returns |
|---|---|
| `mesh_for(strategies, devices, node)` | a mesh; a size of −1 (one at most) takes what the others leave |
| `groups(mesh, axes)` | lists of ranks that differ along these axes only |
| `axes_for(what, mesh)` | axes for `"batch"`, `"loss"` or `"weights"`, in the mesh's order, whatever that is |

**What is checked**

| check | rule |
|---|---|
| `mesh_sizes` | one axis for each strategy, also of size 1 |
| `mesh_near` | each group of tp is in one node; then groups of cp touch as few nodes as possible |
| `mesh_inner` | dp_shard is inside dp_replicate |
| `mesh_refused` | `ValueError`: sizes do not multiply to `devices`, or tp does not divide a node |
| `rank_groups` | the groups, in any order |
| `axes_by_name` | batch: along them ranks read different sequences |
| | loss: ranks have a share of the loss, and of the gradients, to sum |
| | weights: ranks hold different parts of a weight that FSDP gathers |

The rest of the order is your choice.

**Symbols.** P, R, S, C, T: sizes of pp, dp_replicate, dp_shard, cp, tp in the questions; V bytes of the array, n
GPUs of a group, w bytes/s that one GPU can send.

**Small case.** `{"tp": 4, "cp": 2, "dp_shard": -1}` on 32 devices, nodes of 8: dp_shard=4, cp=2, tp=4. A group of
cp, such as [0, 4], stays in a node. If tp were outermost, [0, 8, 16, 24] would be a group of tp, with each rank in
a different node.

## Going further

**In real systems.** Training frameworks build their meshes in this way, some with `pp` outermost, some with the
data axes. cp counts as data for the loss and for FSDP, although it adds no sequences to the batch.

**Read on.** E. Z. Yang's posts on meshes; the documentation of `init_device_mesh` and of `jax.make_mesh`.
"""

import math

import numpy as np

from grader.exercise import Exercise

exercise = Exercise(stars=2, extension=True)


@exercise.function(
    hints=[
        "Who talks most stands last: then its ranks are neighbours. Settle the sizes first.",
        "From the outermost: pp, dp_replicate, dp_shard, cp, tp, those that are asked for. -1 becomes devices // (product of the others).",
        "sizes = {axis: strategies[axis] for axis in ORDER if axis in strategies}; node % sizes.get('tp', 1) must be 0",
    ]
)
def mesh_for(strategies, devices, node):
    """The axes of a mesh, outermost first.

    Args:
        strategies: a dict from axis to size, in no particular order; a size of -1 is what the others leave.
        devices: in all. node: devices in a node; it divides devices.
    Returns: a list such as [("dp_shard", 4), ("tp", 2)]. Raises ValueError if there is no such mesh.
    """
    known = math.prod(size for size in strategies.values() if size != -1)
    rest = devices // known if -1 in strategies.values() else 1
    if known * rest != devices:
        raise ValueError(f"{strategies} do not multiply to {devices}")
    sizes = {axis: rest if size == -1 else size for axis, size in strategies.items()}
    if node % sizes.get("tp", 1):
        raise ValueError("a group of tp would not lie in one node")
    return [(axis, sizes[axis]) for axis in ("pp", "dp_replicate", "dp_shard", "cp", "tp") if axis in sizes]


@exercise.function(
    hints=[
        "Write the ranks into an array of the mesh's shape. Which dimensions do the ranks of one group run along?",
        "Move those dimensions to the end, then make rows of as many ranks as a group has.",
        "np.moveaxis(ranks, moved, range(-len(moved), 0)).reshape(-1, size).tolist()",
    ]
)
def groups(mesh, axes):
    """The groups of ranks that talk in a collective over these axes.

    Args: mesh as mesh_for returns it; axes is a tuple of its names. Returns: a list of lists of ranks, in any order.
    """
    names, shape = zip(*mesh, strict=True)
    ranks = np.arange(math.prod(shape)).reshape(shape)
    moved = [names.index(axis) for axis in axes]
    rows = np.moveaxis(ranks, moved, range(-len(moved), 0))
    size = math.prod(shape[axis] for axis in moved)
    return rows.reshape(ranks.size // size, size).tolist()


@exercise.function(
    hints=[
        "Which axes give a rank other tokens than its neighbour has? Other sequences, or another part of the same ones?",
        "cp cuts sequences, so each rank has a part of the loss; and FSDP cuts a weight over all ranks that would hold the same one.",
        '{"batch": (dp_replicate, dp_shard), "loss": these and cp, "weights": (dp_shard, cp)}, those that are in the mesh',
    ]
)
def axes_for(what, mesh):
    """The axes along which ranks have different data, shares of the loss, or parts of a weight.

    Args: what is "batch", "loss" or "weights"; mesh is a list of (axis, size) in any order. Returns: a tuple of names.
    """
    of = {
        "batch": {"dp_replicate", "dp_shard"},
        "loss": {"dp_replicate", "dp_shard", "cp"},
        "weights": {"dp_shard", "cp"},
    }
    return tuple(axis for axis, _ in mesh if axis in of[what])


@exercise.number(
    points=0.5,
    unit="ms",
    params={"T": [2, 4, 8], "L": [36, 60], "B": [4096, 6144, 10240], "D": [5120, 7168]},
    model="an all-reduce of V bytes over n GPUs takes 2·V·(n - 1)/n / w, where w is what one GPU can send; nothing overlaps",
    hints=[
        "Which bandwidth does one GPU have between nodes?",
        "8 GPUs share 400 GB/s, so each has 50 GB/s. Each all-reduce moves V = 2 · B · D bytes.",
        "4 · L all-reduces · 2 · V · (T − 1) / T / (50 GB/s)",
    ],
)
def tp_outermost_time(T, L, B, D):
    """{{ L }} layers on H100s, nodes of 8, with tp={{ T }} and dp_shard=16. In each layer a step has four all-reduces over tp, of activations bfloat16[{{ B }}, {{ D }}].
    By mistake tp is the outermost axis, so that no two GPUs of one of its groups share a node: the 8 GPUs of a node, which all-reduce at the
    same time, share 400 GB/s to other nodes instead of 450 GB/s each inside. How long do the all-reduces of a step take?"""
    return 4 * L * 2 * (2 * B * D) * (T - 1) / T / (400e9 / 8)


@exercise.number(
    points=0.5,
    unit="",
    params={"P": [2, 4], "R": [3, 5], "S": [8, 12, 16, 20, 24, 28], "C": [2, 4, 8], "T": [2, 4]},
    where=lambda P, R, S, C, T: C != T,
    model="ranks numbered with the last axis fastest, nodes of 8 consecutive ranks",
    hints=[
        "Over which axes are weights gathered, and how far apart are their ranks?",
        "Over dp_shard and cp. tp is inside of them and pp and dp_replicate are outside, so one group covers a stretch of S · C · T consecutive ranks.",
        "the stretch divided by 8 ranks for each node",
    ],
)
def nodes_of_a_weight(P, R, S, C, T):
    """On the mesh pp={{ P }}, dp_replicate={{ R }}, dp_shard={{ S }}, cp={{ C }}, tp={{ T }}, outermost first, with nodes of 8: in how many nodes are
    the ranks that gather one weight under FSDP, that is one group over the axes `axes_for("weights", mesh)`?"""
    return S * C * T / 8
