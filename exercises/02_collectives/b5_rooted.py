"""# B5 Collectives with a root

MPI has collectives in which one device, the *root*, is special. `shard_map` runs one program on every device, and
`jax.lax` has no root. So you build rooted collectives from other collectives: a device asks `axis_index` for its number
and masks its data.

```
   root = 1         broadcast     scatter      gather          reduce
   x0: a = a0 a1    x0: b         x0: b0       x0: 0 0         x0: 0
   x1: b = b0 b1    x1: b         x1: b1       x1: a b         x1: a+b
```

**Write** four bodies with the arguments `(a, *, root)`. The grader wraps them in `shard_map` over mesh axis `x`, with
`check_vma=False`. `a` is the device's block, float32[I, K]. `root` is a Python int.

| body | the root returns | each other device returns |
|---|---|---|
| `rooted_broadcast` | its block, [I, K] | the root's block |
| `rooted_scatter` | chunk number `root` of its rows, [I/N, K] | device i: chunk i of the root's rows |
| `rooted_gather` | all blocks side by side, [I, N·K] | zeros of this shape |
| `rooted_reduce` | the sum of all blocks, [I, K] | zeros of this shape |

**What is checked**

| body | value | bytes from each device, at most | small case |
|---|---|---|---|
| `rooted_broadcast` | every device has the root's block | 2·(N − 1)/N · V | 4800 bytes |
| `rooted_scatter` | device i has chunk i of the root's rows | (N − 1)/N · V | 2400 bytes |
| `rooted_gather` | the root has all blocks, the other devices have zeros | (N − 1) · V | 9600 bytes |
| `rooted_reduce` | the root has the sum, the other devices have zeros | 2·(N − 1)/N · V | 4800 bytes |

The grader also checks each body with another root. If only the root contributes to a sum, the sum is the root's value:
mask with `jnp.where`, then sum over x. Devices that are not the root may send zeros.

**Symbols.** N: devices along x (X in the questions). V: bytes of a block [I, K]. W: both-way bandwidth of a link.

**Small case.** N=4 devices have float32 blocks of [40, 20], V = 3200 bytes. In the broadcast each device sends 2 · 3/4
· 3200 = 4800 bytes, in the scatter 3/4 · 3200 = 2400 bytes.

Check your work: shardlings check b5_rooted
Notes on all exercises of this module: see README.md, or run shardlings show 02_collectives
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def rooted_broadcast(a, *, root):
    """Return the block of device `root`, on every device."""
    # TODO: write this function
    raise NotImplementedError("rooted_broadcast")


def rooted_scatter(a, *, root):
    """Return chunk i of the rows of the root's block, on device i."""
    # TODO: write this function
    raise NotImplementedError("rooted_scatter")


def rooted_gather(a, *, root):
    """Return all blocks side by side on device `root`, zeros on the other devices."""
    # TODO: write this function
    raise NotImplementedError("rooted_gather")


def rooted_reduce(a, *, root):
    """Return the sum of all blocks on device `root`, zeros on the other devices."""
    # TODO: write this function
    raise NotImplementedError("rooted_reduce")


# Question rooted_broadcast_time [us]
# The root's block is bfloat16[8192, 14336], on a ring of 8 v5p chips. How long does
# `rooted_broadcast` take as a masked all-reduce?
#
# Answer in us (a bare number), or with a unit.
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, where W is the
# bandwidth of a link in both directions.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
rooted_broadcast_time = None  # TODO: your answer


# Question rooted_scatter_bytes [MB]
# The root scatters its block, float32[8192, 3072], over 8 devices. How many MB do all devices
# together send in `rooted_scatter`, as a masked reduce-scatter?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring: a reduce-scatter takes X - 1 hops; 1 MB is 10^6 bytes.
rooted_scatter_bytes = None  # TODO: your answer


# ## Going further
#
# The bytes above are more than MPI sends. All devices run one program here, so in a broadcast or a scatter all devices
# but the root send zeros.
#
# **In real systems.** Rooted calls are rare in sharded training, because all devices do equal work. A checkpoint is
# broadcast from the host that read it. Metrics are reduced to the host that logs them.
#
# **Read on.** The MPI standard, chapter "Collective Communication"; `jax.lax` parallel operators.
