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

Check your work: shardlings check k4_mesh_for
Notes on all exercises of this module: see README.md, or run shardlings show 11_types_and_meshes
The text "Going further" is below the code.
"""

import math


def mesh_for(strategies, devices, node):
    """Return the axes of a mesh, outermost first.

    Args: strategies: a dict from axis to size, in no particular order; a size of -1 means all devices that
        the other sizes leave. devices: number of devices. node: devices per node; it divides devices.
    Returns: a list such as [("dp_shard", 4), ("tp", 2)]. Raises ValueError if there is no such mesh.
    """
    # TODO: write this function
    raise NotImplementedError("mesh_for")


def groups(mesh, axes):
    """Return the groups of ranks that communicate in a collective over these axes.

    Args: mesh as mesh_for returns it; axes is a tuple of its names. Returns: a list of lists of ranks, in any order.
    """
    # TODO: write this function
    raise NotImplementedError("groups")


def axes_for(what, mesh):
    """Return the axes along which ranks have different data or shares of the loss, or over which FSDP gathers a weight.

    Args: what is "batch", "loss" or "weights"; mesh is a list of (axis, size) in any order. Returns: a tuple of names.
    """
    # TODO: write this function
    raise NotImplementedError("axes_for")


# Question tp_outermost_time [ms]
# A model has 36 layers on H100s, in nodes of 8, with tp=2 and dp_shard=16. In each layer a step
# has four all-reduces over tp, of activations bfloat16[4096, 7168]. By mistake tp is the
# outermost axis, so each GPU of a group is in a different node. The 8 GPUs of a node all-reduce
# at the same time and share 400 GB/s to other nodes. Inside the node, each GPU would have 450
# GB/s. How long do the all-reduces of a step take?
#
# Answer in ms (a bare number), or with a unit.
# Model: an all-reduce of V bytes over n GPUs takes 2·V·(n - 1)/n / w, where w is the bandwidth at
# which one GPU sends; nothing overlaps.
tp_outermost_time = None  # TODO: your answer


# Question nodes_of_a_weight [a number]
# A mesh is pp=2, dp_replicate=2, dp_shard=16, cp=8, tp=2, outermost first, with nodes of 8. Under
# FSDP, a group over the axes `axes_for("weights", mesh)` gathers a weight. In how many nodes does
# this group have ranks?
#
# Answer with a bare number.
# Model: ranks are numbered with the last axis fastest; a node has 8 consecutive ranks.
nodes_of_a_weight = None  # TODO: your answer


# ## Going further
#
# **A bad order.** If tp were outermost in the small case, [0, 8, 16, 24] would be a group of tp, with each rank in a
# different node.
#
# **In real systems.** Training frameworks build their meshes in this way. Some put `pp` outermost, others put the data
# axes outermost. Sums of the loss and gathers of FSDP also run over cp, although cp adds no sequences to the batch.
#
# **Read on.** E. Z. Yang's posts on meshes; the documentation of `init_device_mesh` and of `jax.make_mesh`.
