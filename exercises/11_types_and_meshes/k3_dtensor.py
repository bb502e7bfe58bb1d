"""# K3 Two ways to say a layout

JAX says for every *dimension* which axes of the mesh cut it. PyTorch's DTensor says for every *axis of the mesh* what it does: a
list of placements in the order of the mesh, carried out from left to right.

| | mesh dp=2, fsdp=3, tp=4, array of shape (24, 8) |
|---|---|
| JAX | `P(("dp", "fsdp"), None, unreduced={"tp"})` |
| DTensor | `["S(0)", "S(0)", "P"]` |

`"S(d)"` cuts what is left of dimension d into equal parts, `"R"` leaves copies, `"P"` leaves summands of a partial sum. In a
tuple the first axis makes the largest blocks. Of a spec, `spec.partitions` has the entries and `spec.unreduced` the axes along which
sums are pending (a spec that has some refuses to be iterated). `axes_of` is given.

**Tasks.** `to_dtensor(spec, shape, mesh)` returns the list of placements, `to_spec(placements, shape, mesh)` the PartitionSpec. Where one
language cannot say what the other does, or no array can lie so, raise `ValueError`; never return something near it:

- a tuple whose axes do not stand in the mesh's order: from left to right, the list cannot say it;
- a dimension that its axes do not cut into equal parts;
- a dimension that the array has not (the first is 0, none is -1), an axis that the mesh has not, an axis used twice, a list that is not as long as the mesh;
- a placement that is none of `"R"`, `"S(d)"`, `"P"`: `"P(max)"` is no sum, and a `"SS(0, 3)"` cuts in strides.

An axis of size 1 is an axis like the others: it keeps its place and its name, for the next mesh may be larger.

```
   12 rows, dp=2, fsdp=3           ("dp", "fsdp")      ("fsdp", "dp")
                                   S(0), S(0)          no list says this
   dp=0, fsdp=0 1 2                01  23  45          01  45  89
   dp=1, fsdp=0 1 2                67  89  ab          23  67  ab
```

**Small case.** `P(None, "tp")` on the mesh above is `["R", "R", "S(1)"]`, and back. `P(("fsdp", "dp"))` raises `ValueError`: `["S(0)", "S(0)"]`
would hand four of the six parts to the wrong devices, and every shape would still be right.

**In real systems** checkpoints are converted between the two. FSDP over tensor parallelism makes such a tuple (tp has cut the
weight before FSDP does), and DTensor has a strided shard for it.

**Read on.** E. Z. Yang's posts on the two views of sharding; the pages on `PartitionSpec` and on DTensor's placements.

Check your work: shardlings check k3_dtensor
"""

from jax.sharding import PartitionSpec as P


def axes_of(entry):
    """None -> (), "x" -> ("x",), ("x", "y") -> ("x", "y")."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def to_dtensor(spec, shape, mesh):
    """The placements that say what a PartitionSpec says.

    Args: spec, perhaps with unreduced axes; shape of the whole array; mesh is a dict from axis to size, in the mesh's order.
    Returns: a list with "R", "S(d)" or "P" for each axis of the mesh. Raises ValueError if no such list says it.
    """
    # TODO: write this function
    raise NotImplementedError("to_dtensor")


def to_spec(placements, shape, mesh):
    """The PartitionSpec that says what a list of placements says; arguments as in to_dtensor. Raises ValueError if there is none."""
    # TODO: write this function
    raise NotImplementedError("to_spec")


# Question specs_without_a_list [a number]
# An array of rank 3 lies on a mesh of 3 axes, all larger than 1. Each axis cuts one dimension, or
# is unreduced, or leaves copies. How many of the PartitionSpecs for it can no list of `"R"`,
# `"S(d)"`, `"P"` say?
#
# Answer with a bare number.
# Model: layouts as specs can say them; tuples that differ in their order are different specs.
specs_without_a_list = None  # TODO: your answer


# Question scattered_gradient [a PartitionSpec]
# On a mesh dp=2, fsdp=3, tp=4 the gradient of a weight of shape (48, 96) is `P("fsdp", "tp",
# unreduced={"dp"})`. In `shard_map` each device calls `jax.lax.psum_scatter(g, "dp",
# scatter_dimension=0, tiled=True)` on what it holds. How does the gradient lie then?
#
# Answer with a PartitionSpec over dp, fsdp, tp, such as P('dp', None).
scattered_gradient = None  # TODO: your answer
