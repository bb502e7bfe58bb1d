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

Check your work: shardlings check d2_several_axes
Notes on all exercises of this module: see README.md, or run shardlings show 04_comm_times
The text "Going further" is below the code.
"""

import math


def cutting_axes(spec):
    """Return a list of the axes that a spec names."""
    named = []
    for entry in spec:
        if entry is not None:
            named.extend([entry] if isinstance(entry, str) else entry)
    return named


def axes_time(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """Return the seconds of a collective over one or more axes: bandwidth only, V / (n·W). Every axis is a ring.

    Args:
        kind: "all_gather", "reduce_scatter" or "all_reduce".
        shape: shape of the whole array. itemsize: bytes of one element.
        spec: PartitionSpec of the array *before* the collective.
        over: tuple of the collective's axes. mesh_shape: size of each axis, such as {"x": 4, "y": 2}.
        one_way_bandwidth: W1, bytes/s of one link in one direction.
    """
    # TODO: write this function
    raise NotImplementedError("axes_time")


# Question gather_cut_elsewhere_time [us]
# `A` is bfloat16[9216, 18432], sharded `A[I_X, J_Y]` on a v5p slice with x=16, y=12, z=4. How
# long does the all-gather over x to `A[I, J_Y]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: every axis is a ring; bandwidth only: a collective over n axes takes V / (n·W), and an
# all-reduce takes twice as long; W counts both directions of a link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
gather_cut_elsewhere_time = None  # TODO: your answer


# Question gather_two_axes_time [us]
# `A` is float32[3072, 18432], sharded `A[I_XY, J_Z]` on a v5p slice with x=12, y=16, z=4. How
# long does the all-gather over x and y to `A[I, J_Z]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: every axis is a ring; bandwidth only: a collective over n axes takes V / (n·W), and an
# all-reduce takes twice as long; W counts both directions of a link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
gather_two_axes_time = None  # TODO: your answer


# Question reduce_cut_elsewhere_time [us]
# `C` is float32[3072, 12288], sharded `C[I_X, J_Y]` and unreduced over z, `{U_Z}`, on a v4p slice
# with x=4, y=12, z=16. How long does the all-reduce over z take?
#
# Answer in us (a bare number), or with a unit.
# Model: every axis is a ring; bandwidth only: a collective over n axes takes V / (n·W), and an
# all-reduce takes twice as long; W counts both directions of a link.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
reduce_cut_elsewhere_time = None  # TODO: your answer


# ## Going further
#
# The 8 groups of the small case never send to each other. If you forget that y cuts `A`, you find 373 µs. If you divide
# by X in place of Y, you find 93 µs. On a 4x4 mesh the second mistake would give the right time, so no mesh of this
# exercise has two axes of equal size, except axes of one chip.
#
# **In real systems.** The FSDP axis gathers weights that the tensor axis has already cut. A TPU slice gets its full
# bandwidth when one mesh axis spans two or three torus axes.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", question 2.
