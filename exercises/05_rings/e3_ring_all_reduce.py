"""# E3 An all-reduce from hops

Every device holds a partial sum of `A[I, J]`, and all of them need the total. The ring all-reduce cuts the array into N
chunks, which go round the ring twice. A reduce-scatter leaves each device with one finished chunk. An all-gather then
brings the chunks to every device.

```
   three devices: the chunk and (its number of terms); then finished chunks

            reduce-scatter               all-gather
           start   hop 1   hop 2        hop 3    hop 4
   x0      2 (1)   1 (2)   0 (3)        0 . 2    0 1 2
   x1      0 (1)   2 (2)   1 (3)        0 1 .    0 1 2
   x2      1 (1)   0 (2)   2 (3)        . 1 2    0 1 2
```

**Write** `ring_all_reduce(a)`, a body. The grader wraps it in `shard_map` over mesh axis `x`, with `check_vma=False`.

| | shape | meaning |
|---|---|---|
| `a` | float32[I, J] | the device's whole partial sum |
| returns | float32[I, J] | the total, on every device |

**What is checked**

| check | rule | small case |
|---|---|---|
| every device holds the sum | | |
| 2 (N − 1) `ppermute`s and no other collective | | 6 permutes |
| what each device sends to neighbours | at most 2·(N − 1)·V/N bytes | 34,560 bytes |
| what all devices send to neighbours | exactly 2·(N − 1)·V bytes | 138,240 bytes |

You may send in either direction round the ring. In the second phase *put* chunks into their slots and do not add them:
they are finished.

**Symbols.** N (X in the questions): devices of the ring. I, J: rows and columns. V: bytes of a block [I, J]. W1:
one-way bandwidth of a link. `{U_X}`: partial sums over x.

**Small case.** A float32 block of [120, 48] has 23,040 bytes. On x=4 each device sends 6 chunks of 5760 bytes, 34,560
bytes in all. The four devices together send 138,240 bytes.

Check your work: shardlings check e3_ring_all_reduce
Notes on all exercises of this module: see README.md, or run shardlings show 05_rings
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def ring_all_reduce(a):
    """Return the sum [I, J] on every device, from a partial sum [I, J] on every device of 'x'."""
    # TODO: write this function
    raise NotImplementedError("ring_all_reduce")


# Question ring_reduce_total_bytes [MB]
# 16 devices hold partial sums of float32[6144, 2048]. How many MB do all devices together send in
# `ring_all_reduce`?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring; each hop sends one chunk; the answer counts the bytes of all devices; 1 MB
# is 10^6 bytes.
ring_reduce_total_bytes = None  # TODO: your answer


# Question ring_reduce_one_way_time [us]
# Each of 16 v5p chips on a ring holds a gradient, bfloat16[8192, 6144]`{U_X}`. How long does your
# one-way `ring_all_reduce` take?
#
# Answer in us (a bare number), or with a unit.
# Model: one-way ring, bandwidth only: each hop takes its bytes / W1, with W1 the one-way
# bandwidth of a link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
ring_reduce_one_way_time = None  # TODO: your answer


# ## Going further
#
# **Whole arrays round the ring.** You could also send whole arrays round the ring, and add them up as they arrive. In the
# small case each device then sends 3 · 23,040 = 69,120 bytes. On x=8 a device sends 161,280 bytes as whole arrays, or
# 40,320 bytes as chunks. With more devices the bytes that a device sends approach 2·V for chunks, but grow without limit
# for whole arrays. Every all-reduce on a ring sends at least 2·(N − 1)·V/N bytes per device.
#
# **In time.** The grader's clock computes the times of this picture for blocks of float32[8192, 512] on 2x4 v5e chips,
# which form a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture `k` is work
# of the core and `P` is a hop; times are in us.
#
# ```
# one way: 718.942 us, 14 permutes, 11% of their time overlapped
#         │0                 │200               │400               │600
# compute k    k    k    k    k    k     k    k──  k   k    k   k   k    k   k
# link x+ P···· P··· P··· P··· P··· P····P····P····P···P····P···P···P····P···
# ```
#
# **In real systems.** Data-parallel training exchanges gradients like this (Baidu's ring, Horovod, NCCL).
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; Patarasuk and Yuan, "Bandwidth
# optimal all-reduce algorithms for clusters of workstations".
