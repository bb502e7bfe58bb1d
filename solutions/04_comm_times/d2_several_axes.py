"""# D2 Collectives over several axes, and arrays that other axes cut too

A mesh has several axes. A collective talks over some of them, and the array may be cut by others that stay silent.
Two questions settle the time:

1. **How much talks?** A group is the chips that differ only along the axes that talk. `V` is what one group holds
   together: the bytes of the array divided by the axes that cut it and stay *silent*.
2. **Over how many links?** Each axis that talks adds a ring of its own: `n` axes give every chip `n·W`.

```
   A[I_X, J_Y] on x=4, y=2, gathered over x: time = V / (n·W), n = 1,
   twice that for an all-reduce

   y=0   0 -- 1 -- 2 -- 3    this row gathers the left half of A's columns,
   y=1   4 -- 5 -- 6 -- 7    this one the right half: V = bytes / Y
```

| collective | before → after | V | n |
|---|---|---|---|
| all-gather over x | `A[I_X, J_Y] → A[I, J_Y]` | bytes / Y | 1 |
| all-gather over x, y | `A[I_XY, J_Z] → A[I, J_Z]` | bytes / Z | 2 |
| all-reduce over z | `A[I_X, J_Y]{U_Z} → A[I_X, J_Y]` | bytes / (X·Y) | 1, two passes |

**Task.** Write `axes_time`. An all-gather talks over axes that cut the array; a reduce-scatter or all-reduce over axes
that do not (its input is unreduced there). Anything else raises `ValueError`. An axis of one chip has no links.

**Small case.** `A` is bfloat16[2048, 8192], 33.6 MB, on v4p (W = 9.0e10) with x=4, y=8. Gathering `A[I_X, J_Y]` over x:
33.6 / 8 = 4.2 MB, 47 µs; the 8 groups never talk to each other. Forget y and it is 373 µs; divide by x instead of y
and it is 93 µs. On a 4x4 mesh the last two mistakes would hide each other, so no two axes are equal here. Gathering
`A[I_XY, J]` over both axes: 186 µs.

**In real systems** the FSDP axis gathers weights that the tensor axis has already cut, and folding two or three torus axes
into one mesh axis is how a TPU slice gets its bandwidth.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", question 2.
"""

import math

from grader.exercise import Exercise
from grader.hardware import all_gather_time, all_reduce_time

exercise = Exercise(stars=2)


@exercise.given
def cutting_axes(spec):
    """All axes that a spec names, in a list."""
    named = []
    for entry in spec:
        if entry is not None:
            named.extend([entry] if isinstance(entry, str) else entry)
    return named


@exercise.function(
    hints=[
        "Which axes cut the array? Of those, which talk and which stay silent?",
        "V = bytes / (silent axes that cut); the bandwidth is W = 2·W1 for every talking axis of more than one chip.",
        "silent = math.prod(mesh_shape[a] for a in cuts if a not in over); n = sum(mesh_shape[a] > 1 for a in over)",
    ]
)
def axes_time(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """Seconds of a collective over one or more axes of a torus, all of them rings; bandwidth only, V / (n·W).

    Args:
        kind: "all_gather", "reduce_scatter" or "all_reduce".
        shape: of the whole array; itemsize: bytes of one element.
        spec: PartitionSpec of the array *before* the collective.
        over: tuple of the axes that talk; mesh_shape: such as {"x": 4, "y": 2}.
        one_way_bandwidth: W1, bytes/s of one link in one direction.
    """
    cuts = cutting_axes(spec)
    if any((axis in cuts) != (kind == "all_gather") for axis in over):
        raise ValueError("gather over axes that cut the array, reduce over axes that do not")
    silent = math.prod(mesh_shape[axis] for axis in cuts if axis not in over)
    rings = sum(mesh_shape[axis] > 1 for axis in over)
    passes = 2 if kind == "all_reduce" else 1
    group_bytes = math.prod(shape) * itemsize / silent
    return passes * group_bytes / (rings * 2 * one_way_bandwidth) if rings else 0.0


question = {
    "unit": "us",
    "params": {
        "chip": ["v4p", "v5p"], "X": [4, 12, 16], "Y": [4, 12, 16], "Z": [4, 12, 16],
        "I": [3072, 6144, 9216], "J": [9216, 12288, 18432],
    },
    "where": lambda chip, X, Y, Z, I, J: len({X, Y, Z}) == 3,
    "model": "every axis is a ring; bandwidth only, V / (n·W) for n axes at once, with W both directions of one link",
}  # fmt: skip


@exercise.number(points=0.25, **question)
def gather_cut_elsewhere_time(chip, X, Y, Z, I, J):
    """`A` is bfloat16[{{ I }}, {{ J }}], sharded `A[I_X, J_Y]` on a {{ chip }} slice with x={{ X }}, y={{ Y }}, z={{ Z }}.
    How long does the all-gather over x to `A[I, J_Y]` take?"""
    return all_gather_time(2 * I * J / Y, X, chip)


@exercise.number(points=0.25, **question)
def gather_two_axes_time(chip, X, Y, Z, I, J):
    """`A` is float32[{{ I }}, {{ J }}], sharded `A[I_XY, J_Z]` on a {{ chip }} slice with x={{ X }}, y={{ Y }}, z={{ Z }}.
    How long does the all-gather over x and y to `A[I, J_Z]` take?"""
    return all_gather_time(4 * I * J / Z, X * Y, chip, axes=2)


@exercise.number(points=0.5, **question)
def reduce_cut_elsewhere_time(chip, X, Y, Z, I, J):
    """`C` is float32[{{ I }}, {{ J }}], sharded `C[I_X, J_Y]` and unreduced over z, `{U_Z}`, on a {{ chip }} slice with
    x={{ X }}, y={{ Y }}, z={{ Z }}. How long does the all-reduce over z take?"""
    return all_reduce_time(4 * I * J / (X * Y), Z, chip)
