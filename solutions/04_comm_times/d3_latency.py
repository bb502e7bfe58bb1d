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

## Going further

**Rule of thumb.** Latency sets the time if a shard has fewer bytes than a link carries in 1 µs: W1 · 1 µs, which is 45
kB on v5e. A shard of the small case has 33 kB. A link carries this shard in 0.73 µs, but the hop takes 1 µs.

**Model and chip.** In a profile that the book shows, the small case took 8 µs, not 3 µs. A chip needs about 5 µs to
start a collective, and then the time of the hops. The questions and the grader's clock, its model of time, leave out
these 5 µs.

**In real systems.** Decoding has tiny activations, so it gains little from more chips: the arrays shrink and the number
of hops grows.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", question 3.
"""

import math

from grader.exercise import Exercise
from grader.hardware import CHIPS, all_gather_time, axis_topology, hop_time, largest_slice, latency, latency_bound_bytes

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "Compute two times: one as if the array had no bytes, and one as if hops had no latency.",
        "Hops: n // 2 per ring, n - 1 per line, summed over the axes. Links into a chip: 2 per ring, 1 per line.",
        "total = math.prod(sizes); bandwidth = bytes * (total - 1) / total / (links * one_way_bandwidth)",
    ]
)
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
    hops = sum(n // 2 if wraps else n - 1 for n in sizes)
    links = len(sizes) * (2 if wraps else 1)
    total = math.prod(sizes)
    waiting = hops * hop_time
    moving = bytes * (total - 1) / total / (links * one_way_bandwidth)
    return max((waiting, "latency"), (moving, "bandwidth"))


# -- questions ---------------------------------------------------------------------------------


def gather_on_rings_or_lines(bytes, sizes, chip, topology):
    """Return the seconds of an all-gather's hops and the seconds of its bytes, over axes of these sizes."""
    return latency(sizes, topology), all_gather_time(bytes, math.prod(sizes), chip, topology=topology, axes=len(sizes))


def one_after_the_other(arrays, sizes, chip, topology="ring"):
    """Return the seconds of several all-gathers. Each all-gather takes the longer of two times: its hops, and its bytes."""
    return sum(max(gather_on_rings_or_lines(bytes, sizes, chip, topology)) for bytes in arrays)


@exercise.number(
    points=0.25,
    unit="us",
    params={
        "chip": ["v5e", "v6e"],
        "N": [4, 8, 16],
        "R": [128, 160, 192, 224],
        "L": [1984, 2560, 3072, 3328, 3584, 4096, 5120],
        "C": [128, 192, 224, 256, 320],
    },
    where=lambda chip, N, R, L, C: (
        0.15 < 2 * R * C / N / latency_bound_bytes(chip) < 0.32
        and (7 if N == 4 else 3.6) < 2 * L * C / N / latency_bound_bytes(chip) < (4.2 if N == 8 else 9)
    ),
    model="max(hops · 1 us, bandwidth) for each array; a ring has ⌊N/2⌋ hops and takes V / W, a line has N-1 hops and takes (N-1)/N · V / W1",
    hints=[
        "For each array: does the number of hops or the number of bytes set the time?",
        "First find out whether the axis is a ring or a line. For one array the hops set the time, for the other array the bytes do.",
        "On a ring an array takes the longer of ⌊N / 2⌋ us and V / W. On a line an array takes the longer of N − 1 us and (N − 1) / N · V / W1. Add the times of the two arrays.",
    ],
)
def tiny_gather_time(chip, N, R, L, C):
    """Two arrays are cut over an axis of {{ N }} {{ chip }} chips, bfloat16[{{ R }}, {{ C }}] and bfloat16[{{ L }}, {{ C }}]. How long do their
    all-gathers take, one after the other?"""
    return one_after_the_other((2 * R * C, 2 * L * C), (N,), chip, axis_topology(chip, N))


@exercise.number(
    points=0.25,
    unit="us",
    params={"chip": ["v4p", "v5p"], "X": [4, 8], "Y": [8, 12, 16], "R": [384, 768], "L": [3072, 4608, 6144], "C": [896, 1280]},
    where=lambda chip, X, Y, R, L, C: (
        X < Y
        and 0.1 < 2 * R * C / (2 * CHIPS[chip].ici_both) / latency((X, Y)) < 0.4
        and 2.2 < 2 * L * C / (2 * CHIPS[chip].ici_both) / latency((X, Y)) < 4
    ),
    model="max(latency, bandwidth) for each array; latency is 1 us per hop, bandwidth is V / (2·W) over two rings at once",
    hints=[
        "How far is the farthest chip when two axes are rings?",
        "A shard crosses half of each ring. Two rings carry the bytes at the same time.",
        "time = for each array the longer of ⌊X / 2⌋ + ⌊Y / 2⌋ us and V / (2 · W). Add the times of the two arrays.",
    ],
)  # fmt: skip
def two_rings_tiny_time(chip, X, Y, R, L, C):
    """The rows of two arrays, bfloat16[{{ R }}, {{ C }}] and bfloat16[{{ L }}, {{ C }}], are cut, `I_XY`, over two axes of {{ chip }} that wrap
    around, x={{ X }} and y={{ Y }}. How long do their all-gathers over both axes take, one after the other?"""
    return one_after_the_other((2 * R * C, 2 * L * C), (X, Y), chip)


@exercise.number(
    points=0.5,
    unit="kB",
    params={"chip": ["v4p", "v5p"], "N": [4, 8, 12, 16, 20, 24]},
    where=lambda chip, N: max(largest_slice(chip)) >= N,
    model="on a ring of even N: latency N/2 · 1 us, bandwidth V / W, where W is the bandwidth of a link in both directions",
    hints=[
        "At which size of the array do latency and bandwidth give equal times?",
        "Write the time of the hops and the time of the bytes as formulas, and set them equal.",
        "V = N / 2 · 1 us · W",
    ],
)
def latency_bound_below(chip, N):
    """An array is all-gathered over a ring of {{ N }} {{ chip }} chips. Up to which size of the *whole* array, in kB, does
    latency set the time?"""
    return N / 2 * hop_time() * CHIPS[chip].ici_both
