"""# D2 Collectives over several axes, and arrays that other axes cut too

A collective runs over some axes of a mesh, and other axes may cut the array too. Chips whose coordinates differ only
along the collective's axes form a group. Two numbers give the time: V, the bytes that one group works on, and n, the
number of rings that carry these bytes at the same time.

```
   A[I_X, J_Y] on x=4, y=2, gathered over x: time = V / (n·W), n = 1,
   twice that for an all-reduce

   y=0   0 -- 1 -- 2 -- 3    this row gathers the left half of A's columns;
   y=1   4 -- 5 -- 6 -- 7    this row gathers the right half; V = bytes / Y
```

| over | before → after | V | n | time |
|---|---|---|---|---|
| x | `A[I_X, J_Y] → A[I, J_Y]` | bytes / Y | 1 | V / W |
| x, y | `A[I_XY, J_Z] → A[I, J_Z]` | bytes / Z | 2 | V / (2·W) |
| z | `A[I_X, J_Y]{U_Z} → A[I_X, J_Y]` | bytes / (X·Y) | 1 | 2·V / W |

**Write** `axes_time(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth)`. It returns seconds.

| | meaning |
|---|---|
| `kind` | `"all_gather"`, `"reduce_scatter"` or `"all_reduce"` |
| `shape`, `itemsize` | shape of the whole array; bytes of one element |
| `spec` | `PartitionSpec` before the collective |
| `over` | tuple of the collective's axes |
| `mesh_shape`, `one_way_bandwidth` | dict of the axes' sizes; W1 |

**What is checked**

| check | rule | small case |
|---|---|---|
| an all-gather over one axis, while other axes cut the array too | V / W | 47 µs |
| an all-gather over two or three axes at once | V / (n·W) | 186 µs |
| reduce-scatter and all-reduce of an array that other axes cut | V / (n·W); an all-reduce takes twice as long | |
| an axis of one chip has no links | it does not count in n; if all axes of `over` have one chip, the time is 0 | |
| a gather over an axis that does not cut the array, or a reduction over an axis that cuts it, raises `ValueError` | | |

**Symbols.** V: bytes of the array / the product of the sizes of all *other* axes that cut it. W1: one-way bandwidth of
a link. W = 2·W1: both-way bandwidth. X, Y, Z: sizes of axes; each axis is a ring. `{U_Z}`: partial sums over z.

**Small case.** `A` is bfloat16[2048, 8192], 33.6 MB, on v4p chips with x=4, y=8 (W = 9.0e10 bytes/s; ideal times). A
gather of `A[I_X, J_Y]` over x has V = 33.6 / 8 = 4.2 MB and takes 47 µs. A gather of `A[I_XY, J]` over both axes takes
33.6 MB / 2W = 186 µs.

## Going further

The 8 groups of the small case never send to each other. If you forget that y cuts `A`, you find 373 µs. If you divide
by X in place of Y, you find 93 µs. On a 4x4 mesh the second mistake would give the right time, so no mesh of this
exercise has two axes of equal size, except axes of one chip.

**In real systems.** The FSDP axis gathers weights that the tensor axis has already cut. A TPU slice gets its full
bandwidth when one mesh axis spans two or three torus axes.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", question 2.
"""

import math

from grader.exercise import Exercise
from grader.hardware import all_gather_time, all_reduce_time

exercise = Exercise(stars=2)


@exercise.given
def cutting_axes(spec):
    """Return a list of the axes that a spec names."""
    named = []
    for entry in spec:
        if entry is not None:
            named.extend([entry] if isinstance(entry, str) else entry)
    return named


@exercise.function(
    hints=[
        "Which axes cut the array? Which of these axes belong to the collective, and which do not?",
        "V = bytes / (product of the sizes of the other axes that cut the array). Each axis of the collective with more than one chip adds W = 2·W1 to the bandwidth.",
        "others = math.prod(mesh_shape[a] for a in cuts if a not in over); n = sum(mesh_shape[a] > 1 for a in over)",
    ]
)
def axes_time(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """Return the seconds of a collective over one or more axes: bandwidth only, V / (n·W). Every axis is a ring.

    Args:
        kind: "all_gather", "reduce_scatter" or "all_reduce".
        shape: shape of the whole array. itemsize: bytes of one element.
        spec: PartitionSpec of the array *before* the collective.
        over: tuple of the collective's axes. mesh_shape: size of each axis, such as {"x": 4, "y": 2}.
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
    "model": "every axis is a ring; bandwidth only: a collective over n axes takes V / (n·W), and an all-reduce takes twice as long; W counts both directions of a link",
}  # fmt: skip


@exercise.number(
    points=0.25,
    **question | {"where": lambda X, Y, Z, **_: len({X, Y, Z}) == 3 and (Y, Z) != (12, 16)},  # 12/16 is (4 - 1)/4
    hints=[
        "Which part of A does one ring along x gather?",
        "y cuts the columns, so each ring gathers only its own part of the columns.",
        "time = V / W with V = 2 · I · J / Y bytes",
    ],
)
def gather_cut_elsewhere_time(chip, X, Y, Z, I, J):
    """`A` is bfloat16[{{ I }}, {{ J }}], sharded `A[I_X, J_Y]` on a {{ chip }} slice with x={{ X }}, y={{ Y }}, z={{ Z }}.
    How long does the all-gather over x to `A[I, J_Y]` take?"""
    return all_gather_time(2 * I * J / Y, X, chip)


@exercise.number(
    points=0.25,
    **question,
    hints=[
        "How many links of a chip work at the same time?",
        "A chip's rings along x and y each carry half of the bytes. z cuts the columns before the collective.",
        "time = V / (2 · W) with V = 4 · I · J / Z bytes",
    ],
)
def gather_two_axes_time(chip, X, Y, Z, I, J):
    """`A` is float32[{{ I }}, {{ J }}], sharded `A[I_XY, J_Z]` on a {{ chip }} slice with x={{ X }}, y={{ Y }}, z={{ Z }}.
    How long does the all-gather over x and y to `A[I, J_Z]` take?"""
    return all_gather_time(4 * I * J / Z, X * Y, chip, axes=2)


@exercise.number(
    points=0.5,
    **question | {"where": lambda X, Y, Z, **_: len({X, Y, Z}) == 3 and Z != 12},  # 4/12 is 1/3, a mistake of its own
    hints=[
        "Which part of C do the devices of one ring along z add up?",
        "x and y cut C, so the devices of a ring along z add up one block of C, with I / X rows and J / Y columns.",
        "time of an all-reduce on one ring = 2 · V / W with V = 4 · I · J / (X · Y) bytes",
    ],
)
def reduce_cut_elsewhere_time(chip, X, Y, Z, I, J):
    """`C` is float32[{{ I }}, {{ J }}], sharded `C[I_X, J_Y]` and unreduced over z, `{U_Z}`, on a {{ chip }} slice with
    x={{ X }}, y={{ Y }}, z={{ Z }}. How long does the all-reduce over z take?"""
    return all_reduce_time(4 * I * J / (X * Y), Z, chip)
