"""# C3 Both operands cut along the contracting dimension

In `A[I, J_X] · B[J_X, K]` every device holds matching columns of `A` and rows of `B`. The local matmul gives a *partial
sum*, as large as `C` itself. We write `C[I, K]{U_X}`: `C` is unreduced over x. A collective must finish the sum.

```
    A[I, J_X]        B[J_X, K]      C[I, K]{U_X}           C[I, K_X]
   +----+----+      +--------+      on x0 and x1         +----+----+
   | x0 | x1 |   ·  |   x0   |   =   +--------+   --->   | x0 | x1 |
   +----+----+      |   x1   |       | a part |          +----+----+
                    +--------+       +--------+
```

**Write** `matmul_all_reduce(a, b, *, mesh)` and `matmul_reduce_scatter(a, b, *, mesh)`, both with `jax.shard_map`.

| | shape | layout |
|---|---|---|
| `a` | float32[I, J] | `P(None, "x")`, a block is [I, J/X] |
| `b` | float32[J, K] | `P("x", None)`, a block is [J/X, K] |
| returns of `matmul_all_reduce` | float32[I, K] | whole on every device |
| returns of `matmul_reduce_scatter` | float32[I, K] | `P(None, "x")`, a block is [I, K/X] |

**What is checked**

| function | check | small case, sent per device |
|---|---|---|
| `matmul_all_reduce` | C equals A @ B on every device | |
| `matmul_all_reduce` | in `shard_map`, one all-reduce over x and no other collective; C is whole on every device | 5760 bytes |
| `matmul_reduce_scatter` | C equals A @ B | |
| `matmul_reduce_scatter` | C is sharded `P(None, "x")` | |
| `matmul_reduce_scatter` | in `shard_map`, one reduce-scatter over x and no other collective | 2880 bytes |

Keep all arrays in float32.

**Symbols.** I, J, K: dimensions of the matmul. X: devices along x. V: bytes of the whole array `C`. W: both-way
bandwidth of a link.

**Small case.** I=24, J=32, K=40, float32, x=4. Each device multiplies [24, 8] by [8, 40] and holds a partial sum of 24
· 40 · 4 = 3840 bytes. The reduce-scatter sends 3/4 · 3840 = 2880 bytes and leaves a block [24, 10]. The all-reduce
sends twice as many, 5760 bytes.

Check your work: shardlings check c3_contracting
Notes on all exercises of this module: see README.md, or run shardlings show 03_matmuls
The text "Going further" is below the code.
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
# `C` is bfloat16[4096, 14336] and is unreduced on a ring of 4 v4p chips. How long does the
# reduce-scatter to `C[I, K_X]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, where W is the
# bandwidth of a link in both directions.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
scatter_time = None  # TODO: your answer


# Question all_reduce_bytes [MB]
# `C` is float32[2048, 10240], unreduced on 4 devices. How many MB does each device send in the
# all-reduce?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring: a reduce-scatter of X - 1 steps, then an all-gather of X - 1 steps; 1 MB is
# 10^6 bytes.
all_reduce_bytes = None  # TODO: your answer


# ## Going further
#
# **In real systems.** This is the second matmul of a tensor-parallel MLP. Megatron's MLP ends with the all-reduce. With
# sequence parallelism the MLP ends with the reduce-scatter.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", case 3.
