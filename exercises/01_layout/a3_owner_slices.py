"""# A3 Who holds what

**Task.** Write `owner_slices(shape, spec, mesh_shape)`: for every device of the mesh, the part of the array it holds.

- Devices are numbered row by row: the last axis of the mesh counts fastest. On the mesh x=4, y=2 device 5 is (x=2, y=1).
- A dimension is cut by the axes of its entry into equal blocks, and block 0 comes first.
- In a tuple the first axis counts slowest: with `P(("x", "y"))` device (x, y) holds block x·Y + y, with `P(("y", "x"))`
  block y·X + x. The order is that of the tuple, whatever the order of the mesh.
- An axis that is not named cuts nothing: devices that differ only there hold the same part.
- Return `{device number: (slice(start, stop), ...)}`, one slice per dimension, with both numbers even where a dimension
  is whole. Everything divides evenly; the spec may be shorter than the shape.

```
   24 rows on the mesh x=2, y=3
              A[I_XY, J]            A[I_YX, J]             A[I_X, J]
         y=0   y=1   y=2       y=0   y=1   y=2       y=0   y=1   y=2
   x=0   0:4   4:8   8:12      0:4   8:12  16:20     0:12  0:12  0:12
   x=1   12:16 16:20 20:24     4:8   12:16 20:24     12:24 12:24 12:24
```

**Small case.** Device 4 of that mesh is (x=1, y=1). Of `A[I_YX, J]` it holds block 1·2 + 1 = 3, rows 12:16. Of
`A[I_XY, J]` it holds block 4, rows 16:20: two layouts, equal in every shape and different in almost every value.

**In real systems** this is what `sharding.devices_indices_map` and `array.addressable_shards` tell you; checkpoints are
written by it, and a swapped tuple loads without any error.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; JAX documentation, "Distributed
arrays and automatic parallelization".

Check your work: shardlings check a3_owner_slices
For all exercises of this module: README.md, or shardlings show 01_layout
"""

from jax.sharding import PartitionSpec as P


def owner_slices(shape, spec, mesh_shape):
    """The part of the array that each device holds.

    Args: shape is a tuple of ints, spec a PartitionSpec, mesh_shape the size of every axis, such as {"x": 4, "y": 2}.
    Returns: a dict from device number to a tuple of slices.
    """
    # TODO: write this function
    raise NotImplementedError("owner_slices")


# Question first_row [a number]
# `A` has 3072 rows, numbered from 0, and is sharded `P(("y", "x"), None)` on the mesh x=4, y=2 (x
# is the first axis of the mesh). Which is the first row that device number 5 holds?
#
# Answer with a bare number.
first_row = None  # TODO: your answer


# Question reorder_bytes [MB]
# `A` is float32[122880, 2048] on the mesh x=8, y=6. `A[I_XY, J]` shall become `A[I_YX, J]`. How
# many MB do all devices send together?
#
# Answer in MB (a bare number), or with a unit.
# Model: a device sends its whole block or, if it keeps it, nothing; 1 MB is 10^6 bytes.
reorder_bytes = None  # TODO: your answer
