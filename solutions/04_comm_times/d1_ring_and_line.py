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

## Going further

**The book's rule.** For an even N, V/W is the time of N/2 rounds in which each link carries a whole shard in each
direction: N/2 · V/N / W1 = V/W. At N = 4 the exact time is 25 % shorter than the book's time.

**Bytes and latency.** The dtype gives the bytes of an element: 2 for bfloat16, 4 for float32. A hop takes about 1 µs,
which matters only when shards are tiny (exercise D3).

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them".
"""

from grader.exercise import Exercise
from grader.hardware import all_gather_time, all_reduce_time, reduce_scatter_time, wraps

exercise = Exercise(stars=1)


# -- the function ------------------------------------------------------------------------------


@exercise.function(
    hints=[
        "How many bytes must one chip receive that it does not have yet?",
        "Over how many links does a chip receive at the same time? Over two links on a ring, over one link at the end of a line.",
        "passes * bytes * (axis_size - 1) / axis_size / (links * one_way_bandwidth); an all-reduce has two passes, each other collective has one",
    ]
)
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
    passes = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}
    if kind not in passes:
        raise ValueError(f"unknown collective {kind!r}")
    links = 2 if wraps else 1
    received = bytes * (axis_size - 1) / axis_size
    return passes[kind] * received / (links * one_way_bandwidth)


# -- rings -------------------------------------------------------------------------------------

BOOK_RING = "bidirectional ring, bandwidth only: V/W, where W is the bandwidth of a link in both directions"
EXACT_RING = (
    "bidirectional ring, bandwidth only, exact: (N-1)/N · V/W, where W is the bandwidth of a link in both directions"
)
EXACT_LINE = "bandwidth only, exact: (N-1)/N · V/W if the axis is a ring, (N-1)/N · V/W1 if it is a line"


@exercise.number(
    points=0.25, unit="us", model=BOOK_RING,
    where=lambda chip, N, R, C: wraps(chip, N),
    params={"chip": ["v4p", "v5p", "v5e", "v6e"], "N": [8, 16], "R": [1280, 1536, 2560, 3072, 4608, 5120, 6656],
            "C": [3584, 4096, 7168, 10240, 13824]},
    hints=[
        "Which bytes count: the bytes of a shard, or the bytes of the gathered array?",
        "The model's V is the bytes of the gathered array. Both directions of a link carry data.",
        "time = V / W with 4 bytes per element, and W the both-way bandwidth",
    ],
)  # fmt: skip
def ring_gather_time(chip, N, R, C):
    """`A` is float32[{{ R }}, {{ C }}], sharded `A[I_X, J]` over a ring of {{ N }} {{ chip }} chips (the axis wraps around).
    How long does the all-gather to `A[I, J]` take?"""
    return all_gather_time(4 * R * C, N, chip, topology="ring", model="book")


@exercise.number(
    points=0.25, unit="us", model=EXACT_RING,
    where=lambda chip, X, Y, I, K: X != Y and (chip != "7x" or Y == 4),
    params={"chip": ["v4p", "v5p", "7x"], "X": [4, 12, 16], "Y": [4, 12, 16], "I": [3840, 4608, 6144, 7680, 9216],
            "K": [9216, 12288, 15360, 18432]},
    hints=[
        "Which part of C does one ring along x reduce?",
        "y cuts the rows, so V is 1 / Y of the bytes of C. Which part of V does a chip not have to send?",
        "time = (X − 1) / X · V / W with V = 2 · I · K / Y bytes",
    ],
)  # fmt: skip
def ring_scatter_time(chip, X, Y, I, K):
    """In a {{ chip }} slice of full cubes, the mesh axes x={{ X }} and y={{ Y }} wrap around. y cuts the rows of `C`, bfloat16[{{ I }}, {{ K }}], and the chips
    along x hold partial sums of `C`: `C[I_Y, K]{U_X}`. How long does the reduce-scatter over x to `C[I_Y, K_X]` take?"""
    return reduce_scatter_time(2 * I * K / Y, X, chip, topology="ring", model="exact")


@exercise.number(
    points=0.25, unit="us", model="bidirectional ring, bandwidth only: the all-reduce is a reduce-scatter and an all-gather, and each of the two takes V/W",
    where=lambda chip, N, D, F: wraps(chip, N),
    params={"chip": ["v4p", "v5p", "v5e", "v6e"], "N": [4, 8, 16], "D": [2304, 2560, 3584, 4096, 5120, 6656],
            "F": [6144, 11264, 12288, 13824, 20480]},
    hints=[
        "Which two collectives make an all-reduce?",
        "An all-reduce is a reduce-scatter and an all-gather, each of the whole gradient. Both directions of a link carry data.",
        "time = 2 · V / W with 2 bytes per element",
    ],
)  # fmt: skip
def ring_reduce_time(chip, N, D, F):
    """Every chip on a ring of {{ N }} {{ chip }} chips holds its own partial sum of a gradient, bfloat16[{{ D }}, {{ F }}]`{U_X}`.
    How long does the all-reduce take?"""
    return all_reduce_time(2 * D * F, N, chip, topology="ring", model="book")


# -- lines -------------------------------------------------------------------------------------


@exercise.number(
    points=0.25, unit="us", model=EXACT_LINE,
    where=lambda chip, X, Y, R, C: (X, Y) in {(8, 4), (4, 8), (16, 8)},
    params={"chip": ["v5e", "v6e"], "X": [4, 8, 16], "Y": [4, 8], "R": [1024, 1280, 2048, 2560, 5120],
            "C": [4096, 6144, 10240, 12288]},
    hints=[
        "Does the axis wrap around on this chip? See the hardware line of the question.",
        "A v5e or v6e axis of 4 or 8 chips is a line: the chip at its end receives over one link, in one direction.",
        "time = (Y − 1) / Y · V / W1 with 2 bytes per element, and W1 the one-way bandwidth",
    ],
)  # fmt: skip
def line_gather_time(chip, X, Y, R, C):
    """On a {{ X }}x{{ Y }} slice of {{ chip }} with mesh axes x and y, `A` is bfloat16[{{ R }}, {{ C }}] sharded `A[I_Y, J]`.
    How long does the all-gather over y to `A[I, J]` take?"""
    return all_gather_time(2 * R * C, Y, chip, topology="line", model="exact")


@exercise.number(
    points=0.25, unit="us", model=EXACT_LINE,
    params={"chip": ["v4p", "v5p", "7x"], "I": [3072, 4096, 6144, 7168, 10240],
            "K": [5120, 9216, 12288, 18432]},
    hints=[
        "Does the axis of this slice wrap around? And which part of C does one line along z reduce?",
        "The slice is smaller than a full cube, so z is a line. y cuts the rows into four parts.",
        "time = (4 − 1) / 4 · V / W1 with V = (bytes of C) / 4",
    ],
)  # fmt: skip
def line_scatter_time(chip, I, K):
    """A 2x4x4 slice of {{ chip }} has the mesh axes x (2), y (4) and z (4). y cuts the rows of `C`, bfloat16[{{ I }}, {{ K }}], and the chips along
    z hold partial sums of `C`: `C[I_Y, K]{U_Z}`. How long does the reduce-scatter over z to `C[I_Y, K_Z]` take?"""
    return reduce_scatter_time(2 * I * K / 4, 4, chip, topology="line", model="exact")


@exercise.number(
    points=0.25, unit="us", model="bandwidth only, with the exact rule for the kind of the axis, ring or line; the all-reduce is a reduce-scatter and an all-gather",
    params={"chip": ["v5e", "v6e"], "D": [1536, 2560, 3072, 4096, 5120, 7168],
            "F": [4096, 6144, 10240, 12288, 14336, 20480]},
    hints=[
        "Which of the two axes does the all-reduce run over, and does this axis wrap around?",
        "On v5e and v6e an axis of 8 chips is a line. Nothing cuts the gradient, so V is all of its bytes.",
        "time of a reduce-scatter and an all-gather = 2 · 7 / 8 · V / W1 with 4 bytes per element",
    ],
)  # fmt: skip
def line_reduce_time(chip, D, F):
    """On a 16x8 slice of {{ chip }} with mesh axes x (16) and y (8), the chips along y hold partial sums of a gradient that no axis
    cuts, float32[{{ D }}, {{ F }}]`{U_Y}`. How long does the all-reduce over y take?"""
    return all_reduce_time(4 * D * F, 8, chip, topology="line", model="exact")
