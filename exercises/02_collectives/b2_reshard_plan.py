"""# B2 From one layout to another

Devices change an array's layout by a short program of collectives. Several programs can end in the same layout. Their
costs differ, because a step costs more when the block is larger.

```
    A[I_X, J]{U_Y}  →  A[I, J_Y]       x=4, y=2; b bytes in a block at first
      reduce_scatter y, then all_gather x    b · 1/2  +  b/2 · 3  =  2 b
      all_gather x, then reduce_scatter y    b · 3  + 4b · 1/2    =  5 b
```

**Write** `reshard_plan(src, unreduced, dst, shape, mesh_shape)`. It returns a list of these steps:

| step | before | after | bytes each device sends |
|---|---|---|---|
| `("slice", axis, dim)` | whole along `axis` | `axis` cuts `dim` | 0 |
| `("all_gather", axis, dim)` | `axis` cuts `dim` | whole along `axis` | block · (n − 1) |
| `("all_to_all", axis, old, new)` | `axis` cuts `old` | `axis` cuts `new` | block · (n − 1) / n |
| `("reduce_scatter", axis, dim)` | unreduced over `axis` | `axis` cuts `dim` | block · (n − 1) / n |
| `("all_reduce", axis)` | unreduced over `axis` | whole along `axis` | 2 · block · (n − 1) / n |

`src` and `dst` are tuples with one axis or `None` per dimension. `unreduced` is a tuple of the axes over which the
array is unreduced at first. `mesh_shape` is a dict from axis to size. All dimensions divide evenly.

**What is checked**

| check | rule |
|---|---|
| each plan can be carried out and ends in `dst`, with nothing left unreduced | a dimension must be uncut before another axis cuts it |
| each plan stays within the budget of bytes. The grader's cases: an axis stops cutting a dimension, an axis starts cutting a dimension, partial sums, several axes | the plan sends at most the bytes of the cheapest plan that uses every axis at most once |

Each case has a plan that uses every axis at most once. A cheaper plan that uses an axis twice passes, too. The given
`run_plan` returns a plan's final layout, its unreduced axes, and the bytes that each device sends.

**Symbols.** n: size of the axis. `block`: bytes that a device holds when the step begins. I, J: dimensions. X, Y: sizes
of the axes. `{U_X}`: partial sums over x, called unreduced.

**Small case.** An array of 1 MB changes from `A[I_X, J]` to `A[I, J_X]` on x=4. A block has 0.25 MB. An all-to-all
sends 3/4 of the block, 0.19 MB. An all-gather and a slice send 0.75 MB.

Check your work: shardlings check b2_reshard_plan
Notes on all exercises of this module: see README.md, or run shardlings show 02_collectives
The text "Going further" is below the code.
"""

import math


def run_plan(plan, src, unreduced, shape, mesh_shape):
    """Return a plan's final layout, the axes that are still unreduced, and the bytes that each device sends (float32).

    Raises ValueError if a step is impossible.
    """
    layout, unreduced, sent = list(src), set(unreduced), 0
    block = 4 * math.prod(shape) // math.prod(mesh_shape[axis] for axis in layout if axis)
    for kind, axis, *dims in plan:
        n = mesh_shape[axis]
        if kind in ("all_gather", "all_to_all"):
            if layout[dims[0]] != axis:
                raise ValueError(f"{kind}: {axis} does not cut dimension {dims[0]}")
            layout[dims[0]] = None
        elif kind in ("reduce_scatter", "all_reduce"):
            if axis not in unreduced:
                raise ValueError(f"{kind}: nothing is unreduced over {axis}")
            unreduced.remove(axis)
        elif axis in layout or axis in unreduced:
            raise ValueError(f"{kind}: the array is not whole along {axis}")
        if kind in ("slice", "all_to_all", "reduce_scatter"):
            if layout[dims[-1]]:
                raise ValueError(f"{kind}: dimension {dims[-1]} is already cut by {layout[dims[-1]]}")
            layout[dims[-1]] = axis
        parts = {"slice": 0, "all_to_all": 1, "reduce_scatter": 1, "all_reduce": 2, "all_gather": n}[kind]
        sent += parts * block * (n - 1) // n
        block = block * n if kind == "all_gather" else block // n if kind in ("slice", "reduce_scatter") else block
    return tuple(layout), unreduced, sent


def reshard_plan(src, unreduced, dst, shape, mesh_shape):
    """Return the steps from one layout to another.

    Args:
        src, dst: a tuple with one axis or None per dimension.
        unreduced: a tuple of the axes along which devices hold partial sums. src has none of these axes.
        shape: the whole array's dimensions. mesh_shape: the size of every axis.
    Returns: a list of tuples, such as [("slice", "y", 1), ("all_reduce", "x")].
    """
    # TODO: write this function
    raise NotImplementedError("reshard_plan")


# Question reshard_bytes [MB]
# `C[I, J]{U_X}` is float32[6144, 20480] on the mesh x=12, y=16: every device holds a partial sum
# of all of `C`, and devices along y hold copies. The layout must become `C[I_X, J_Y]`. How many
# MB does each device send in the cheapest plan?
#
# Answer in MB (a bare number), or with a unit.
# Model: the table of steps gives the bytes of each step; 1 MB is 10^6 bytes.
reshard_bytes = None  # TODO: your answer


# ## Going further
#
# The order matters: cut early and gather late. For some changes of layout, a plan that uses an axis twice is still
# cheaper. This plan slices along an axis along which devices hold copies, and later gathers along this axis again.
#
# **In real systems.** Every partitioner writes these plans for you, but its plans are not always the cheapest.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; *Memory-efficient array
# redistribution through portable collective communication*.
