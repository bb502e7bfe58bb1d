"""# A2 What a sharding costs in memory

**Task.** Write `memory(shape, dtype, spec, mesh_shape)`. It returns `(per_device, total)`: the bytes that one device
holds, and the bytes that all devices of the mesh hold together.

Every axis that the spec does not name multiplies the total: along it, devices hold copies of the same block. `dtype`
is a name such as `"bfloat16"`. All dimensions divide evenly.

```
   A[I_X] on the mesh x=2, y=3          one copy of A:   upper + lower
                                        held in total:   3 · (upper + lower)
          y=0     y=1     y=2
   x=0   upper   upper   upper          per device:      upper
   x=1   lower   lower   lower
```

**Small case.** `A[I_XY, J]` is int8[128, 2048] on the mesh x=2, y=8, z=2. One device holds 128/16 · 2048 = 16384 bytes.
All 32 devices hold 524288 bytes: two copies, because z=2 is not named.

**In real systems** this decides between pure data parallelism, which keeps a copy of all weights on every chip, and
FSDP, which keeps one copy in all.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; *ZeRO: Memory Optimizations Toward
Training Trillion Parameter Models*.

Check your work: shardlings check a2_memory
For all exercises of this module: README.md, or shardlings show 01_layout
"""

import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def memory(shape, dtype, spec, mesh_shape):
    """Bytes on one device, and on all devices together.

    Args: shape is a tuple of ints, dtype a name, spec a PartitionSpec, mesh_shape such as {"x": 4, "y": 2}.
    Returns: a tuple of two ints.
    """
    # TODO: write this function
    raise NotImplementedError("memory")


# Question weights_in_all [MB]
# `W` is bfloat16[8192, 12288], sharded `W[I_X, J]` on a mesh with x=2, y=8, z=16. How many MB do
# all chips hold together?
#
# Answer in MB (a bare number), or with a unit.
# Model: 1 MB is 10^6 bytes.
weights_in_all = None  # TODO: your answer


# Question placed_and_unplaced [MB]
# `host` is a NumPy array, bfloat16[8192, 5120], and `mesh` has x=8, y=6: all the chips of a host.
# `a = jnp.asarray(host)` and `b = jax.device_put(host, NamedSharding(mesh, P()))`. How many MB of
# all chips' memory do `a` and `b` take together?
#
# Answer in MB (a bare number), or with a unit.
# Model: 1 MB is 10^6 bytes.
placed_and_unplaced = None  # TODO: your answer
