"""# E1 An all-gather from hops

Chips of a ring have wires to their neighbours only. On a ring, collectives repeat one step, the *hop*: each device
sends to the next device, all at the same time. In JAX a hop is `jax.lax.ppermute(a, "x", pairs)` with the pairs
`(d, (d + 1) % N)`. Each device passes on the shard that arrived last, and keeps a copy.

```
           slots of x0   of x1     of x2     of x3      on the wires
   start     a . . .    . b . .   . . c .   . . . d
   hop 1     a . . d    a b . .   . b c .   . . c d     a from x0 to x1, ...
   hop 2     a . c d    a b . d   a b c .   . b c d     d from x0 to x1, ...
   hop 3     a b c d    a b c d   a b c d   a b c d     c from x0 to x1, ...
```

**Write** `ring_all_gather(a)`, a body. The grader wraps it in `shard_map` over mesh axis `x`, with `check_vma=False`.

| | shape | layout |
|---|---|---|
| `a` | float32[I/X, J] | the device's shard of `A[I_X, J]` |
| returns | float32[I, J] | the whole `A` on every device |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| every device holds the whole `A` | | |
| N − 1 `ppermute`s and no other collective | | 3 permutes |
| each hop takes one shard to a neighbour | sends V/N bytes in a hop | 600 bytes |

You may send in either direction round the ring. If no pair names a device as a target, this device receives zeros,
and `ppermute` gives no warning. So a ring without its last pair, (N − 1, 0), gives wrong values and no error.

**Symbols.** N (X in the questions): devices of the ring. I, J: rows and columns. V: bytes of the whole `A`. W1: one-way
bandwidth of a link.

**Small case.** `A` is float32[120, 5] on x=4. A shard has 30 rows, 600 bytes. In three hops a device sends 1800 bytes,
3/4 of `A`. On x=3 there are two hops of 800 bytes.

Check your work: shardlings check e1_ring_all_gather
Notes on all exercises of this module: see README.md, or run shardlings show 05_rings
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def ring_all_gather(a):
    """Return the whole A[I, J] from a shard of A[I_X, J]; the mesh axis is 'x'."""
    # TODO: write this function
    raise NotImplementedError("ring_all_gather")


# Question ring_gather_bytes [MB]
# `A` is float32[12288, 2048], sharded `A[I_X, J]` over 16 devices. How many MB does each device
# send in `ring_all_gather`?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring; each hop sends one shard; 1 MB is 10^6 bytes.
ring_gather_bytes = None  # TODO: your answer


# Question ring_gather_one_way_time [us]
# `A` is bfloat16[8192, 14336] on a ring of 4 v5p chips. How long does your one-way
# `ring_all_gather` take?
#
# Answer in us (a bare number), or with a unit.
# Model: one-way ring, bandwidth only: N - 1 hops; each hop takes (bytes of a shard) / W1, with W1
# the one-way bandwidth of a link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
ring_gather_one_way_time = None  # TODO: your answer


# ## Going further
#
# The shard that arrives in hop t comes from the device t places *before* you. So you know the shard's slot.
#
# **In time.** The grader's clock computes the times of this picture for float32[8192, 512] on 2x4 v5e chips, which form
# a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture `k` is work of the core
# and `permute` is a hop; times are in us.
#
# ```
# one way: 333.896 us, 7 permutes, 23% of their time overlapped
#         │0        │50       │100       │150      │200      │250      │300
# compute k─────   k─        k─       k─        k─       k─        k─       k─
# link x+ permute··permute···permute··permute···permute··permute···permute··
# ```
#
# **In real systems.** `jax.lax.all_gather` and NCCL's ring run this loop. Your own loop can overlap a matmul (exercise
# F1).
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them".
