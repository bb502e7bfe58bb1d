"""# B1 The four collectives

**Task.** Write four bodies for `shard_map`: functions of the block of one device. They are wrapped for you, with
`check_vma=False`. The mesh axis is `x`; gathered arrays have two or three dimensions.

| body | block you get | block you return | what the group does |
|---|---|---|---|
| `all_gather_body(a, dim)` | a shard of `A`, cut along `dim` | the whole `A` | join the shards |
| `all_reduce_body(a)` | one partial sum, `A{U_X}` | the whole `A` | add |
| `reduce_scatter_body(a)` | one partial sum, `A[I, J]{U_X}` | `A[I, J_X]` | add, keep your columns |
| `all_to_all_body(a)` | a shard of `A[I_X, J]` | a shard of `A[I, J_X]` | trade |

**Budget.** In each body one collective over x, of the kind its name says, and no other.

```
      all-gather   all-reduce   reduce-scatter   all-to-all
  x0  a -> abc     p -> p+q+r   p -> (p+q+r)_0   a0 a1 a2 -> a0 b0 c0
  x1  b -> abc     q -> p+q+r   q -> (p+q+r)_1   b0 b1 b2 -> a1 b1 c1
  x2  c -> abc     r -> p+q+r   r -> (p+q+r)_2   c0 c1 c2 -> a2 b2 c2
```

**Small case.** x=4, a partial sum of [2, 40] on each device. The reduce-scatter returns [2, 10] and sends 3/4 of the
block; the all-reduce returns [2, 40] and sends twice that, because it is a reduce-scatter and then an all-gather. The
all-to-all sends a chunk only as far as the one device that wants it: on a ring, a quarter of an all-gather's time.

**In real systems.** All-gather: FSDP weights. All-reduce: data-parallel gradients. Reduce-scatter: ZeRO gradients.
All-to-all: tokens on their way to experts.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; `jax.lax` parallel operators.

Check your work: shardlings check b1_collectives
For all exercises of this module: README.md, or shardlings show 02_collectives
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def all_gather_body(a, *, dim):
    """A shard of A, cut along `dim` over x -> the whole A."""
    # TODO: write this function
    raise NotImplementedError("all_gather_body")


def all_reduce_body(a):
    """A partial sum [I, J] on every device of x -> their sum [I, J]."""
    # TODO: write this function
    raise NotImplementedError("all_reduce_body")


def reduce_scatter_body(a):
    """A partial sum [I, J] on every device of x -> their sum [I, J_X]."""
    # TODO: write this function
    raise NotImplementedError("reduce_scatter_body")


def all_to_all_body(a):
    """A shard of A[I_X, J] -> a shard of A[I, J_X]."""
    # TODO: write this function
    raise NotImplementedError("all_to_all_body")


# Question all_to_all_on_ring [us]
# `A` is bfloat16[4096, 8192] on a ring of 8 v5p chips. How long does `A[I_X, J] → A[I, J_X]`
# take?
#
# Answer in us (a bare number), or with a unit.
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, with W both
# directions of one link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
all_to_all_on_ring = None  # TODO: your answer
