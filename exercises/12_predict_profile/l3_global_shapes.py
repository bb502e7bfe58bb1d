"""# L3 From one device's program back to the arrays

A profile shows the program of one device: local shapes, numbered devices, no mesh axes. From this program you find the
shapes of the whole arrays, and the axes that cut them.

```
%h = bf16[72,512] parameter(0), sharding={devices=[2,1,4]<=[8]
                                         last_tile_dim_replicate}
%w = bf16[256,40] parameter(1), sharding={devices=[2,4]<=[2,4]}
%v = bf16[64,40]  parameter(2), sharding={devices=[4,2]<=[2,4]T(1,0)}
```

`devices=[4,2]<=[2,4]T(1,0)` is a grid of devices, made like the groups of L1. Dimension 0 of the grid runs over the 4
parts of the array's dimension 0. Dimension 1 of the grid runs over the 2 parts of the array's dimension 1. With
`last_tile_dim_replicate` the grid has one more dimension, which runs over copies. A sharding `{replicated}` has no
grid. The mesh numbers its devices row by row: on x=2, y=4, device 5 has x=1, y=1.

**Write** two functions. `mesh` is a dict such as `{"x": 2, "y": 4}`, in the order of the mesh; axes may have any names.
`parameters` is given.

| | returns |
|---|---|
| `axes(groups, mesh)` | axes along which a group's devices differ, in the mesh's order; all groups have equal axes |
| `global_shapes(hlo, mesh)` | a list with a pair for each parameter: (whole shape, axes that cut each dimension) |

If several axes cut a dimension, the outer axis comes first, as in a `PartitionSpec`. A dimension that no axis cuts has
`[]`. No sharding uses only a part of a mesh axis.

**What is checked**

| check | rule |
|---|---|
| `axes` | groups over one axis or several; groups of one device: `[]` |
| `global_shapes`: unequal axes | programs on two axes of unequal sizes |
| `global_shapes`: equal axes | three axes of equal size: only their strides differ |

**Symbols.** X, Y, Z are the sizes of mesh axes. B, K, F are local or whole sizes, as the question states.

**Small case.** On x=2, y=4: `axes([[0, 4], [1, 5], [2, 6], [3, 7]], mesh)` is `["x"]`. Eight groups of one device give
`[]`, because they send nothing. In the program above, `h` is [144, 512] with rows cut by x, and `v` is [256, 80] with
rows cut by y and columns by x.

Check your work: shardlings check l3_global_shapes
Notes on all exercises of this module: see README.md, or run shardlings show 12_predict_profile
The text "Going further" is below the code.
"""

import re


def parameters(hlo):
    """Return (local shape, sharding) of each parameter of the program, such as ([64, 40],
    "{devices=[4,2]<=[2,4]T(1,0)}")."""
    line = r"%\S+ = \w+\[([\d,]*)\]\S* parameter\((\d+)\), sharding=(\{[^}]*\})"
    found = {int(number): (shape, sharding) for shape, number, sharding in re.findall(line, hlo)}
    return [([int(n) for n in found[i][0].split(",") if n], found[i][1]) for i in sorted(found)]


def axes(groups, mesh):
    """Return the names of the axes along which these groups communicate, in the mesh's order; [] for groups of one
    device."""
    # TODO: write this function
    raise NotImplementedError("axes")


def global_shapes(hlo, mesh):
    """Return (whole shape, axes of each dimension) of every parameter, such as ([256, 80], [["y"], ["x"]]).

    If two axes cut a dimension, the outer axis is first: P(("y", "x")) is ["y", "x"]. A dimension that no axis cuts has
    [].
    """
    # TODO: write this function
    raise NotImplementedError("global_shapes")


# Question whole_matmul [GFLOP]
# On a mesh x=8, y=16, z=2 a profile shows `%d = bf16[96,1536] dot(%h, %w)`, where `%h` is
# `bf16[96,768]` with `sharding={devices=[8,16,2]<=[256] last_tile_dim_replicate}`, `%w` is
# `bf16[768,1536]` with `F` whole, and `all-reduce(%d)` over y follows. How many GFLOP does the
# matmul of the whole arrays take?
#
# Answer in GFLOP (a bare number), or with a unit.
# Model: count each multiplication and addition of the whole matmul once; leave out the additions
# of the all-reduce.
whole_matmul = None  # TODO: your answer


# ## Going further
#
# **In real systems.** If X = Y, the sizes in a sharding do not show which axis is meant, but the strides between its
# devices show the axis. In a profile, first check whether the layout is the intended one.
#
# **Read on.** *How To Scale Your Model*, "Profiling TPU Programs", worked problems; OpenXLA, "Shardy" and
# `OpSharding`.
