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

Check your work: shardlings check d2_several_axes
"""

import math


def cutting_axes(spec):
    """All axes that a spec names, in a list."""
    named = []
    for entry in spec:
        if entry is not None:
            named.extend([entry] if isinstance(entry, str) else entry)
    return named


def axes_time(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """Seconds of a collective over one or more axes of a torus, all of them rings; bandwidth only, V / (n·W).

    Args:
        kind: "all_gather", "reduce_scatter" or "all_reduce".
        shape: of the whole array; itemsize: bytes of one element.
        spec: PartitionSpec of the array *before* the collective.
        over: tuple of the axes that talk; mesh_shape: such as {"x": 4, "y": 2}.
        one_way_bandwidth: W1, bytes/s of one link in one direction.
    """
    # TODO: write this function
    raise NotImplementedError("axes_time")


# Question gather_cut_elsewhere_time [us]
# `A` is bfloat16[9216, 18432], sharded `A[I_X, J_Y]` on a v4p slice with x=16, y=12, z=4. How
# long does the all-gather over x to `A[I, J_Y]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: every axis is a ring; bandwidth only, V / (n·W) for n axes at once, with W both
# directions of one link.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
gather_cut_elsewhere_time = None  # TODO: your answer


# Question gather_two_axes_time [us]
# `A` is float32[3072, 18432], sharded `A[I_XY, J_Z]` on a v5p slice with x=12, y=16, z=4. How
# long does the all-gather over x and y to `A[I, J_Z]` take?
#
# Answer in us (a bare number), or with a unit.
# Model: every axis is a ring; bandwidth only, V / (n·W) for n axes at once, with W both
# directions of one link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
gather_two_axes_time = None  # TODO: your answer


# Question reduce_cut_elsewhere_time [us]
# `C` is float32[3072, 12288], sharded `C[I_X, J_Y]` and unreduced over z, `{U_Z}`, on a v5p slice
# with x=12, y=4, z=16. How long does the all-reduce over z take?
#
# Answer in us (a bare number), or with a unit.
# Model: every axis is a ring; bandwidth only, V / (n·W) for n axes at once, with W both
# directions of one link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
reduce_cut_elsewhere_time = None  # TODO: your answer
