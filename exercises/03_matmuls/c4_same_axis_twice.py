"""# C4 The same axis on two outer dimensions

**Task.** `A[I_X, J] · B[J, K_X]`: rows of `A` and columns of `B` are cut over the same axis. Multiplying local blocks
gives only the diagonal blocks of `C`, and `C[I_X, K_X]` is no sharding at all, since an axis may cut one dimension
only. So one operand has to be gathered, and which one decides how `C` ends up. Write both with `jax.shard_map`.

**Budget.** `matmul_keep_rows` returns `C[I_X, K]`, `matmul_keep_columns` returns `C[I, K_X]`. Each: one all-gather over
x and no other collective, 2·I·J·K / X FLOPs on each device.

```
   A[I_X, J]    B[J, K_X]    local products   gather B      gather A
   +------+    +----+----+     +----+----+    +-------+    +----+----+
   |  x0  |    |    |    |     | x0 | ?  |    |  x0   |    |    |    |
   +------+  · | x0 | x1 |  =  +----+----+    +-------+    | x0 | x1 |
   |  x1  |    |    |    |     | ?  | x1 |    |  x1   |    |    |    |
   +------+    +----+----+     +----+----+    +-------+    +----+----+
```

**Small case.** I=24, J=32, K=40 on x=4: the local product is [6, 10], a block of the diagonal, 60 of the 240 elements
of a row block. Gathering `B` sends 3/4 · 32·40·4 = 3840 bytes per device, gathering `A` 3/4 · 24·32·4 = 2304.

**In real systems**: FSDP. The batch and the weights are cut over one axis, and the weights are the ones to gather.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", case 4.

Check your work: shardlings check c4_same_axis_twice
For all exercises of this module: README.md, or shardlings show 03_matmuls
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
# `A[I_X, J] · B[J, K_X]` in bfloat16 with I=2048, J=4096, K=3072 on a ring of 4 v5p chips. You
# may leave `C` either way. How long does the cheaper of the two all-gathers take?
#
# Answer in us (a bare number), or with a unit.
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, with W both
# directions of one link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
cheaper_gather_time = None  # TODO: your answer
