"""# A1 The shape that one device holds

A sharding cuts an array into equal blocks, and each device of the mesh holds one block. In `A[I_X, J]` the subscript X
says that mesh axis `x` cuts the rows. No axis cuts the columns. JAX writes this sharding as `P("x", None)`, with one
entry for each dimension.

```
    A[I_X, J] with 8 rows         y=0          y=1          y=2
    on the mesh x=2, y=3   x=0   rows 0:4     rows 0:4     rows 0:4
                           x=1   rows 4:8     rows 4:8     rows 4:8
```

**Write** `local_shape(shape, spec, mesh_shape)`. It returns the shape of the block that one device holds.

| | type | meaning |
|---|---|---|
| `shape` | tuple of ints | shape of the whole array |
| `spec` | `PartitionSpec` | an entry is `None` (no axis cuts the dimension), an axis, or a tuple of axes that all cut the dimension |
| `mesh_shape` | dict | size of each mesh axis, for example `{"x": 4, "y": 2}` |
| returns | tuple of ints | shape of one block |

**What is checked**

| check | rule | small case |
|---|---|---|
| an axis cuts only the dimension whose entry names it | size of the dimension / size of the axis | `P(None, "y")`: (24, 5) |
| every axis of a tuple cuts the tuple's dimension | size of the dimension / product of the axis sizes | `P(("x", "y"))`: (3, 10) |
| `ValueError` when a dimension does not divide evenly | size % product ≠ 0 | 26 rows by `("x", "y")`: error |

The spec may have fewer entries than the array has dimensions: no axis cuts the dimensions without an entry. Along an
axis that the spec does not name, devices hold copies. Axes may have any names. The sizes of the block are ints: 3, not
3.0.

**Symbols.** X, Y, Z: sizes of the mesh axes x, y, z. `A[I_XY, J]`: both x and y cut the rows, `P(("x", "y"), None)`.

**Small case.** The shape is (24, 10) on the mesh x=4, y=2, z=3. For `A[I_XY, J]`, 24 / (4 · 2) = 3, so a block has the
shape (3, 10). The spec does not name z, so three devices hold each block.

Check your work: shardlings check a1_local_shape
Notes on all exercises of this module: see README.md, or run shardlings show 01_layout
The text "Going further" is below the code.
"""

import math


def local_shape(shape, spec, mesh_shape):
    """Return the shape of the block that one device holds.

    Args: shape is a tuple of ints, spec a PartitionSpec, mesh_shape the size of every axis, such as {"x": 4, "y": 2}.
    Returns: a tuple of ints.
    """
    # TODO: write this function
    raise NotImplementedError("local_shape")


# Question local_load_time [us]
# `A` is float32[4096, 2048], sharded `A[I_XY, J]` on a mesh of v5p chips with x=4, y=4, z=16. How
# long does one chip need to read its block from HBM?
#
# Answer in us (a bare number), or with a unit.
# Model: HBM bandwidth only: time = bytes / bandwidth.
# Hardware: v5p: HBM 96 GB at 2.8e12 B/s; table 2026-11, from How To Scale Your Model of
# 2025-02-04.
local_load_time = None  # TODO: your answer


# ## Going further
#
# **In real systems.** Code inside `shard_map` sees this shape, and out-of-memory messages print it.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them".
