"""# B2 From one layout to another

A reshard is a short program of collectives. Which ones, and in what order?

**Task.** Write `reshard_plan(src, unreduced, dst, shape, mesh_shape)`. An array has the layout `src`, one axis or `None`
per dimension, and is unreduced over the axes in `unreduced`: along them devices hold partial sums. Return the list of
steps that brings it to the layout `dst`, with nothing left unreduced. n is the size of the axis:

| step | before | after | bytes each device sends |
|---|---|---|---|
| `("slice", axis, dim)` | whole along the axis | `axis` cuts `dim` | 0 |
| `("all_gather", axis, dim)` | `axis` cuts `dim` | whole along the axis | block · (n - 1) |
| `("all_to_all", axis, old, new)` | `axis` cuts `old` | `axis` cuts `new` | block · (n - 1) / n |
| `("reduce_scatter", axis, dim)` | unreduced over the axis | `axis` cuts `dim` | block · (n - 1) / n |
| `("all_reduce", axis)` | unreduced over the axis | whole along the axis | 2 · block · (n - 1) / n |

`block` is what a device holds when the step begins, so the order matters: cut early, gather late. A dimension is cut by
one axis at a time, so it must be free before another axis can cut it. `run_plan` is given; it carries out a plan on paper.

**Budget.** Each device sends no more than in the cheapest plan that takes every axis up at most once. (Some layouts have
a still cheaper one, which cuts along an idle axis and gathers again; it passes as well.) In all cases there is such a
plan, and all dimensions divide evenly.

```
    A[I_X, J]{U_Y}  →  A[I, J_Y]       x=4, y=2; b bytes in a block at first
      reduce_scatter y, then all_gather x    b · 1/2  +  b/2 · 3  =  2 b
      all_gather x, then reduce_scatter y    b · 3  + 4b · 1/2    =  5 b
```

**Small case.** `A[I_X, J] → A[I, J_X]` of 1 MB on x=4: the block has 0.25 MB. An all-to-all sends 3/4 of it, 0.19 MB; an
all-gather and a slice send 0.75 MB and throw three quarters away.

**In real systems** every partitioner does this for you, not always in the cheapest order.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; *Memory-efficient array
redistribution through portable collective communication*.

Check your work: shardlings check b2_reshard_plan
For all exercises of this module: README.md, or shardlings show 02_collectives
"""

import math


def run_plan(plan, src, unreduced, shape, mesh_shape):
    """The layout a plan ends in, what is still unreduced, and the bytes each device sends (float32).

    Raises ValueError where a step cannot be taken.
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
    """The steps from one layout to another.

    Args:
        src, dst: a tuple with one axis or None per dimension.
        unreduced: a tuple of the axes along which devices hold partial sums; no axis of src.
        shape: the whole array's dimensions. mesh_shape: the size of every axis.
    Returns: a list of tuples, such as [("slice", "y", 1), ("all_reduce", "x")].
    """
    # TODO: write this function
    raise NotImplementedError("reshard_plan")


# Question reshard_bytes [MB]
# `C[I, J]{U_X}` is float32[6144, 20480] on the mesh x=8, y=16: every device holds a partial sum
# of all of `C`, copies along y. It shall become `C[I_X, J_Y]`. How many MB does each device send
# in the cheapest plan?
#
# Answer in MB (a bare number), or with a unit.
# Model: bytes as in the table of steps; 1 MB is 10^6 bytes.
reshard_bytes = None  # TODO: your answer
