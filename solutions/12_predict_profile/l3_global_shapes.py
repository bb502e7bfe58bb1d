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

## Going further

**In real systems.** If X = Y, the sizes in a sharding do not show which axis is meant, but the strides between its
devices show the axis. In a profile, first check whether the layout is the intended one.

**Read on.** *How To Scale Your Model*, "Profiling TPU Programs", worked problems; OpenXLA, "Shardy" and
`OpSharding`.
"""

import re
from math import prod

import numpy as np

from grader.exercise import Exercise

exercise = Exercise(stars=2, extension=True)


@exercise.given
def parameters(hlo):
    """Return (local shape, sharding) of each parameter of the program, such as ([64, 40],
    "{devices=[4,2]<=[2,4]T(1,0)}")."""
    line = r"%\S+ = \w+\[([\d,]*)\]\S* parameter\((\d+)\), sharding=(\{[^}]*\})"
    found = {int(number): (shape, sharding) for shape, number, sharding in re.findall(line, hlo)}
    return [([int(n) for n in found[i][0].split(",") if n], found[i][1]) for i in sorted(found)]


@exercise.function(
    hints=[
        "Where is each device on the mesh? In which coordinates do the devices of one group differ?",
        "np.unravel_index(5, (2, 4)) is (1, 1): x=1, y=1. Collect the coordinates of a group's devices for each axis.",
        "places = np.unravel_index(groups[0], tuple(mesh.values())); keep a where len(set(places[i])) > 1, for i, a in enumerate(mesh).",
    ]
)
def axes(groups, mesh):
    """Return the names of the axes along which these groups communicate, in the mesh's order; [] for groups of one
    device."""
    group, *_ = groups
    places = np.unravel_index(group, tuple(mesh.values()))
    return [axis for axis, along in zip(mesh, places, strict=True) if len(set(along.tolist())) > 1]


@exercise.function(
    hints=[
        "Your `device_groups` of L1 makes the grid, if you leave out its last step. Go along one dimension of the grid: along which mesh axis do neighbours differ?",
        "Take the devices along one dimension of the grid as a line. Entries 0 and 1 of the line differ along the innermost axis of this dimension. If that axis has size s, entries 0 and s differ along the next axis.",
        "step = 1; while step < len(line): [a] = axes([[line[0], line[step]]], mesh); names.insert(0, a); step *= mesh[a].",
    ]
)
def global_shapes(hlo, mesh):
    """Return (whole shape, axes of each dimension) of every parameter, such as ([256, 80], [["y"], ["x"]]).

    If two axes cut a dimension, the outer axis is first: P(("y", "x")) is ["y", "x"]. A dimension that no axis cuts has
    [].
    """
    found = []
    for local, sharding in parameters(hlo):
        cut = [[] for _ in local]
        if "devices=" in sharding:
            devices = grid(re.search(r"devices=([^ }]+)", sharding)[1])
            for dimension, names in enumerate(cut):
                line, *_ = np.moveaxis(devices, dimension, -1).reshape(-1, devices.shape[dimension]).tolist()
                step = 1
                while step < len(line):
                    [axis] = axes([[line[0], line[step]]], mesh)
                    names.insert(0, axis)
                    step *= mesh[axis]
        whole = [n * prod(mesh[axis] for axis in names) for n, names in zip(local, cut, strict=True)]
        found.append((whole, cut))
    return found


def grid(text):
    """Return the array of devices for a text such as "[4,2]<=[2,4]T(1,0)"."""
    shape, dims, order = re.fullmatch(r"\[(.+)\]<=\[(.+?)\](?:T\((.+)\))?", text).groups(default="")
    shape, dims, order = ([int(n) for n in part.split(",") if n] for part in (shape, dims, order))
    return np.arange(prod(dims)).reshape(dims).transpose(order or range(len(dims))).reshape(shape)


@exercise.number(
    points=1, unit="GFLOP", model="count each multiplication and addition of the whole matmul once; leave out the additions of the all-reduce",
    params={"B": [96, 160, 224], "K": [512, 768], "F": [1536, 2560], "X": [4, 8], "Y": [16, 32], "Z": [2]},
    hints=[
        "Are the shapes in the profile the shapes of one device's parts, or of whole arrays?",
        "The shapes are the shapes of one device's parts. x cuts the rows of `%h`, and y cuts its columns. z makes copies.",
        "2 · (B · X) · (K · Y) · F",
    ],
)  # fmt: skip
def whole_matmul(B, K, F, X, Y, Z):
    """On a mesh x={{ X }}, y={{ Y }}, z={{ Z }} a profile shows `%d = bf16[{{ B }},{{ F }}] dot(%h, %w)`, where `%h` is `bf16[{{ B }},{{ K }}]` with
    `sharding={devices=[{{ X }},{{ Y }},{{ Z }}]<=[{{ X * Y * Z }}] last_tile_dim_replicate}`, `%w` is `bf16[{{ K }},{{ F }}]` with `F` whole, and
    `all-reduce(%d)` over y follows. How many GFLOP does the matmul of the whole arrays take?"""
    return 2 * B * X * K * Y * F
