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
"""

from grader.exercise import Exercise
from grader.hardware import all_gather_time, all_reduce_time, reduce_scatter_time, wraps

exercise = Exercise(stars=1)


# -- the function ------------------------------------------------------------------------------


@exercise.function(
    hints=[
        "How many bytes must one chip receive that it does not have yet?",
        "Over how many incoming links at once? Two on a ring, one at the end of a line.",
        "An all-reduce is a reduce-scatter followed by an all-gather.",
    ]
)
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
    passes = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}
    if kind not in passes:
        raise ValueError(f"unknown collective {kind!r}")
    links = 2 if wraps else 1
    received = bytes * (axis_size - 1) / axis_size
    return passes[kind] * received / (links * one_way_bandwidth)


# -- rings -------------------------------------------------------------------------------------

BOOK_RING = "bidirectional ring, bandwidth only, V/W with W both directions of one link"
EXACT_RING = "bidirectional ring, bandwidth only, exact: (N-1)/N · V/W with W both directions of one link"
EXACT_LINE = "bandwidth only, exact for what the axis is: a ring (N-1)/N · V/W, a line (N-1)/N · V/W1"


@exercise.number(
    points=0.25, unit="us", model=BOOK_RING,
    where=lambda chip, N, R, C: wraps(chip, N),
    params={"chip": ["v4p", "v5p", "v5e", "v6e"], "N": [8, 16], "R": [1280, 1536, 2560, 3072, 4608, 5120, 6656],
            "C": [3584, 4096, 7168, 10240, 13824]},
)  # fmt: skip
def ring_gather_time(chip, N, R, C):
    """`A` is float32[{{ R }}, {{ C }}], sharded `A[I_X, J]` over a ring of {{ N }} {{ chip }} chips (the axis wraps around).
    How long does the all-gather to `A[I, J]` take?"""
    return all_gather_time(4 * R * C, N, chip, topology="ring", model="book")


@exercise.number(
    points=0.25, unit="us", model=EXACT_RING,
    where=lambda chip, X, Y, I, K: X != Y and (chip != "7x" or Y == 4),
    params={"chip": ["v4p", "v5p", "7x"], "X": [4, 8, 16], "Y": [4, 8, 16], "I": [3840, 4096, 6144, 7168, 10240],
            "K": [9216, 11264, 14336, 18432]},
)  # fmt: skip
def ring_scatter_time(chip, X, Y, I, K):
    """`C` is bfloat16[{{ I }}, {{ K }}] on {{ chip }} with a mesh of X={{ X }} and Y={{ Y }} (both axes wrap around):
    it is unreduced over x and its rows are cut over y, `C[I_Y, K]{U_X}`. How long does the reduce-scatter over x to `C[I_Y, K_X]` take?"""
    return reduce_scatter_time(2 * I * K / Y, X, chip, topology="ring", model="exact")


@exercise.number(
    points=0.25, unit="us", model="bidirectional ring, bandwidth only, the all-reduce as a reduce-scatter and an all-gather of V/W each",
    where=lambda chip, N, D, F: wraps(chip, N),
    params={"chip": ["v4p", "v5p", "v5e", "v6e"], "N": [4, 8, 16], "D": [2304, 2560, 3584, 4096, 5120, 6656],
            "F": [6144, 11264, 12288, 13824, 20480]},
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
)  # fmt: skip
def line_gather_time(chip, X, Y, R, C):
    """On a {{ X }}x{{ Y }} slice of {{ chip }} with mesh axes x and y, `A` is bfloat16[{{ R }}, {{ C }}] sharded `A[I_Y, J]`.
    How long does the all-gather over y to `A[I, J]` take?"""
    return all_gather_time(2 * R * C, Y, chip, topology="line", model="exact")


@exercise.number(
    points=0.25, unit="us", model=EXACT_LINE,
    params={"chip": ["v4p", "v5p", "7x"], "slice": ["2x2x4", "2x4x4"], "I": [3072, 4096, 6144, 7168, 10240],
            "K": [5120, 9216, 12288, 18432]},
)  # fmt: skip
def line_scatter_time(chip, slice, I, K):
    """On a {{ slice }} slice of {{ chip }} with mesh axes x (2), y and z (4), `C` is bfloat16[{{ I }}, {{ K }}]:
    unreduced over z, its rows cut over x, `C[I_X, K]{U_Z}`. How long does the reduce-scatter over z to `C[I_X, K_Z]` take?"""
    return reduce_scatter_time(2 * I * K / 2, 4, chip, topology="line", model="exact")


@exercise.number(
    points=0.25, unit="us", model="bandwidth only, exact for what the axis is, the all-reduce as a reduce-scatter and an all-gather",
    params={"chip": ["v5e", "v6e"], "D": [1536, 2560, 3072, 4096, 5120, 7168],
            "F": [4096, 6144, 10240, 12288, 14336, 20480]},
)  # fmt: skip
def line_reduce_time(chip, D, F):
    """On a 4x8 slice of {{ chip }} with mesh axes x (4) and y (8), every chip holds its own partial sum of a gradient that is
    not cut at all, float32[{{ D }}, {{ F }}]`{U_Y}`. How long does the all-reduce over y take?"""
    return all_reduce_time(4 * D * F, 8, chip, topology="line", model="exact")
