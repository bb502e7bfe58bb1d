"""# B1 The four collectives

A collective moves data among all devices of a mesh axis. Four collectives carry almost all traffic of sharded training.

```
      all-gather   all-reduce   reduce-scatter   all-to-all
  x0  a -> abc     p -> p+q+r   p -> (p+q+r)_0   a0 a1 a2 -> a0 b0 c0
  x1  b -> abc     q -> p+q+r   q -> (p+q+r)_1   b0 b1 b2 -> a1 b1 c1
  x2  c -> abc     r -> p+q+r   r -> (p+q+r)_2   c0 c1 c2 -> a2 b2 c2
```

**Write** four bodies: functions of the block of one device. The grader wraps them in `shard_map` over mesh axis `x`,
with `check_vma=False`.

| body | you get | you return |
|---|---|---|
| `all_gather_body(a, *, dim)` | a shard of `A`, cut along `dim` | the whole `A` |
| `all_reduce_body(a)` | a partial sum [I, J] | the whole sum [I, J] |
| `reduce_scatter_body(a)` | a partial sum [I, J] | your columns of the sum, [I, J/X] |
| `all_to_all_body(a)` | a shard of `A[I_X, J]`, [I/X, J] | a shard of `A[I, J_X]`, [I, J/X] |

All arrays are float32. In `all_gather_body`, `A` has two or three dimensions, and `dim` may be the last one.

**What is checked**

| body | value | communication | small case, sent per device |
|---|---|---|---|
| `all_gather_body` | every device holds the whole `A`, for `dim=0` and for an array cut along its last dimension | one all-gather over x and no other collective | 960 bytes |
| `all_reduce_body` | every device holds the sum | one all-reduce over x and no other collective | 480 bytes |
| `reduce_scatter_body` | every device holds its columns of the sum | one reduce-scatter over x and no other collective | 240 bytes |
| `all_to_all_body` | every device holds its columns of `A`, not its rows | one all-to-all over x and no other collective | 240 bytes |

**Symbols.** I, J: rows and columns. X: devices along x. `{U_X}`: partial sums over x. V: bytes of the whole array. W:
both-way bandwidth of a link.

**Small case.** x=4; every block is float32[2, 40], 320 bytes. The reduce-scatter sends 3/4 · 320 = 240 bytes. The
all-reduce sends 2 · 240 = 480 bytes: a reduce-scatter, then an all-gather of the chunks of 80 bytes. The all-gather
sends the block three times, 960 bytes.

Check your work: shardlings check b1_collectives
Notes on all exercises of this module: see README.md, or run shardlings show 02_collectives
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def all_gather_body(a, *, dim):
    """Return the whole A, from a shard cut along `dim` over x."""
    # TODO: write this function
    raise NotImplementedError("all_gather_body")


def all_reduce_body(a):
    """Return the sum [I, J] of the partial sums [I, J] on all devices of x."""
    # TODO: write this function
    raise NotImplementedError("all_reduce_body")


def reduce_scatter_body(a):
    """Return this device's columns of the sum, [I, J_X], from a partial sum [I, J] on every device of x."""
    # TODO: write this function
    raise NotImplementedError("reduce_scatter_body")


def all_to_all_body(a):
    """Return a shard of A[I, J_X], from a shard of A[I_X, J]."""
    # TODO: write this function
    raise NotImplementedError("all_to_all_body")


# Question all_to_all_on_ring [us]
# `A` is bfloat16[4096, 8192] on a ring of 8 v5p chips. How long does the all-to-all `A[I_X, J] →
# A[I, J_X]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, where W is the
# bandwidth of a link in both directions.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
all_to_all_on_ring = None  # TODO: your answer


# ## Going further
#
# In an all-to-all a chunk travels only to the one device that needs it. On a ring an all-to-all takes a quarter of an
# all-gather's time.
#
# **In real systems.** FSDP all-gathers weights. Data parallelism all-reduces gradients. ZeRO reduce-scatters gradients.
# An all-to-all brings tokens to their experts.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; `jax.lax` parallel operators.
