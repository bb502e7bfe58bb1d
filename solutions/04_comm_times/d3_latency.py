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
"""

import math

from grader.exercise import Exercise
from grader.expect import expect_outcomes
from grader.hardware import CHIPS, HOP_TIME, axis_topology, latency, latency_bound_bytes

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "Work out two times: one as if arrays were empty, one as if hops took no time.",
        "Hops: n // 2 per ring, n - 1 per line, summed over the axes. Links into a chip: 2 or 1 per axis.",
        "total = math.prod(sizes); bandwidth = bytes * (total - 1) / total / (links * one_way_bandwidth)",
    ]
)
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
    hops = sum(n // 2 if wraps else n - 1 for n in sizes)
    links = len(sizes) * (2 if wraps else 1)
    total = math.prod(sizes)
    waiting = hops * hop_time
    moving = bytes * (total - 1) / total / (links * one_way_bandwidth)
    return max((waiting, "latency"), (moving, "bandwidth"))


def drawn(rng, wraps, axes, low, high, tries=50):
    """Arrays so large that bandwidth takes ``low`` to ``high`` times as long as the hops."""
    for _ in range(tries):
        sizes = tuple(rng.choice([3, 4, 5, 6, 8, 12, 16], axes, replace=False).tolist())
        bandwidth, hop = float(rng.choice([4.5e10, 9e10])), float(rng.choice([1e-6, 1.5e-6]))
        hops, links = sum(n // 2 if wraps else n - 1 for n in sizes), axes * (2 if wraps else 1)
        bytes = int(rng.uniform(low, high) * hops * hop * links * bandwidth)
        yield {"bytes": bytes, "sizes": sizes, "wraps": wraps, "one_way_bandwidth": bandwidth, "hop_time": hop}


def example(bytes, sizes, wraps):
    return {"bytes": bytes, "sizes": sizes, "wraps": wraps, "one_way_bandwidth": 4.5e10, "hop_time": 1e-6}


ring = exercise.cases(
    gather_and_limit, public=[example(60_000, (6,), True)], hidden=lambda rng: drawn(rng, True, 1, 0.1, 0.8)
)
line = exercise.cases(
    gather_and_limit, public=[example(131_072, (4,), False)], hidden=lambda rng: drawn(rng, False, 1, 0.1, 0.8)
)
torus = exercise.cases(
    gather_and_limit,
    public=[example(200_000, (4, 8), True), example(9_000_000, (4, 8), True)],
    hidden=lambda rng: [*drawn(rng, True, 2, 0.1, 4), *drawn(rng, True, 3, 0.1, 4), *drawn(rng, False, 2, 0.1, 4)],
)
large = exercise.cases(
    gather_and_limit,
    public=[example(1_048_576, (4,), False), example(12_582_912, (8,), True)],
    hidden=lambda rng: [*drawn(rng, True, 1, 2, 9), *drawn(rng, False, 1, 2, 9)],
)


@exercise.check(ring, points=0.25, public=True)
def limit_tiny_ring(seen):
    """gather_and_limit: small arrays on a ring"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(line, points=0.25, public=True)
def limit_tiny_line(seen):
    """gather_and_limit: small arrays on a line"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(torus, points=0.25)
def limit_axes(seen):
    """gather_and_limit: two and three axes at once, small and large arrays"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(large, points=0.25, public=True)
def limit_large(seen):
    """gather_and_limit: large arrays on rings and lines"""
    expect_outcomes(seen, rtol=1e-6)


# -- questions ---------------------------------------------------------------------------------


@exercise.number(
    points=0.25,
    unit="us",
    params={"chip": ["v5e", "v6e"], "N": [4, 8, 16], "R": [160, 224, 352, 448], "C": [128, 256, 320]},
    where=lambda chip, N, R, C: 0.2 < 2 * R * C / N / latency_bound_bytes(chip) < 0.95,
    model="max(hops · 1 us, bandwidth); a ring has ⌊N/2⌋ hops and takes V / W, a line N-1 hops and (N-1)/N · V / W1",
)
def tiny_gather_time(chip, N, R, C):
    """`A` is bfloat16[{{ R }}, {{ C }}], cut over an axis of {{ N }} {{ chip }} chips. How long does its all-gather take?"""
    return latency(N, axis_topology(chip, N))


@exercise.number(
    points=0.25,
    unit="us",
    params={"chip": ["v4p", "v5p"], "X": [4, 8, 12], "Y": [8, 12, 16], "R": [512, 640], "C": [896, 960, 1216]},
    where=lambda chip, X, Y, R, C: X < Y and 0.25 < 2 * R * C / (2 * CHIPS[chip].ici_both) / latency((X, Y)) < 0.9,
    model="max(latency, bandwidth): latency is 1 us per hop, bandwidth V / (2·W) over two rings at once",
)
def two_rings_tiny_time(chip, X, Y, R, C):
    """`A` is bfloat16[{{ R }}, {{ C }}], sharded `A[I_XY, J]` over two wrapping axes of {{ chip }}, x={{ X }} and y={{ Y }}.
    How long does the all-gather over both take?"""
    return latency((X, Y))


@exercise.number(
    points=0.5,
    unit="kB",
    params={"chip": ["v4p", "v5p"], "N": [4, 8, 12, 16]},
    model="on a ring of even N: latency N/2 · 1 us, bandwidth V / W with W both directions of one link",
)
def latency_bound_below(chip, N):
    """An array is all-gathered over a ring of {{ N }} {{ chip }} chips. Up to how many kB of the *whole* array does latency
    set the time?"""
    return N / 2 * HOP_TIME * CHIPS[chip].ici_both
