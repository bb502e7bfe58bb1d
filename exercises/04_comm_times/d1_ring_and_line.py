"""# D1 How long a collective takes on a ring and on a line

In an all-gather a chip must receive the (N − 1)/N of the array that it does not hold. On a ring two links bring these
bytes. At the end of a line one link brings all of them. The time hardly depends on N: with more chips, there are more
hops but smaller shards.

```
   ring of 4 (the axis wraps around)          line of 4 (it does not wrap)

      +---- 0 <---> 1 ----+                   0 <---> 1 <---> 2 <---> 3
      |                   |
      +---- 3 <---> 2 ----+                   chip 0 receives everything
   every chip receives from two sides         through one link
```

**Write** `axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps)`. It returns seconds.

| | type | meaning |
|---|---|---|
| `kind` | str | `"all_gather"`, `"reduce_scatter"` or `"all_reduce"` |
| `bytes` | int | V |
| `axis_size` | int | N |
| `one_way_bandwidth` | float | W1, bytes/s |
| `wraps` | bool | `True`: a ring; `False`: a line |

**What is checked**

| check | rule | small case |
|---|---|---|
| the all-gather's time on a ring | (N − 1)/N · V/W | 105 µs |
| the all-gather's time on a line | (N − 1)/N · V/W1 | 210 µs |
| the reduce-scatter's time, on rings and lines | the all-gather's time | |
| the all-reduce's time, on rings and lines | twice the all-gather's time | |
| on an axis of one chip nothing moves | 0 seconds | |
| an unknown collective raises `ValueError` | | |

These rules are *exact*. On a ring the *book* (*How To Scale Your Model*) drops the factor (N − 1)/N: its times are V/W,
and 2·V/W for an all-reduce. Each question says which rule it uses. All times are ideal: they count bandwidth only.

**Symbols.** V: bytes of the array that the chips of this axis gather or reduce, not of a shard. If an axis y of Y chips
cuts `A[I_X, J_Y]` too, a gather over x has V = (bytes of A) / Y. N: chips along the axis. W1: one-way bandwidth of a
link. W = 2·W1: both-way bandwidth. `{U_X}`: partial sums over x.

**Small case.** `bfloat16[1536_X, 4096]` has V = 2 · 1536 · 4096 = 12.6 MB. A ring of 4 v4p chips has W = 9.0e10
bytes/s. The book's V/W is 140 µs, and the exact rule gives 3/4 of this time, 105 µs. A line of 4 v5e chips has W1 =
4.5e10 bytes/s. On this line the chip at an end receives 3/4 of V over one link in 210 µs.

Check your work: shardlings check d1_ring_and_line
Notes on all exercises of this module: see README.md, or run shardlings show 04_comm_times
The text "Going further" is below the code.
"""

import math


def axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """Return the seconds of a collective over one mesh axis: the exact bandwidth time, no latency.

    Args:
        kind: "all_gather", "reduce_scatter" or "all_reduce"; anything else raises ValueError.
        bytes: V, the bytes of the array that the chips of this axis gather or reduce.
        axis_size: N, chips along the axis; with 1 nothing moves and the time is 0.
        one_way_bandwidth: W1, bytes/s of one link in one direction.
        wraps: True when the axis is a ring, False when it is a line.

    Returns:
        Seconds, a float.
    """
    # TODO: write this function
    raise NotImplementedError("axis_collective_time")


# Question ring_gather_time [us]
# `A` is float32[2560, 7168], sharded `A[I_X, J]` over a ring of 16 v4p chips (the axis wraps
# around). How long does the all-gather to `A[I, J]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: bidirectional ring, bandwidth only: V/W, where W is the bandwidth of a link in both
# directions.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
ring_gather_time = None  # TODO: your answer


# Question ring_scatter_time [us]
# In a v5p slice of full cubes, the mesh axes x=4 and y=16 wrap around. y cuts the rows of `C`,
# bfloat16[9216, 18432], and the chips along x hold partial sums of `C`: `C[I_Y, K]{U_X}`. How
# long does the reduce-scatter over x to `C[I_Y, K_X]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: bidirectional ring, bandwidth only, exact: (N-1)/N · V/W, where W is the bandwidth of a
# link in both directions.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
ring_scatter_time = None  # TODO: your answer


# Question ring_reduce_time [us]
# Every chip on a ring of 16 v5e chips holds its own partial sum of a gradient, bfloat16[5120,
# 11264]`{U_X}`. How long does the all-reduce take?
#
# Answer in us (a bare number), or with a unit.
# Model: bidirectional ring, bandwidth only: the all-reduce is a reduce-scatter and an all-gather,
# and each of the two takes V/W.
# Hardware: v5e: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 2D torus, wraps only on
# an axis of 16; table 2026-11, from How To Scale Your Model of 2025-02-04.
ring_reduce_time = None  # TODO: your answer


# Question line_gather_time [us]
# On a 4x8 slice of v5e with mesh axes x and y, `A` is bfloat16[5120, 4096] sharded `A[I_Y, J]`.
# How long does the all-gather over y to `A[I, J]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: bandwidth only, exact: (N-1)/N · V/W if the axis is a ring, (N-1)/N · V/W1 if it is a
# line.
# Hardware: v5e: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 2D torus, wraps only on
# an axis of 16; table 2026-11, from How To Scale Your Model of 2025-02-04.
line_gather_time = None  # TODO: your answer


# Question line_scatter_time [us]
# A 2x4x4 slice of 7x has the mesh axes x (2), y (4) and z (4). y cuts the rows of `C`,
# bfloat16[7168, 9216], and the chips along z hold partial sums of `C`: `C[I_Y, K]{U_Z}`. How long
# does the reduce-scatter over z to `C[I_Y, K_Z]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: bandwidth only, exact: (N-1)/N · V/W if the axis is a ring, (N-1)/N · V/W1 if it is a
# line.
# Hardware: 7x: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from jax-
# ml/scaling-book pull requests 115 and 116 of 2026-05-22.
line_scatter_time = None  # TODO: your answer


# Question line_reduce_time [us]
# On a 16x8 slice of v6e with mesh axes x (16) and y (8), the chips along y hold partial sums of a
# gradient that no axis cuts, float32[2560, 20480]`{U_Y}`. How long does the all-reduce over y
# take?
#
# Answer in us (a bare number), or with a unit.
# Model: bandwidth only, with the exact rule for the kind of the axis, ring or line; the all-
# reduce is a reduce-scatter and an all-gather.
# Hardware: v6e: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 2D torus, wraps only on
# an axis of 16; table 2026-11, from How To Scale Your Model of 2025-02-04.
line_reduce_time = None  # TODO: your answer


# ## Going further
#
# **The book's rule.** For an even N, V/W is the time of N/2 rounds in which each link carries a whole shard in each
# direction: N/2 · V/N / W1 = V/W. At N = 4 the exact time is 25 % shorter than the book's time.
#
# **Bytes and latency.** The dtype gives the bytes of an element: 2 for bfloat16, 4 for float32. A hop takes about 1 µs,
# which matters only when shards are tiny (exercise D3).
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them".
