"""# C4 One axis cuts the rows of A and the columns of B

In `A[I_X, J] · B[J, K_X]` one axis cuts the rows of `A` and the columns of `B`. The matmul of local blocks gives only
the diagonal blocks of `C`. `C[I_X, K_X]` is not a sharding, because an axis may cut only one dimension. So devices must
gather one operand.

```
   A[I_X, J]    B[J, K_X]    local matmuls    gather B      gather A
   +------+    +----+----+     +----+----+    +-------+    +----+----+
   |  x0  |    |    |    |     | x0 | ?  |    |  x0   |    |    |    |
   +------+  · | x0 | x1 |  =  +----+----+    +-------+    | x0 | x1 |
   |  x1  |    |    |    |     | ?  | x1 |    |  x1   |    |    |    |
   +------+    +----+----+     +----+----+    +-------+    +----+----+
```

**Write** `matmul_keep_rows(a, b, *, mesh)` and `matmul_keep_columns(a, b, *, mesh)`, both with `jax.shard_map`.

| | shape | layout |
|---|---|---|
| `a` | float32[I, J] | `P("x", None)`, a block is [I/X, J] |
| `b` | float32[J, K] | `P(None, "x")`, a block is [J, K/X] |
| returns of `matmul_keep_rows` | float32[I, K] | `P("x", None)` |
| returns of `matmul_keep_columns` | float32[I, K] | `P(None, "x")` |

**What is checked**, for each function

| check | rule, per device | small case |
|---|---|---|
| C equals A @ B | | |
| C is sharded `P("x", None)` (keep rows) or `P(None, "x")` (keep columns) | | |
| in `shard_map`, one all-gather over x, no other collective | | 3840 bytes of `B`, or 2304 bytes of `A` |
| 1/X of the FLOPs | at most 2·I·J·K / X | 15,360 FLOPs |

**Symbols.** I, J, K: dimensions of the matmul. X: devices along x. V: bytes of the array that is gathered. W: both-way
bandwidth of a link.

**Small case.** I=24, J=32, K=40, float32, x=4. A local matmul gives [6, 10], a block of the diagonal: 60 of the 240
elements of a block of rows. The all-gather of `B` sends 3/4 · 32 · 40 · 4 = 3840 bytes per device. The all-gather of
`A` sends 3/4 · 24 · 32 · 4 = 2304 bytes.

Check your work: shardlings check c4_same_axis_twice
Notes on all exercises of this module: see README.md, or run shardlings show 03_matmuls
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def matmul_keep_rows(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_X] into C[I_X, K].

    Args: a is float32[I, J] sharded P('x', None); b is float32[J, K] sharded P(None, 'x'); mesh has an axis 'x'.
    Returns: float32[I, K] sharded P('x', None).
    """
    # TODO: write this function
    raise NotImplementedError("matmul_keep_rows")


def matmul_keep_columns(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_X] into C[I, K_X].

    Args: as for matmul_keep_rows.
    Returns: float32[I, K] sharded P(None, 'x').
    """
    # TODO: write this function
    raise NotImplementedError("matmul_keep_columns")


# Question cheaper_gather_time [us]
# A ring of 4 v5p chips computes `A[I_X, J] · B[J, K_X]` in bfloat16 with I=2048, J=4096, K=3072.
# You may leave `C` cut by rows or by columns. How long does the cheaper of the two all-gathers
# take?
#
# Answer in us (a bare number), or with a unit.
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, where W is the
# bandwidth of a link in both directions.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
cheaper_gather_time = None  # TODO: your answer


# ## Going further
#
# **In real systems.** In FSDP one axis cuts both the batch and the weights. FSDP gathers the weights.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", case 4.
