"""# K3 Two ways to write a layout

JAX lists for every *dimension* the mesh axes that cut it. PyTorch's DTensor lists for every *mesh axis*, in the order
of the mesh, what this axis does to the array. DTensor's entries apply from left to right. Each notation can express
layouts that the other cannot.

| | mesh dp=2, fsdp=3, tp=4, array of shape (24, 8) |
|---|---|
| JAX | `P(("dp", "fsdp"), None, unreduced={"tp"})` |
| DTensor | `["S(0)", "S(0)", "P"]` |

```
   12 rows, dp=2, fsdp=3           ("dp", "fsdp")      ("fsdp", "dp")
                                   S(0), S(0)          no list says this
   dp=0, fsdp=0 1 2                01  23  45          01  45  89
   dp=1, fsdp=0 1 2                67  89  ab          23  67  ab
```

`"S(d)"` cuts dimension d into equal parts. If earlier entries cut dimension d, `"S(d)"` cuts each of their parts. `"R"`
makes copies, and `"P"` means partial sums. In a tuple, the first axis makes the largest blocks.

**Write** two functions. `axes_of` is given.

| | given | return |
|---|---|---|
| `to_dtensor(spec, shape, mesh)` | a `PartitionSpec`; `mesh` is a dict from axis to size | one placement per mesh axis |
| `to_spec(placements, shape, mesh)` | one placement per mesh axis | the `PartitionSpec` |

Read a spec by `spec.partitions` (its entries) and `spec.unreduced` (axes with pending sums). JAX refuses to iterate
a spec with unreduced axes.

**What is checked**

| check | rule |
|---|---|
| both: cuts | axes that cut dimensions, each alone and several together |
| both: partial sums | unreduced axes |
| both: size 1 | an axis of size 1 keeps its entry and name |
| `to_dtensor`: order | `ValueError`: a tuple whose axes are not in the mesh's order |
| both: refused | `ValueError`: parts that are not equal, or an axis that is used twice |
| | a dimension that the array lacks (0 is the first; −1 is invalid), an axis that the mesh lacks |
| | a list with more or fewer placements than mesh axes; other placements, such as `"P(max)"` or `"SS(0, 3)"` |

Never return a layout that is only similar to the given one.

**Symbols.** In the questions an array has r dimensions and a mesh has k axes.

**Small case.** On the mesh above, `P(None, "tp")` is equivalent to `["R", "R", "S(1)"]`. For `P(("fsdp", "dp"))` the
function raises `ValueError`, because no list is equivalent. `["S(0)", "S(0)", "R"]` gives blocks of the right shapes,
but it cuts by dp first. So four of the six parts are on the wrong devices.

Check your work: shardlings check k3_dtensor
Notes on all exercises of this module: see README.md, or run shardlings show 11_types_and_meshes
The text "Going further" is below the code.
"""

from jax.sharding import PartitionSpec as P


def axes_of(entry):
    """None -> (), "x" -> ("x",), ("x", "y") -> ("x", "y")."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def to_dtensor(spec, shape, mesh):
    """Return the placements of the layout that a PartitionSpec describes.

    Args: spec, perhaps with unreduced axes; shape of the whole array; mesh is a dict from axis to size, in the mesh's order.
    Returns: a list with "R", "S(d)" or "P" for each axis of the mesh. Raises ValueError if no such list describes the
    layout.
    """
    # TODO: write this function
    raise NotImplementedError("to_dtensor")


def to_spec(placements, shape, mesh):
    """Return the PartitionSpec of the layout that a list of placements describes.

    Args: placements, one for each axis of the mesh; shape and mesh as in to_dtensor.
    Returns: a PartitionSpec. Raises ValueError if no spec describes the layout.
    """
    # TODO: write this function
    raise NotImplementedError("to_spec")


# Question specs_without_a_list [a number]
# An array of rank 3 is on a mesh of 3 axes, all larger than 1. Each axis cuts one dimension, is
# unreduced, or makes copies. Take all PartitionSpecs that describe such layouts. How many of them
# cannot be described by any list of `"R"`, `"S(d)"`, `"P"`?
#
# Answer with a bare number.
# Model: count the layouts that specs can express; tuples in different orders are different specs.
specs_without_a_list = None  # TODO: your answer


# Question scattered_gradient [a PartitionSpec]
# On a mesh dp=2, fsdp=3, tp=4 the gradient of a weight of shape (48, 96) is `P("fsdp", "tp",
# unreduced={"dp"})`. In `shard_map` each device calls `jax.lax.psum_scatter(g, "dp",
# scatter_dimension=0, tiled=True)` on its part `g`. Which PartitionSpec does the gradient have
# then?
#
# Answer with a PartitionSpec over dp, fsdp, tp, such as P('dp', None).
scattered_gradient = None  # TODO: your answer


# ## Going further
#
# **In real systems.** Programs convert checkpoints between the two notations. FSDP with tensor parallelism makes a tuple
# that is not in the mesh's order, because tp cuts the weight before fsdp does. For this case DTensor has its own
# placement, the strided shard.
#
# **Read on.** E. Z. Yang's posts on the two views of sharding; the pages on `PartitionSpec` and on DTensor's
# placements.
