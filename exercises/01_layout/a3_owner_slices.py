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

Check your work: shardlings check a3_owner_slices
Notes on all exercises of this module: see README.md, or run shardlings show 01_layout
The text "Going further" is below the code.
"""

from jax.sharding import PartitionSpec as P


def owner_slices(shape, spec, mesh_shape):
    """Return the part of the array that each device holds.

    Args: shape is a tuple of ints, spec a PartitionSpec, mesh_shape the size of every axis, such as {"x": 4, "y": 2}.
    Returns: a dict from device number to a tuple of slices.
    """
    # TODO: write this function
    raise NotImplementedError("owner_slices")


# Question first_row [a number]
# `A` has 6144 rows, numbered from 0, and is sharded `P(("y", "x"), None)` on the mesh x=8, y=4 (x
# is the first axis of the mesh). Which is the first row that device number 5 holds?
#
# Answer with a bare number.
first_row = None  # TODO: your answer


# Question reorder_bytes [MB]
# `A` is float32[122880, 6144] on the mesh x=4, y=2. Devices change `A[I_XY, J]` into `A[I_YX,
# J]`. How many MB do all devices send together?
#
# Answer in MB (a bare number), or with a unit.
# Model: a device that keeps its block sends nothing, and every other device sends its whole
# block; 1 MB is 10^6 bytes.
reorder_bytes = None  # TODO: your answer


# ## Going further
#
# Both layouts of the small case have the same six blocks. But four of the six devices hold a different block in each
# layout.
#
# **In real systems.** `sharding.devices_indices_map` and `array.addressable_shards` return these slices. Checkpoints are
# written slice by slice. If a program loads a checkpoint with the axes of a tuple swapped, it gets no error, but many
# devices get a wrong block.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; JAX documentation, "Distributed
# arrays and automatic parallelization".
