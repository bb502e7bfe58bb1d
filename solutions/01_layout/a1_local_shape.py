"""# A1 The shape that one device holds

A sharding cuts an array into equal blocks, and each device of the mesh holds one block. In `A[I_X, J]` the subscript X
says that mesh axis `x` cuts the rows. No axis cuts the columns. JAX writes this sharding as `P("x", None)`, with one
entry for each dimension.

```
    A[I_X, J] with 8 rows         y=0          y=1          y=2
    on the mesh x=2, y=3   x=0   rows 0:4     rows 0:4     rows 0:4
                           x=1   rows 4:8     rows 4:8     rows 4:8
```

**Write** `local_shape(shape, spec, mesh_shape)`. It returns the shape of the block that one device holds.

| | type | meaning |
|---|---|---|
| `shape` | tuple of ints | shape of the whole array |
| `spec` | `PartitionSpec` | an entry is `None` (no axis cuts the dimension), an axis, or a tuple of axes that all cut the dimension |
| `mesh_shape` | dict | size of each mesh axis, for example `{"x": 4, "y": 2}` |
| returns | tuple of ints | shape of one block |

**What is checked**

| check | rule | small case |
|---|---|---|
| an axis cuts only the dimension whose entry names it | size of the dimension / size of the axis | `P(None, "y")`: (24, 5) |
| every axis of a tuple cuts the tuple's dimension | size of the dimension / product of the axis sizes | `P(("x", "y"))`: (3, 10) |
| `ValueError` when a dimension does not divide evenly | size % product ≠ 0 | 26 rows by `("x", "y")`: error |

The spec may have fewer entries than the array has dimensions: no axis cuts the dimensions without an entry. Along an
axis that the spec does not name, devices hold copies. Axes may have any names. The sizes of the block are ints: 3, not
3.0.

**Symbols.** X, Y, Z: sizes of the mesh axes x, y, z. `A[I_XY, J]`: both x and y cut the rows, `P(("x", "y"), None)`.

**Small case.** The shape is (24, 10) on the mesh x=4, y=2, z=3. For `A[I_XY, J]`, 24 / (4 · 2) = 3, so a block has the
shape (3, 10). The spec does not name z, so three devices hold each block.

## Going further

**In real systems.** Code inside `shard_map` sees this shape, and out-of-memory messages print it.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them".
"""

import math

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.expect import entries, expect_outcomes
from grader.hardware import hbm_time

exercise = Exercise(stars=1)


@exercise.function(
    hints=[
        "Go through the dimensions and the entries together. Which axes of the mesh cut no dimension?",
        "Turn each entry (None, an axis or a tuple of axes) into a tuple of axes. Divide the dimension by the size of each axis in the tuple.",
        "For each axis of the tuple: raise ValueError if local[dim] % mesh_shape[axis] is not 0; then local[dim] //= mesh_shape[axis].",
    ]
)
def local_shape(shape, spec, mesh_shape):
    """Return the shape of the block that one device holds.

    Args: shape is a tuple of ints, spec a PartitionSpec, mesh_shape the size of every axis, such as {"x": 4, "y": 2}.
    Returns: a tuple of ints.
    """
    local = list(shape)
    for dim, entry in enumerate(spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        for axis in axes:
            if local[dim] % mesh_shape[axis]:
                raise ValueError(f"a dimension of {shape[dim]} does not divide evenly over {axes}")
            local[dim] //= mesh_shape[axis]
    return tuple(local)


def drawn(rng, specs, spare=0):
    """Draw shapes that the spec cuts evenly, then add ``spare`` rows to one dimension."""
    for turn in range(60):
        mesh_shape = dict(zip("xyz", rng.permutation([2, 3, 4, 5]).tolist(), strict=False))
        spec = specs[turn % len(specs)]
        cuts = [math.prod(mesh_shape[axis] for axis in axes) for axes in entries(spec, 3)]
        shape = [cut * int(rng.integers(1, 9)) for cut in cuts]
        shape[np.argmax(cuts)] += spare
        yield {"shape": tuple(shape), "spec": spec, "mesh_shape": mesh_shape}


MESH = {"x": 4, "y": 2, "z": 3}
axes_cases = exercise.cases(
    local_shape,
    public=[
        {"shape": (24, 10, 6), "spec": P("x", None, "z"), "mesh_shape": MESH},
        {"shape": (24, 10, 6), "spec": P(None, "y"), "mesh_shape": MESH},
        {"shape": (24, 10), "spec": P("data", "model"), "mesh_shape": {"data": 4, "model": 2}},
    ],
    hidden=lambda rng: drawn(rng, [P("z", None, "x"), P(None, "z"), P("y"), P()]),
)
tuple_cases = exercise.cases(
    local_shape,
    public=[{"shape": (24, 10, 6), "spec": P(("x", "y")), "mesh_shape": MESH}],
    hidden=lambda rng: drawn(rng, [P(("x", "z")), P(None, "x", ("z", "y")), P(("x", "y", "z"), None)]),
)
uneven_cases = exercise.cases(
    local_shape,
    public=[{"shape": (26, 10, 6), "spec": P("x", "y"), "mesh_shape": MESH}],
    hidden=lambda rng: drawn(rng, [P("y", "x"), P(("x", "y")), P(None, "z")], spare=1),
)


@exercise.check(axes_cases, points=0.5, public=True)
def local_shape_axes(seen):
    """local_shape: an axis cuts only the dimension whose entry names it"""
    expect_outcomes(seen, ints=True)


@exercise.check(tuple_cases, points=0.5)
def local_shape_tuples(seen):
    """local_shape: every axis of a tuple cuts the tuple's dimension"""
    expect_outcomes(seen)


@exercise.check(uneven_cases, points=0.5, public=True, after=local_shape_axes)
def local_shape_uneven(seen):
    """local_shape: ValueError when a dimension does not divide evenly"""
    expect_outcomes(seen, ints=True)


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v5e", "v5p"], "I": [4096, 8192], "J": [2048, 4096], "X": [2, 4], "Y": [4, 8], "Z": [8, 16]},
    where=lambda chip, I, J, X, Y, Z: X * Y * Z <= 256,
    model="HBM bandwidth only: time = bytes / bandwidth",
    hints=[
        "Which axes cut the array, and how many parts do they make?",
        "z does not cut the array. Count the bytes of one block and divide them by the chip's HBM bandwidth.",
        "bytes of the block = 4 · I · J / (number of blocks), with X · Y blocks",
    ],
)
def local_load_time(chip, I, J, X, Y, Z):
    """`A` is float32[{{ I }}, {{ J }}], sharded `A[I_XY, J]` on a mesh of {{ chip }} chips with x={{ X }}, y={{ Y }},
    z={{ Z }}. How long does one chip need to read its block from HBM?"""
    return hbm_time(4 * I * J / (X * Y), chip)
