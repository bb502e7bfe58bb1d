"""# E2 A reduce-scatter from hops

Every device holds a partial sum of one array, `A[I, J]{U_X}`. Each device needs its own rows of the total, `A[I_X, J]`.
Cut the rows into N chunks; device i owns chunk i. For each chunk a *running sum* travels to the chunk's owner, and each
device on the way adds its part. This is the all-gather of exercise E1 in reverse.

```
   four devices: the chunk that each holds, and (its number of terms)

              x0      x1      x2      x3
   start     3 (1)   0 (1)   1 (1)   2 (1)    chunk 0 starts on x1
   hop 1     2 (2)   3 (2)   0 (2)   1 (2)
   hop 2     1 (3)   2 (3)   3 (3)   0 (3)
   hop 3     0 (4)   1 (4)   2 (4)   3 (4)    N - 1 hops later it is on x0
```

**Write** `ring_reduce_scatter(a)`, a body. The grader wraps it in `shard_map` over mesh axis `x`, with
`check_vma=False`.

| | shape | meaning |
|---|---|---|
| `a` | float32[I, J] | the device's whole partial sum; you cut its rows into N chunks |
| returns | float32[I/N, J] | on device i: the sum of all devices' parts of chunk i |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| device i holds chunk i of the sum | | |
| N − 1 `ppermute`s and no other collective | | 3 permutes |
| each hop takes one chunk to a neighbour | sends V/N bytes in a hop | 5760 bytes |

You may send in either direction round the ring.

**Symbols.** N (X in the questions): devices of the ring. I, J: rows and columns. V: bytes of a block [I, J]. W1:
one-way bandwidth of a link. `{U_X}`: partial sums over x.

**Small case.** Each device on x=4 has a float32 block of [120, 48]. A chunk is [30, 48], 5760 bytes. Each device sends
three chunks: 17,280 bytes, as many as in an all-gather of an array of this size.

Check your work: shardlings check e2_ring_reduce_scatter
Notes on all exercises of this module: see README.md, or run shardlings show 05_rings
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def ring_reduce_scatter(a):
    """Return this device's rows of the sum, [I_X, J], from a partial sum [I, J] on every device of 'x'."""
    # TODO: write this function
    raise NotImplementedError("ring_reduce_scatter")


# Question ring_scatter_one_way_time [us]
# Each of 16 v4p chips on a ring holds a partial sum of bfloat16[8192, 6144]. How long does your
# one-way `ring_reduce_scatter` take?
#
# Answer in us (a bare number), or with a unit.
# Model: one-way ring, bandwidth only: N - 1 hops; each hop takes (bytes of a chunk) / W1, with W1
# the one-way bandwidth of a link.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
ring_scatter_one_way_time = None  # TODO: your answer


# Question ring_scatter_small_time [us]
# On a ring of 8 v4p chips, your `ring_reduce_scatter` runs twice: first for partial sums of
# bfloat16[128, 512], then for partial sums of bfloat16[640, 512]. How long do the two runs take
# together?
#
# Answer in us (a bare number), or with a unit.
# Model: one-way ring: N - 1 hops; each hop takes the longer of two times, 1 us and (bytes of a
# chunk) / W1.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; hop 1 us; table 2026-11,
# from How To Scale Your Model of 2025-02-04.
ring_scatter_small_time = None  # TODO: your answer


# ## Going further
#
# Read the picture down a column: device i holds chunk i − 1, then i − 2, and at last i − N. Counted modulo N, that is
# chunk i. If chunk i starts on device i instead of device i + 1, the sums are right but on the wrong devices.
#
# **In time.** The grader's clock computes the times of this picture for blocks of float32[8192, 512] on 2x4 v5e chips,
# which form a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture `k` is work
# of the core and `permute` is a hop; times are in us.
#
# ```
# one way: 385.046 us, 7 permutes, 0% of their time overlapped
#         │0                │100             │200              │300
# compute k        k         k        k─        k        k─        k         k
# link x+  permute· permute·· permute·  permute· permute·  permute· permute··
# ```
#
# **In real systems.** ZeRO and FSDP reduce-scatter gradients. A sequence-parallel layer reduce-scatters the result of
# its second matmul.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them" (why an all-gather and a
# reduce-scatter are transposes of each other).
