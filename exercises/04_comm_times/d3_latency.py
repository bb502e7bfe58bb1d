"""# D3 Latency or bandwidth?

A hop to the next chip takes about 1 µs, even if it carries almost nothing. For small arrays the number of hops sets the
time. For large arrays the bytes set the time. While a piece of the array makes a hop, the links already carry the next
pieces. So the longer of the two times counts, not their sum.

```
   ring of 6: both ways, 3 hops       line of 6: end to end, 5 hops

      0 -- 1 -- 2                        0 -- 1 -- 2 -- 3 -- 4 -- 5
      |         |
      5 -- 4 -- 3
   from 0 to 3: ⌊6/2⌋ hops
```

**Write** `gather_and_limit(bytes, sizes, wraps, one_way_bandwidth, hop_time)` for an all-gather. It returns
`(seconds, "latency")` or `(seconds, "bandwidth")`: the time, and what sets it.

| | type | meaning |
|---|---|---|
| `bytes` | int | V |
| `sizes` | tuple of ints | sizes of the axes, each at least 2 |
| `wraps` | bool | `True`: all axes are rings; `False`: all axes are lines |
| `one_way_bandwidth`, `hop_time` | float | W1; seconds of a hop |

**Model.** time = max(time by latency, time by bandwidth). In no test are the two times equal. Your function uses the
table. On a ring the questions use the book's V/W, without (N − 1)/N.

| | ring of N | line of N | several axes |
|---|---|---|---|
| latency: hops · hop time | ⌊N/2⌋ hops | N − 1 hops | sum of the hops |
| bandwidth: (N − 1)/N · V / (links · W1) | 2 links | 1 link | sum of the axes' links; N = all chips |

**What is checked**

| check | small case |
|---|---|
| small arrays on a ring | |
| small arrays on a line | 3 µs, `"latency"` |
| small and large arrays over two and three axes | |
| large arrays on rings and lines | 17.5 µs, `"bandwidth"` |

**Symbols.** V: bytes of the array after the gather over these axes. N: chips along an axis, or of all axes. W1: one-way bandwidth
of a link. W = 2·W1: both-way bandwidth.

**Small case** (ideal times). A line of 4 v5e chips, W1 = 4.5e10 bytes/s, gathers bfloat16[256, 256], V = 131 kB.
Latency: 3 hops take 3 µs. Bandwidth: 3/4 · 131 kB / W1 = 2.2 µs. So the gather takes 3 µs, not the sum of 5.2 µs. With
2048 rows the gather takes 3/4 · 1.05 MB / W1 = 17.5 µs.

Check your work: shardlings check d3_latency
Notes on all exercises of this module: see README.md, or run shardlings show 04_comm_times
The text "Going further" is below the code.
"""

import math


def gather_and_limit(bytes, sizes, wraps, one_way_bandwidth, hop_time):
    """Return the time of an all-gather, and what sets it.

    Args:
        bytes: V, the bytes of the array after the gather over these axes.
        sizes: tuple of the sizes of these axes, each at least 2.
        wraps: True when all these axes are rings, False when all are lines.
        one_way_bandwidth: W1, bytes/s of one link in one direction. hop_time: seconds per hop.

    Returns:
        (seconds, "latency") or (seconds, "bandwidth").
    """
    # TODO: write this function
    raise NotImplementedError("gather_and_limit")


# Question tiny_gather_time [us]
# Two arrays are cut over an axis of 16 v5e chips, bfloat16[192, 320] and bfloat16[5120, 320]. How
# long do their all-gathers take, one after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: max(hops · 1 us, bandwidth) for each array; a ring has ⌊N/2⌋ hops and takes V / W, a line
# has N-1 hops and takes (N-1)/N · V / W1.
# Hardware: v5e: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 2D torus, wraps only on
# an axis of 16; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
tiny_gather_time = None  # TODO: your answer


# Question two_rings_tiny_time [us]
# The rows of two arrays, bfloat16[384, 1280] and bfloat16[6144, 1280], are cut, `I_XY`, over two
# axes of v5p that wrap around, x=8 and y=16. How long do their all-gathers over both axes take,
# one after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: max(latency, bandwidth) for each array; latency is 1 us per hop, bandwidth is V / (2·W)
# over two rings at once.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; hop 1 us; table 2026-11,
# from How To Scale Your Model of 2025-02-04.
two_rings_tiny_time = None  # TODO: your answer


# Question latency_bound_below [kB]
# An array is all-gathered over a ring of 8 v4p chips. Up to which size of the *whole* array, in
# kB, does latency set the time?
#
# Answer in kB (a bare number), or with a unit.
# Model: on a ring of even N: latency N/2 · 1 us, bandwidth V / W, where W is the bandwidth of a
# link in both directions.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; hop 1 us; table 2026-11,
# from How To Scale Your Model of 2025-02-04.
latency_bound_below = None  # TODO: your answer


# ## Going further
#
# **Rule of thumb.** Latency sets the time if a shard has fewer bytes than a link carries in 1 µs: W1 · 1 µs, which is 45
# kB on v5e. A shard of the small case has 33 kB. A link carries this shard in 0.73 µs, but the hop takes 1 µs.
#
# **Model and chip.** In a profile that the book shows, the small case took 8 µs, not 3 µs. A chip needs about 5 µs to
# start a collective, and then the time of the hops. The questions and the grader's clock, its model of time, leave out
# these 5 µs.
#
# **In real systems.** Decoding has tiny activations, so it gains little from more chips: the arrays shrink and the number
# of hops grows.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", question 3.
