"""# C3 Both operands cut along the contracting dimension

**Task.** `A[I, J_X] · B[J_X, K]`: every device holds matching slices of `A`'s columns and `B`'s rows, so its local
product is a full-sized *partial sum* of `C`, written `C[I, K]{U_X}` (unreduced over x). With `jax.shard_map`, multiply
and finish the sum, in two ways.

**Budget.** `matmul_all_reduce` returns `C[I, K]`: one all-reduce over x and nothing else. `matmul_reduce_scatter`
returns `C[I, K_X]`: one reduce-scatter over x and nothing else; it sends half the bytes.

```
    A[I, J_X]        B[J_X, K]      C[I, K]{U_X}           C[I, K_X]
   +----+----+      +--------+      on x0 and x1         +----+----+
   | x0 | x1 |   ·  |   x0   |   =   +--------+   --->   | x0 | x1 |
   +----+----+      |   x1   |       | a part |          +----+----+
                    +--------+       +--------+
```

**Small case.** I=24, J=32, K=40, float32, x=4: each device multiplies [24, 8] by [8, 40] and holds a partial sum of
24·40·4 = 3840 bytes. The reduce-scatter sends 3/4 · 3840 = 2880 bytes per device and leaves [24, 10] on it; the
all-reduce sends 5760.

**In real systems**: the second matmul of a tensor-parallel MLP. Megatron ends it with the all-reduce; with sequence
parallelism it ends with the reduce-scatter.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", case 3.

Check your work: shardlings check c3_contracting
For all exercises of this module: README.md, or shardlings show 03_matmuls
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def matmul_all_reduce(a, b, *, mesh):
    """Multiply A[I, J_X] by B[J_X, K] into C[I, K], whole on every device.

    Args: a is float32[I, J] sharded P(None, 'x'); b is float32[J, K] sharded P('x', None); mesh has an axis 'x'.
    Returns: float32[I, K], whole on every device.
    """
    # TODO: write this function
    raise NotImplementedError("matmul_all_reduce")


def matmul_reduce_scatter(a, b, *, mesh):
    """Multiply A[I, J_X] by B[J_X, K] into C[I, K_X].

    Args: as for matmul_all_reduce.
    Returns: float32[I, K] sharded P(None, 'x').
    """
    # TODO: write this function
    raise NotImplementedError("matmul_reduce_scatter")


# Question scatter_time [us]
# `C` is bfloat16[4096, 14336] and lives unreduced on a ring of 4 v4p chips. How long does the
# reduce-scatter to `C[I, K_X]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, with W both
# directions of one link.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
scatter_time = None  # TODO: your answer


# Question all_reduce_bytes [MB]
# `C` is float32[2048, 10240], unreduced on 4 devices. How many MB does each device send in the
# all-reduce?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring: reduce-scatter, then all-gather, X - 1 steps each; 1 MB is 10^6 bytes.
all_reduce_bytes = None  # TODO: your answer
