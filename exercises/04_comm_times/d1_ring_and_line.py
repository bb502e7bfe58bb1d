"""# D1 How long a collective takes on a ring and on a line

**Task.** Write `axis_collective_time`, the bandwidth time of an all-gather, a reduce-scatter and an
all-reduce over one mesh axis, then answer six questions about real chips.

**What counts.** `V` is the number of bytes of the *full logical array over that axis*: for
`A[I_X, J]` gathered over x it is all of `A`; for `A[I_X, J_Y]` gathered over x alone, the other axis
has already cut it: `V = bytes(A) / Y`. It is not one chip's shard. What flows is what the dtype says:
2 bytes for each bfloat16, 4 for each float32.

**The wires.** A link carries `W1` bytes/s in each direction at once, `W = 2·W1` in all.

```
   ring of 4 (the axis wraps around)          line of 4 (it does not)

      +---- 0 <---> 1 ----+                   0 <---> 1 <---> 2 <---> 3
      |                   |
      +---- 3 <---> 2 ----+                   chip 0 hears everything
   every chip hears from two sides            through one link
```

**The time model.** A chip must receive the `(N-1)/N` of `V` that it does not have yet. So the time hardly
depends on `N`: more chips make more hops, with smaller shards.

| | ring, exact | ring, book | line |
|---|---|---|---|
| all-gather `[A_X] -> [A]` | `(N-1)/N · V/W` | `V/W` | `(N-1)/N · V/W1` |
| reduce-scatter `[A]{U_X} -> [A_X]` | the same | the same | the same |
| all-reduce `[A]{U_X} -> [A]` | twice that | twice that | twice that |

"Book" drops the `(N-1)/N`, or, which is the same for an even `N`, sends whole shards in `N/2` rounds.
The two differ by 25 % at `N = 4`, so every question below says which one it means. All of this is
bandwidth only: hops of about 1 µs matter when shards are tiny, and not here.

**Which axes wrap?** On v5e and v6e only an axis of 16. On v4p, v5p and 7x an axis that is a multiple
of 4, in a slice made of full 4x4x4 cubes.

**A small case.** `bfloat16[1536_X, 4096]` is `V = 2 · 1536 · 4096 = 12.6 MB`. Gathered over a v4p ring
of 4, `W = 9.0e10`: `V/W = 140 µs` by the book, `3/4` of it, 105 µs, exactly. Gathered over 4 chips of
a v5e, which are a line, `W1 = 4.5e10`: three shards of 3.15 MB pass the last link, 210 µs.

Check your work: shardlings check d1_ring_and_line
"""

import math


def axis_collective_time(kind, bytes, axis_size, one_way_bandwidth, wraps):
    """Seconds a collective takes over one mesh axis: the exact bandwidth time, no latency.

    Args:
        kind: "all_gather", "reduce_scatter" or "all_reduce"; anything else raises ValueError.
        bytes: V, the full logical array over this axis, in bytes.
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
# Model: bidirectional ring, bandwidth only, V/W with W both directions of one link.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
ring_gather_time = None  # TODO: your answer


# Question ring_scatter_time [us]
# `C` is bfloat16[10240, 18432] on v5p with a mesh of X=4 and Y=16 (both axes wrap around): it is
# unreduced over x and its rows are cut over y, `C[I_Y, K]{U_X}`. How long does the reduce-scatter
# over x to `C[I_Y, K_X]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: bidirectional ring, bandwidth only, exact: (N-1)/N · V/W with W both directions of one
# link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
ring_scatter_time = None  # TODO: your answer


# Question ring_reduce_time [us]
# Every chip on a ring of 16 v5e chips holds its own partial sum of a gradient, bfloat16[5120,
# 11264]`{U_X}`. How long does the all-reduce take?
#
# Answer in us (a bare number), or with a unit.
# Model: bidirectional ring, bandwidth only, the all-reduce as a reduce-scatter and an all-gather
# of V/W each.
# Hardware: v5e: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 2D torus, wraps only on
# an axis of 16; HBM 16 GB at 8.2e11 B/s; bf16 1.97e14 FLOP/s; hop 1 us; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
ring_reduce_time = None  # TODO: your answer


# Question line_gather_time [us]
# On a 4x8 slice of v5e with mesh axes x and y, `A` is bfloat16[5120, 4096] sharded `A[I_Y, J]`.
# How long does the all-gather over y to `A[I, J]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: bandwidth only, exact for what the axis is: a ring (N-1)/N · V/W, a line (N-1)/N · V/W1.
# Hardware: v5e: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 2D torus, wraps only on
# an axis of 16; HBM 16 GB at 8.2e11 B/s; bf16 1.97e14 FLOP/s; hop 1 us; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
line_gather_time = None  # TODO: your answer


# Question line_scatter_time [us]
# On a 2x2x4 slice of v5p with mesh axes x (2), y and z (4), `C` is bfloat16[7168, 9216]:
# unreduced over z, its rows cut over x, `C[I_X, K]{U_Z}`. How long does the reduce-scatter over z
# to `C[I_X, K_Z]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: bandwidth only, exact for what the axis is: a ring (N-1)/N · V/W, a line (N-1)/N · V/W1.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
line_scatter_time = None  # TODO: your answer


# Question line_reduce_time [us]
# On a 4x8 slice of v6e with mesh axes x (4) and y (8), every chip holds its own partial sum of a
# gradient that is not cut at all, float32[2560, 20480]`{U_Y}`. How long does the all-reduce over
# y take?
#
# Answer in us (a bare number), or with a unit.
# Model: bandwidth only, exact for what the axis is, the all-reduce as a reduce-scatter and an
# all-gather.
# Hardware: v6e: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 2D torus, wraps only on
# an axis of 16; HBM 32 GB at 1.6e12 B/s; bf16 9.2e14 FLOP/s; hop 1 us; table 2026-11, from How To
# Scale Your Model of 2025-02-04.
line_reduce_time = None  # TODO: your answer
