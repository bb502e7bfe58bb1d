"""# K4 A mesh for given strategies

A mesh is numbered like an array: the last axis varies fastest. With pp=2, dp_shard=3 and tp=4, rank 17 is at (1, 1, 1).
A node holds consecutive ranks, and links inside a node are much faster. So the order of the axes decides which groups
use the fast links.

| axis | cuts | communication |
|---|---|---|
| `pp` | layers | activations between neighbouring stages, seldom |
| `dp_replicate` | the batch | gradients, once a step |
| `dp_shard` | the batch, the weights (FSDP) | weights, in each layer |
| `cp` | sequences, the weights (FSDP) | keys and values, in each layer |
| `tp` | matrices | activations, often in each layer |

```
   dp_shard=3, tp=2    tp=0 tp=1    groups over tp        [0 1] [2 3] [4 5]
          dp_shard=0     0    1     groups over dp_shard  [0 2 4] [1 3 5]
          dp_shard=1     2    3
          dp_shard=2     4    5     nodes of 2 hold whole tp groups
```

**Write** three functions. A mesh is a list of (axis, size), outermost first.

| | returns |
|---|---|
| `mesh_for(strategies, devices, node)` | a mesh; in `strategies`, at most one size is −1: all devices that the other sizes leave |
| `groups(mesh, axes)` | lists of ranks that differ along `axes` only |
| `axes_for(what, mesh)` | axes for `"batch"`, `"loss"` or `"weights"`, in the order of `mesh` (any order) |

**What is checked**

| check | rule |
|---|---|
| `mesh_for`: sizes | one axis for each strategy, also for size 1 |
| `mesh_for`: near | each group of tp is in one node; on this condition, groups of cp touch as few nodes as possible |
| `mesh_for`: inner | dp_shard is inside dp_replicate |
| `mesh_for`: refused | `ValueError`: sizes do not multiply to `devices`, or tp does not divide a node |
| `groups` | the groups, in any order |
| `axes_for` | batch: axes along which ranks read different sequences |
| | loss: axes over which shares of the loss and of the gradients must be summed |
| | weights: axes over which FSDP gathers the parts of a weight |

`mesh_for` may put the other axes in any order.

**Symbols.** In the questions P, R, S, C, T are the sizes of pp, dp_replicate, dp_shard, cp, tp. An array has V bytes, a
group has n GPUs, and one GPU sends w bytes/s.

**Small case.** `{"tp": 4, "cp": 2, "dp_shard": -1}` on 32 devices in nodes of 8 gives dp_shard=4, cp=2, tp=4. A group
of cp, such as [0, 4], stays in a node.

## Going further

**A bad order.** If tp were outermost in the small case, [0, 8, 16, 24] would be a group of tp, with each rank in a
different node.

**In real systems.** Training frameworks build their meshes in this way. Some put `pp` outermost, others put the data
axes outermost. Sums of the loss and gathers of FSDP also run over cp, although cp adds no sequences to the batch.

**Read on.** E. Z. Yang's posts on meshes; the documentation of `init_device_mesh` and of `jax.make_mesh`.
"""

import math

import numpy as np

from grader.exercise import Exercise

exercise = Exercise(stars=2, extension=True)


@exercise.function(
    hints=[
        "Which axis communicates most? Put it last, so that its ranks are neighbours. Compute the sizes first.",
        "From the outermost: pp, dp_replicate, dp_shard, cp, tp, if they are in strategies. A size of -1 becomes devices // (product of the other sizes).",
        "sizes = {axis: strategies[axis] for axis in ORDER if axis in strategies}; node % sizes.get('tp', 1) must be 0",
    ]
)
def mesh_for(strategies, devices, node):
    """Return the axes of a mesh, outermost first.

    Args: strategies: a dict from axis to size, in no particular order; a size of -1 means all devices that
        the other sizes leave. devices: number of devices. node: devices per node; it divides devices.
    Returns: a list such as [("dp_shard", 4), ("tp", 2)]. Raises ValueError if there is no such mesh.
    """
    known = math.prod(size for size in strategies.values() if size != -1)
    rest = devices // known if -1 in strategies.values() else 1
    if known * rest != devices:
        raise ValueError(f"{strategies} do not multiply to {devices}")
    sizes = {axis: rest if size == -1 else size for axis, size in strategies.items()}
    if node % sizes.get("tp", 1):
        raise ValueError("a group of tp would not fit in one node")
    return [(axis, sizes[axis]) for axis in ("pp", "dp_replicate", "dp_shard", "cp", "tp") if axis in sizes]


@exercise.function(
    hints=[
        "Write the ranks into an array of the mesh's shape. Which dimensions do the ranks of one group run along?",
        "Move the dimensions of the given axes to the end, then reshape the array into rows, each with as many ranks as a group.",
        "np.moveaxis(ranks, moved, range(-len(moved), 0)).reshape(-1, size).tolist()",
    ]
)
def groups(mesh, axes):
    """Return the groups of ranks that communicate in a collective over these axes.

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
        "Along which axes do ranks have different tokens? Are these tokens in different sequences, or in different parts of one sequence?",
        "cp cuts sequences, so each rank has a part of the loss. FSDP cuts a weight over all ranks that would hold copies of it, also over the ranks along cp.",
        '{"batch": (dp_replicate, dp_shard), "loss": these and cp, "weights": (dp_shard, cp)}, without axes that the mesh lacks',
    ]
)
def axes_for(what, mesh):
    """Return the axes along which ranks have different data or shares of the loss, or over which FSDP gathers a weight.

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
    params={"T": [2, 4, 8], "L": [36, 48], "B": [4096, 6144, 10240], "D": [5120, 7168]},
    model="an all-reduce of V bytes over n GPUs takes 2·V·(n - 1)/n / w, where w is the bandwidth at which one GPU sends; nothing overlaps",
    hints=[
        "Which bandwidth does one GPU have between nodes?",
        "8 GPUs share 400 GB/s, so each has 50 GB/s. Each all-reduce reduces V = 2 · B · D bytes.",
        "4 · L all-reduces · 2 · V · (T − 1) / T / (50 GB/s)",
    ],
)
def tp_outermost_time(T, L, B, D):
    """A model has {{ L }} layers on H100s, in nodes of 8, with tp={{ T }} and dp_shard=16. In each layer a step has
    four all-reduces over tp, of activations bfloat16[{{ B }}, {{ D }}]. By mistake tp is the outermost axis, so each
    GPU of a group is in a different node. The 8 GPUs of a node all-reduce at the same time and share 400 GB/s to other
    nodes. Inside the node, each GPU would have 450 GB/s. How long do the all-reduces of a step take?"""
    return 4 * L * 2 * (2 * B * D) * (T - 1) / T / (400e9 / 8)


@exercise.number(
    points=0.5,
    unit="",
    params={"P": [2, 4], "R": [2, 4], "S": [8, 16, 24, 32, 48, 64], "C": [2, 4, 8], "T": [2, 4]},
    where=lambda P, R, S, C, T: C != T == R and P * R * S * C * T <= 4096,
    model="ranks are numbered with the last axis fastest; a node has 8 consecutive ranks",
    hints=[
        "Over which axes are weights gathered, and how far apart are the ranks of one group?",
        "Weights are gathered over dp_shard and cp. tp is inside these axes, and pp and dp_replicate are outside. So one group lies within S · C · T consecutive ranks.",
        "S · C · T / 8, with 8 ranks in each node",
    ],
)
def nodes_of_a_weight(P, R, S, C, T):
    """A mesh is pp={{ P }}, dp_replicate={{ R }}, dp_shard={{ S }}, cp={{ C }}, tp={{ T }}, outermost first, with nodes
    of 8. Under FSDP, a group over the axes `axes_for("weights", mesh)` gathers a weight. In how many nodes does this
    group have ranks?"""
    return S * C * T / 8
