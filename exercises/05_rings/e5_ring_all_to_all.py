"""# E5 An all-to-all from hops

In an all-to-all every device has a different chunk for every other device: `A[I_X, J] → A[I, J_X]`. Your block has N
chunks of columns, and chunk c is for device c. On a ring a chunk for the k-th device after you passes k − 1 other
devices. So work like a bus: load all chunks, and at each stop unload the chunk for that device.

```
   "23" is the chunk from x2 for x3. "hop 1 (3)" means that in hop 1 each
   device sends 3 chunks. The chunk for the nearest stop comes first.

                     at x0       at x1       at x2       at x3
   start           01 02 03    12 13 10    23 20 21    30 31 32
   hop 1 (3)       30 31 32    01 02 03    12 13 10    23 20 21    each
   hop 2 (2)       20 21       31 32       02 03       13 10       unloads
   hop 3 (1)       10          21          32          03          its first
```

**Write** `ring_all_to_all(a)`, a body. The grader wraps it in `shard_map` over mesh axis `x`, with `check_vma=False`.

| | shape | layout |
|---|---|---|
| `a` | float32[I/X, J] | a block of `A[I_X, J]` |
| returns | float32[I, J/X] | a block of `A[I, J_X]` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| the result is `A`, with its columns cut over x | | |
| `ppermute` is the only collective | | |
| at most N (N − 1) / 2 chunk-hops | each chunk counts once for every wire it passes | 6 chunk-hops, 43,200 bytes |

Each `ppermute` must be a rotation of the ring. A rotation by k places passes k wires, or N − k wires the other way
round if that is fewer. You may go both ways round.

**Symbols.** N (X in the questions): devices of the ring. I, J: rows and columns. V: bytes of the whole `A`; a chunk has
V/N² bytes. W1: one-way bandwidth of a link.

**Small case.** `A` is float32[120, 240] on x=4. A block is [30, 240]. A chunk is [30, 60], 7200 bytes. The bus carries
3, then 2, then 1 chunk: 6 chunk-hops, 43,200 bytes.

Check your work: shardlings check e5_ring_all_to_all
Notes on all exercises of this module: see README.md, or run shardlings show 05_rings
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def ring_all_to_all(a):
    """Return a block of A[I, J_X] from a block of A[I_X, J]; the mesh axis is 'x'."""
    # TODO: write this function
    raise NotImplementedError("ring_all_to_all")


# Question ring_trade_bytes [MB]
# `A` is float32[6144, 5120] over 8 devices. How many MB does each device send in a one-way
# `ring_all_to_all`? Count its own chunks and the chunks that it passes on.
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring; a chunk counts once for every wire it passes; 1 MB is 10^6 bytes.
ring_trade_bytes = None  # TODO: your answer


# Question ring_trade_time [us]
# `A` is bfloat16[8192, 14336] on a ring of 8 v5p chips. How long does the one-way
# `ring_all_to_all` take?
#
# Answer in us (a bare number), or with a unit.
# Model: one-way ring, bandwidth only: each hop takes its bytes / W1, with W1 the one-way
# bandwidth of a link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
ring_trade_time = None  # TODO: your answer


# ## Going further
#
# Sort the chunks by distance, not by number. Then the chunk to unload is always the first. The all-gather of E1 would
# send 3 blocks of 4 chunks, 86,400 bytes, and a device would need only a quarter of the chunks that it receives.
#
# **Both ways round.** If each chunk goes the shorter way round, each device makes only about N²/4 chunk-hops, spread over
# both directions of its links. The exchange then takes a quarter of an all-gather's time.
#
# **In time.** The grader's clock computes the times of this picture for float32[8192, 512] on 2x4 v5e chips, which form
# a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture `k` is work of the core
# and `P` is a hop; times are in us.
#
# ```
# from hops: 185.419 us, 7 permutes, 4% of their time overlapped
#         │0                │50                │100              │150
# compute k─               k             k           k        k      k    k─kk
# link x+   permute········ permute······ permute···· permute· P····· P···  P·
# ```
#
# **In real systems.** On torus networks, all-to-alls bring tokens to their experts. Ulysses attention (exercise J3) also
# uses all-to-alls.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", question 10.
