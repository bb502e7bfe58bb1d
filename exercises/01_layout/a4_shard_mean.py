"""# A4 What each device computes alone

Inside `jax.shard_map` your function sees the block of one device. There `jnp.mean` is the mean of that block.
`jnp.roll` takes the last rows of the block and puts them in front of its first row. No device needs data of another
device.

```
   A[S_X, D_Y] on x=2, y=2                 M[X_X, Y_Y]
   +--------+--------+                    +-----+-----+   block (0,0) rolled
   | x0, y0 | x0, y1 |  rows 0:4          | m00 | m01 |   by 1, minus block:
   +--------+--------+             -->    +-----+-----+   rows 3 - 0, 0 - 1,
   | x1, y0 | x1, y1 |  rows 4:8          | m10 | m11 |   1 - 2, 2 - 3
   +--------+--------+                    +-----+-----+
```

**Write** two functions of the whole array `a`: `shard_mean(a, *, mesh)` returns the mean of each device's own block.
`shard_roll_diff(a, *, mesh, shift)` rolls each block down by `shift` rows within itself, and subtracts the block as it
was before the roll.

| | shape | layout |
|---|---|---|
| `a` | float32[S, D] | `P("x", "y")`, a block is [S/X, D/Y] |
| `shift` | int: a number of rows | |
| returns of `shard_mean` | float32[X, Y] | `P("x", "y")`, one number on each device |
| returns of `shard_roll_diff` | float32[S, D] | `P("x", "y")` |

**What is checked**

| function | check | small case |
|---|---|---|
| `shard_mean` | element (i, j) is the mean of the block of device (x=i, y=j) | means 2 and 6 |
| `shard_mean` | no communication, and each device keeps its own mean, `P("x", "y")` | 0 bytes |
| `shard_roll_diff` | every block rolled by one row, minus the block | [2, -1, -1], [5, -1, -4] |
| `shard_roll_diff` | every block rolled by three rows, minus the block | |
| `shard_roll_diff` | no communication, and the result is sharded `P("x", "y")` | 0 bytes |

The order is *rolled block minus block*. One of the grader's meshes has y=1.

**Symbols.** S, D: rows and columns of `A`. X, Y: sizes of the mesh axes. M: the array of means.

**Small case.** A = [1, 2, 3, 4, 5, 9] has one dimension, and x=2 cuts it into two blocks. The means of the two blocks
are 2 and 6. With shift=1, `shard_roll_diff` returns [3-1, 1-2, 2-3] and [9-4, 4-5, 5-9].

Check your work: shardlings check a4_shard_mean
Notes on all exercises of this module: see README.md, or run shardlings show 01_layout
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def shard_mean(a, *, mesh):
    """Return the mean of each device's block of A[S_X, D_Y].

    Args: a is float32[S, D] sharded P('x', 'y'); mesh has the axes 'x' and 'y'.
    Returns: float32[X, Y] sharded P('x', 'y'), element (i, j) from device (x=i, y=j).
    """
    # TODO: write this function
    raise NotImplementedError("shard_mean")


def shard_roll_diff(a, *, mesh, shift):
    """Return each block of A[S_X, D_Y], rolled down by `shift` rows within itself, minus the block.

    Args: as for shard_mean; shift is an int.
    Returns: float32[S, D] sharded P('x', 'y').
    """
    # TODO: write this function
    raise NotImplementedError("shard_roll_diff")


# Question global_roll_bytes [KB]
# `A[S_X, D_Y]` is float32[16384, 15360] on the mesh x=8, y=2. Suppose that you roll the *whole*
# array down by 7 rows. How many KB must each device send?
#
# Answer in KB (a bare number), or with a unit.
# Model: 1 KB is 1000 bytes.
global_roll_bytes = None  # TODO: your answer


# ## Going further
#
# In the small case the mean of the whole array is 4, and no device returns this number. A roll of the whole array would
# send the 9 to the device of the first block.
#
# **In real systems.** Statistics of a shard (amax for quantization, router load of a group of experts) are cheap, because
# they need no communication. If you want the statistic of the whole array and forget the collective, each device returns
# the statistic of its own shard.
#
# **Read on.** *How To Scale Your Model*, "Programming TPUs in JAX".
