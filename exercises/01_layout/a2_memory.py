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

Check your work: shardlings check a2_memory
Notes on all exercises of this module: see README.md, or run shardlings show 01_layout
The text "Going further" is below the code.
"""

import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def memory(shape, dtype, spec, mesh_shape):
    """Return the bytes on one device, and on all devices together.

    Args: shape is a tuple of ints, dtype a name, spec a PartitionSpec, mesh_shape such as {"x": 4, "y": 2}.
    Returns: a tuple of two ints.
    """
    # TODO: write this function
    raise NotImplementedError("memory")


# Question weights_in_all [MB]
# `W` is bfloat16[8192, 4096], sharded `W[I_X, J]` on a mesh with x=2, y=8, z=16. How many MB of
# `W` do all chips hold together?
#
# Answer in MB (a bare number), or with a unit.
# Model: 1 MB is 10^6 bytes.
weights_in_all = None  # TODO: your answer


# Question placed_and_unplaced [MB]
# `host` is a NumPy array, bfloat16[8192, 7168], and `mesh` has x=4, y=2. `a = jnp.asarray(host)`
# and `b = jax.device_put(host, NamedSharding(mesh, P()))`. How many MB do `a` and `b` take
# together, in the memory of all chips?
#
# Answer in MB (a bare number), or with a unit.
# Model: 1 MB is 10^6 bytes.
placed_and_unplaced = None  # TODO: your answer


# ## Going further
#
# **In real systems.** The number of bytes on one device decides whether a model can train with pure data parallelism or
# needs FSDP. Pure data parallelism keeps a copy of all weights on every chip. FSDP cuts one copy of the weights over all
# chips.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; *ZeRO: Memory Optimizations Toward
# Training Trillion Parameter Models*.
