"""# A2 What a sharding costs in memory

A sharding cuts an array along the mesh axes that its spec names. Along every other axis the devices hold copies of the
same block, and each copy takes memory.

```
   A[I_X] on the mesh x=2, y=3          one copy of A:   upper + lower
                                        held in total:   3 · (upper + lower)
          y=0     y=1     y=2
   x=0   upper   upper   upper          per device:      upper
   x=1   lower   lower   lower
```

**Write** `memory(shape, dtype, spec, mesh_shape)`. It returns `(per_device, total)`: the bytes that one device holds,
and the bytes that all devices of the mesh hold together.

| | type | meaning |
|---|---|---|
| `shape` | tuple of ints | shape of the whole array; every dimension divides evenly |
| `dtype` | str | a name such as `"float32"`, `"bfloat16"` or `"int8"` |
| `spec` | `PartitionSpec` | may have fewer entries than the array has dimensions |
| `mesh_shape` | dict | size of each mesh axis, for example `{"x": 4, "y": 2}` |
| returns | tuple of two ints | bytes on one device, bytes on all devices |

**What is checked**

| check | rule | small case |
|---|---|---|
| a float32 array that every axis of the mesh cuts | per device: bytes of the array / product of the axis sizes; total: bytes of the array | |
| other dtypes take fewer bytes | bfloat16: 2 bytes for each element, int8: 1 byte | 262,144 bytes in one copy |
| an axis that the spec does not name makes copies, and the total counts every copy | total = per device · devices | 16,384 · 32 = 524,288 |

**Symbols.** X, Y, Z: sizes of the mesh axes x, y, z. I, J: sizes of the dimensions. 1 MB = 10^6 bytes.

**Small case.** `A[I_XY, J]` is int8[128, 2048] on the mesh x=2, y=8, z=2. One copy has 128 · 2048 = 262,144 bytes. Axes
x and y cut the rows into 16 parts, so one device holds 16,384 bytes. All 32 devices together hold 524,288 bytes. This
is two copies of the array, because the spec does not name z.

## Going further

**In real systems.** The number of bytes on one device decides whether a model can train with pure data parallelism or
needs FSDP. Pure data parallelism keeps a copy of all weights on every chip. FSDP cuts one copy of the weights over all
chips.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; *ZeRO: Memory Optimizations Toward
Training Trillion Parameter Models*.
"""

import math

import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.expect import entries, expect_outcomes

exercise = Exercise(stars=1)


def named_axes(spec):
    """Return a list of the mesh axes that a spec names."""
    return [axis for entry in spec if entry for axis in ((entry,) if isinstance(entry, str) else entry)]


@exercise.function(
    hints=[
        "How many devices does the mesh have, and what does each of them hold?",
        "Divide the bytes of the whole array by the size of each axis that the spec names. For the total, count every device.",
        "total = per_device * math.prod(mesh_shape.values()), and jnp.dtype(dtype).itemsize is the number of bytes of one element.",
    ]
)
def memory(shape, dtype, spec, mesh_shape):
    """Return the bytes on one device, and on all devices together.

    Args: shape is a tuple of ints, dtype a name, spec a PartitionSpec, mesh_shape such as {"x": 4, "y": 2}.
    Returns: a tuple of two ints.
    """
    whole = math.prod(shape) * jnp.dtype(dtype).itemsize
    per_device = whole // math.prod(mesh_shape[axis] for axis in named_axes(spec))
    return per_device, per_device * math.prod(mesh_shape.values())


def drawn(rng, specs, dtypes):
    for turn in range(60):
        mesh_shape = dict(zip("xyz", rng.permutation([2, 3, 4, 5]).tolist(), strict=False))
        spec, dtype = specs[turn % len(specs)], dtypes[turn % len(dtypes)]
        cuts = [math.prod(mesh_shape[axis] for axis in axes) for axes in entries(spec, 3)]
        shape = tuple(cut * int(rng.integers(1, 9)) for cut in cuts)
        yield {"shape": shape, "dtype": dtype, "spec": spec, "mesh_shape": mesh_shape}


MESH = {"x": 2, "y": 3, "z": 4}
LONG_MESH = {"data": 4, "model": 2}
LONG_NAMES = {"shape": (24, 10), "dtype": "float32", "spec": P("data", "model"), "mesh_shape": LONG_MESH}
SPREAD = [P(("x", "y"), "z"), P("z", "x", "y"), P(None, ("z", "x", "y"))]
spread_cases = exercise.cases(
    memory,
    public=[{"shape": (24, 30, 8), "dtype": "float32", "spec": P("x", "y", "z"), "mesh_shape": MESH}],
    hidden=lambda rng: [LONG_NAMES, *drawn(rng, SPREAD, ["float32"])],
)
dtype_cases = exercise.cases(
    memory,
    public=[{"shape": (24, 30, 8), "dtype": "bfloat16", "spec": P(("x", "y"), None, "z"), "mesh_shape": MESH}],
    hidden=lambda rng: drawn(rng, SPREAD, ["bfloat16", "int8"]),
)
copy_cases = exercise.cases(
    memory,
    public=[
        {"shape": (24, 30, 8), "dtype": "float32", "spec": P("x"), "mesh_shape": MESH},
        {"shape": (24, 30, 8), "dtype": "float32", "spec": P(None, "y", "z"), "mesh_shape": MESH},
    ],
    hidden=lambda rng: drawn(rng, [P("y"), P(None, ("z", "x")), P("z", None, "y"), P()], ["float32"]),
)


@exercise.check(spread_cases, points=1, public=True)
def memory_spread(seen):
    """memory: a float32 array that every axis of the mesh cuts"""
    expect_outcomes(seen)


@exercise.check(dtype_cases, points=0.5)
def memory_dtypes(seen):
    """memory: other dtypes take fewer bytes"""
    expect_outcomes(seen)


@exercise.check(copy_cases, points=1.5, public=True)
def memory_copies(seen):
    """memory: an axis that the spec does not name makes copies, and the total counts every copy"""
    expect_outcomes(seen)


@exercise.number(
    points=1,
    unit="MB",
    params={"I": [8192, 16384], "J": [4096, 12288], "X": [2, 32], "Y": [4, 8], "Z": [4, 16]},
    where=lambda I, J, X, Y, Z: X not in (Y * Z, Y * Z / 2),
    model="1 MB is 10^6 bytes",
    hints=[
        "How many chips hold the same block?",
        "y and z do not cut `W`, so each block has Y · Z copies.",
        "bytes on all chips = (bytes of the whole array in bfloat16) · (number of copies)",
    ],
)
def weights_in_all(I, J, X, Y, Z):
    """`W` is bfloat16[{{ I }}, {{ J }}], sharded `W[I_X, J]` on a mesh with x={{ X }}, y={{ Y }}, z={{ Z }}.
    How many MB of `W` do all chips hold together?"""
    return 2 * I * J * Y * Z


@exercise.number(
    points=0.5,
    unit="MB",
    params={"I": [8192, 16384, 24576], "J": [5120, 7168], "X": [4, 8], "Y": [2, 4]},
    where=lambda I, J, X, Y: X != Y,
    model="1 MB is 10^6 bytes",
    hints=[
        "Where does each call put the array?",
        "`jnp.asarray` uses one device. `P()` on a mesh puts a whole copy on each device of the mesh.",
        "bytes of a and b = (bytes of one copy) · (1 + number of chips)",
    ],
)
def placed_and_unplaced(I, J, X, Y):
    """`host` is a NumPy array, bfloat16[{{ I }}, {{ J }}], and `mesh` has x={{ X }}, y={{ Y }}.
    `a = jnp.asarray(host)` and `b = jax.device_put(host, NamedSharding(mesh, P()))`. How many MB do `a`
    and `b` take together, in the memory of all chips?"""
    return 2 * I * J * (1 + X * Y)
