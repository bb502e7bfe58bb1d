"""# D3 Latency or bandwidth?

A hop to the next chip takes about 1 µs, however little it carries. A tiny shard has arrived long before that
microsecond is over, so for small arrays the time is the *number of hops*; for large ones it is the bytes.

```
   ring of 6: both ways, 3 hops       line of 6: end to end, 5 hops

      0 -- 1 -- 2                        0 -- 1 -- 2 -- 3 -- 4 -- 5
      |         |
      5 -- 4 -- 3                     several axes: one after the other,
   from 0 to 3: ⌊6/2⌋ hops            add the hops
```

**The time model.** Hops carry bytes while they wait, so the two do not add up:

- latency = hops · 1 µs, with ⌊N/2⌋ hops along a ring of N and N − 1 along a line; over several axes, the sum;
- bandwidth = what a chip must receive, (N−1)/N of the array (N chips in all), over all links into it at once: two per
  ring axis; on lines the chip in the corner has one per axis;
- time = **max**(latency, bandwidth).

**Task.** Write `gather_and_limit`. It returns the seconds and what sets them, "latency" or "bandwidth".

**Small case.** bfloat16[256, 256], 131 kB, over 4 chips of a v5e (a line, W1 = 4.5e10). Each shard of 33 kB needs 0.73 µs
of its link, less than a hop: 3 hops, 3 µs. Bandwidth alone says 2.2 µs; adding the two says 5.2. With 2048 rows it is
3/4 · 1.05 MB / 4.5e10 = 17 µs, and the hops have disappeared behind the bytes.

**Rule of thumb.** A shard of less than W1 · 1 µs is latency-bound: 45 kB on v5e.

**In real systems** this is why decoding, with its tiny activations, gains little from more chips: the arrays shrink,
the hops grow.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", question 3.

Check your work: shardlings check d3_latency
"""

import math


def gather_and_limit(bytes, sizes, wraps, one_way_bandwidth, hop_time):
    """Time of an all-gather, and what sets it.

    Args:
        bytes: V, the full logical array over the axes that talk.
        sizes: tuple of the sizes of these axes, each at least 2.
        wraps: True when all of them are rings, False when all are lines.
        one_way_bandwidth: W1, bytes/s of one link in one direction. hop_time: seconds per hop.

    Returns:
        (seconds, "latency") or (seconds, "bandwidth").
    """
    # TODO: write this function
    raise NotImplementedError("gather_and_limit")


# Question tiny_gather_time [us]
# Two arrays are cut over an axis of 4 v5e chips, bfloat16[160, 128] and bfloat16[1984, 128]. How
# long do their all-gathers take, one after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: max(hops · 1 us, bandwidth) for each; a ring has ⌊N/2⌋ hops and takes V / W, a line N-1
# hops and (N-1)/N · V / W1.
# Hardware: v5e: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 2D torus, wraps only on
# an axis of 16; HBM 16 GB at 8.2e11 B/s; bf16 1.97e14 FLOP/s; hop 1 us; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
tiny_gather_time = None  # TODO: your answer


# Question two_rings_tiny_time [us]
# bfloat16[384, 1152] and bfloat16[4608, 1152] have their rows cut, `I_XY`, over two wrapping axes
# of v5p, x=8 and y=12. How long do their all-gathers over both axes take, one after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: max(latency, bandwidth) for each: latency is 1 us per hop, bandwidth V / (2·W) over two
# rings at once.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
two_rings_tiny_time = None  # TODO: your answer


# Question latency_bound_below [kB]
# An array is all-gathered over a ring of 16 v4p chips. Up to how many kB of the *whole* array
# does latency set the time?
#
# Answer in kB (a bare number), or with a unit.
# Model: on a ring of even N: latency N/2 · 1 us, bandwidth V / W with W both directions of one
# link.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
latency_bound_below = None  # TODO: your answer
