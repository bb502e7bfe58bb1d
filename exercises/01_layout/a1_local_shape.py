"""# A1 The shape that one device holds

A subscript names the mesh axis that cuts a dimension: in `A[I_X, J]` the rows are cut along axis `x` and the columns
are whole. JAX writes it `P("x", None)`, one entry per dimension.

**Task.** Write `local_shape(shape, spec, mesh_shape)`, the shape of one device's block.

- An entry of the spec is `None` (whole), an axis, or a tuple of axes (the dimension is cut by all of them).
- The spec may be shorter than the shape: the dimensions it leaves out are whole.
- An axis that the spec does not name cuts nothing; along it devices hold copies.
- When a dimension cannot be cut into equal blocks, raise `ValueError`.

```
    A[I_X, J] with 8 rows         y=0          y=1          y=2
    on the mesh x=2, y=3   x=0   rows 0:4     rows 0:4     rows 0:4
                           x=1   rows 4:8     rows 4:8     rows 4:8
```

**Small case.** `A[I_XY, J]` of shape (24, 10) on the mesh x=4, y=2, z=3: 24 / (4·2) = 3, so (3, 10), and every
block is held three times.

**In real systems** this is the shape you meet inside `shard_map` and in out-of-memory messages.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them".

Check your work: shardlings check a1_local_shape
For all exercises of this module: README.md, or shardlings show 01_layout
"""

import math


def local_shape(shape, spec, mesh_shape):
    """The shape of the block that one device holds.

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
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
local_load_time = None  # TODO: your answer
