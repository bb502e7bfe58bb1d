"""# A3 Which device holds which block

A spec also says *which* block each device holds. The device's coordinates on the mesh give the number of its block. In
a tuple of axes the order matters: `P(("x", "y"))` and `P(("y", "x"))` cut the array into the same blocks, but give them
to different devices.

```
   24 rows on the mesh x=2, y=3
              A[I_XY, J]            A[I_YX, J]             A[I_X, J]
         y=0   y=1   y=2       y=0   y=1   y=2       y=0   y=1   y=2
   x=0   0:4   4:8   8:12      0:4   8:12  16:20     0:12  0:12  0:12
   x=1   12:16 16:20 20:24     4:8   12:16 20:24     12:24 12:24 12:24
```

**Write** `owner_slices(shape, spec, mesh_shape)`. It returns the part of the array that each device holds.

| | type | meaning |
|---|---|---|
| `shape` | tuple of ints | shape of the whole array; every dimension divides evenly |
| `spec` | `PartitionSpec` | may have fewer entries than the array has dimensions |
| `mesh_shape` | dict | size of each mesh axis, in the order of the mesh |
| returns | dict | device number → tuple of `slice(start, stop)`, one for each dimension |

Devices are numbered row by row: the last mesh axis changes fastest. Block 0 has the first rows. In a tuple of axes, the
coordinate of the first axis changes slowest from block to block.

**What is checked**

| check | rule | small case |
|---|---|---|
| one axis per dimension | block = coordinate on the dimension's axis | `P("x", None)`, device 4: rows 12:24 |
| copies along the axes that the spec does not name | each slice has a start and a stop, also for a dimension that no axis cuts | `P("x")`, 9 columns: 0:9 |
| a tuple that lists axes in the order of the mesh | `("x", "y")`: block = x·Y + y | device 4: rows 16:20 |
| a tuple that lists axes in a different order gives a different layout | `("y", "x")`: block = y·X + x | device 4: rows 12:16 |

**Symbols.** x, y: a device's coordinates. X, Y: sizes of the axes. I, J: rows and columns of `A`.

**Small case.** The mesh above is x=2, y=3; device 4 is (x=1, y=1). In `A[I_YX, J]` it holds block 1·2 + 1 = 3, rows
12:16. In `A[I_XY, J]` it holds block 1·3 + 1 = 4, rows 16:20.

## Going further

Both layouts of the small case have the same six blocks. But four of the six devices hold a different block in each
layout.

**In real systems.** `sharding.devices_indices_map` and `array.addressable_shards` return these slices. Checkpoints are
written slice by slice. If a program loads a checkpoint with the axes of a tuple swapped, it gets no error, but many
devices get a wrong block.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; JAX documentation, "Distributed
arrays and automatic parallelization".
"""

import itertools
import math

from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.expect import entries, expect_outcomes

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "First find each device's coordinates on the mesh. Then take the dimensions one by one.",
        "The digits of a block's number are the device's coordinates on the axes of the entry. The first digit is the most significant.",
        "for axis in axes: block = block * mesh_shape[axis] + at[axis]; parts = parts * mesh_shape[axis]; `at` maps each axis to the device's coordinate",
    ]
)
def owner_slices(shape, spec, mesh_shape):
    """Return the part of the array that each device holds.

    Args: shape is a tuple of ints, spec a PartitionSpec, mesh_shape the size of every axis, such as {"x": 4, "y": 2}.
    Returns: a dict from device number to a tuple of slices.
    """
    owned = {}
    for device, point in enumerate(itertools.product(*(range(n) for n in mesh_shape.values()))):
        at = dict(zip(mesh_shape, point, strict=True))
        slices = [slice(0, size) for size in shape]
        for dim, entry in enumerate(spec):
            axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
            block, parts = 0, 1
            for axis in axes:
                block, parts = block * mesh_shape[axis] + at[axis], parts * mesh_shape[axis]
            step = shape[dim] // parts
            slices[dim] = slice(block * step, (block + 1) * step)
        owned[device] = tuple(slices)
    return owned


def drawn(rng, specs, dims=None):
    """Draw shapes that the spec cuts evenly, on meshes with axes of unequal sizes and with names in any order."""
    for turn in range(40):
        names, sizes = rng.permutation(list("xyz")).tolist(), rng.permutation([2, 3, 4]).tolist()
        mesh_shape = dict(zip(names, sizes, strict=True))
        spec = specs[turn % len(specs)]
        cuts = [math.prod(mesh_shape[axis] for axis in axes) for axes in entries(spec, dims or len(spec))]
        yield {"shape": tuple(n * int(rng.integers(1, 9)) for n in cuts), "spec": spec, "mesh_shape": mesh_shape}


MESH = {"x": 2, "y": 3}
LONG_NAMES = {"shape": (24, 10), "spec": P("data", "model"), "mesh_shape": {"data": 4, "model": 2}}
axis_cases = exercise.cases(
    owner_slices,
    public=[
        {"shape": (24, 9), "spec": P("x"), "mesh_shape": MESH},
        {"shape": (24, 9), "spec": P("y", "x"), "mesh_shape": {"y": 3, "x": 3}},
    ],
    hidden=lambda rng: [LONG_NAMES, *drawn(rng, [P("z", None, "x"), P(None, "y"), P("y", "z", "x"), P()], dims=3)],
)
tuple_cases = exercise.cases(
    owner_slices,
    public=[{"shape": (24,), "spec": P(("x", "y")), "mesh_shape": MESH}],
    hidden=lambda rng: [
        {"shape": (24 * int(rng.integers(1, 9)),), "spec": P(tuple(mesh)), "mesh_shape": mesh}
        for mesh in [{"x": 4, "y": 6}, {"y": 6, "x": 2}, {"data": 2, "model": 4}, {"x": 3, "y": 4, "z": 2}]
    ],
)
order_cases = exercise.cases(
    owner_slices,
    public=[{"shape": (24,), "spec": P(("y", "x")), "mesh_shape": MESH}],
    hidden=lambda rng: drawn(rng, [P(("x", "z")), P(("z", "x")), P("x", ("z", "y")), P(("y", "z", "x"))]),
)


@exercise.helper
def all_cut(case):
    return None not in case["spec"] and len(case["spec"]) == len(case["shape"])


@exercise.check(axis_cases, points=0.5, public=True)
def owner_axes(seen):
    """owner_slices: one axis per dimension"""
    expect_outcomes(seen, where=all_cut)


@exercise.check(axis_cases, points=0.5, public=True, after=owner_axes)
def owner_copies(seen):
    """owner_slices: a slice for each dimension that no axis cuts; copies along the axes that the spec does not name"""
    expect_outcomes(seen)


@exercise.check(tuple_cases, points=0.5, public=True)
def owner_tuples(seen):
    """owner_slices: a tuple that lists axes in the order of the mesh"""
    expect_outcomes(seen)


@exercise.check(order_cases, points=0.5, after=owner_tuples)
def owner_order(seen):
    """owner_slices: a tuple that lists axes in a different order gives a different layout"""
    expect_outcomes(seen)


@exercise.number(
    points=0.5,
    unit="",
    params={"I": [3072, 6144, 9216], "X": [4, 8], "Y": [2, 4], "device": [3, 5, 6, 7]},
    where=lambda I, X, Y, device: (
        X != Y and device > Y and device % Y and device not in (device // Y + device % Y * X, device % Y * X)
    ),
    hints=[
        "Which coordinates x and y does the device have, and in which order does the tuple count blocks?",
        'x is the first axis of the mesh, so device = x · Y + y with y < Y. In the tuple ("y", "x") y changes slowest and x fastest.',
        "block number = y · X + x; each block has I / (X · Y) rows",
    ],
)
def first_row(I, X, Y, device):
    """`A` has {{ I }} rows, numbered from 0, and is sharded `P(("y", "x"), None)` on the mesh x={{ X }}, y={{ Y }} (x is the
    first axis of the mesh). Which is the first row that device number {{ device }} holds?"""
    x, y = divmod(device, Y)
    return (y * X + x) * I / (X * Y)


@exercise.number(
    points=0.5,
    unit="MB",
    params={"I": [122880, 245760], "J": [2048, 6144], "X": [4, 8, 16], "Y": [2, 4]},
    where=lambda I, J, X, Y: X != Y,
    rtol=0.01,  # finer than one of 64 blocks, so a wrong count of kept blocks fails
    model="a device that keeps its block sends nothing, and every other device sends its whole block; 1 MB is 10^6 bytes",
    hints=[
        "Which devices keep their block?",
        "A device (x, y) holds block x · Y + y of `A[I_XY, J]` and block y · X + x of `A[I_YX, J]`. Count the devices where the two numbers are equal.",
        "x · (Y − 1) = y · (X − 1) holds for 1 + gcd(X − 1, Y − 1) devices. The other devices each send a block of 4 · I · J / (X · Y) bytes.",
    ],
)
def reorder_bytes(I, J, X, Y):
    """`A` is float32[{{ I }}, {{ J }}] on the mesh x={{ X }}, y={{ Y }}. Devices change `A[I_XY, J]` into `A[I_YX, J]`. How many
    MB do all devices send together?"""
    kept = 1 + math.gcd(X - 1, Y - 1)
    return 4 * I * J * (1 - kept / (X * Y))
