"""# B5 Collectives with a root

MPI knows collectives in which one device, the *root*, is special. `shard_map` runs the same program on every device
and `jax.lax` has no root, so you make them: a device asks `axis_index` who it is, and masks.

**Task.** Write four bodies for `shard_map` (it is around them already, with `check_vma=False`; the mesh axis is `x`).
`root` is a Python number. V is the size of a block of [I, K] that every device has.

| body | the root returns | the others return | each device may send |
|---|---|---|---|
| `rooted_broadcast` | its block | the root's block | 2·(N − 1)/N · V |
| `rooted_scatter` | chunk `root` of its rows | device i: chunk i of the root's rows | (N − 1)/N · V |
| `rooted_gather` | all blocks, side by side: [I, N·K] | zeros of this shape | (N − 1) · V |
| `rooted_reduce` | the sum of all blocks | zeros of this shape | 2·(N − 1)/N · V |

```
   root = 1         broadcast     scatter      gather          reduce
   x0: a = a0 a1    x0: b         x0: b0       x0: 0 0         x0: 0
   x1: b = b0 b1    x1: b         x1: b1       x1: a b         x1: a+b
```

A sum to which only the root contributes *is* the root's value: mask with `jnp.where`, then add. Which collective adds
and leaves every device with its chunk only?

**Budget.** The bytes in the table: one collective each. They are what one program for all devices costs, not what MPI
pays: the others send zeros as diligently as the root sends data.

**Small case.** float32, x=4, blocks of [40, 20], V = 3200 bytes: the broadcast sends 4800 bytes per device, the scatter
2400, the gather 9600, the reduce 4800.

**In real systems.** Rooted calls are rare in sharded training, where all devices do the same work: a checkpoint is
broadcast from the host that read it, metrics are reduced to the one that logs them.

**Read on.** The MPI standard, chapter "Collective Communication"; `jax.lax` parallel operators.

Check your work: shardlings check b5_rooted
For all exercises of this module: README.md, or shardlings show 02_collectives
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def rooted_broadcast(a, *, root):
    """The block of device `root`, on every device."""
    # TODO: write this function
    raise NotImplementedError("rooted_broadcast")


def rooted_scatter(a, *, root):
    """Chunk i of the rows of the root's block, on device i."""
    # TODO: write this function
    raise NotImplementedError("rooted_scatter")


def rooted_gather(a, *, root):
    """All blocks side by side on device `root`, zeros on the others."""
    # TODO: write this function
    raise NotImplementedError("rooted_gather")


def rooted_reduce(a, *, root):
    """The sum of all blocks on device `root`, zeros on the others."""
    # TODO: write this function
    raise NotImplementedError("rooted_reduce")


# Question rooted_broadcast_time [us]
# The root's block is bfloat16[8192, 14336], on a ring of 8 v5p chips. How long does
# `rooted_broadcast` take as a masked all-reduce?
#
# Answer in us (a bare number), or with a unit.
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, with W both
# directions of one link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
rooted_broadcast_time = None  # TODO: your answer


# Question rooted_scatter_bytes [MB]
# The root scatters its block, float32[8192, 3072], over 8 devices. How many MB do all of them
# together send in `rooted_scatter`, as a masked reduce-scatter?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring, a reduce-scatter of X - 1 hops, all devices together; 1 MB is 10^6 bytes.
rooted_scatter_bytes = None  # TODO: your answer
