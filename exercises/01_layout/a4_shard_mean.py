"""# A4 What each device computes alone

Inside `jax.shard_map` your function sees the block of one device, and NumPy's words mean that block: `mean` is the mean
of a block, `roll` pushes rows out at its bottom and in at its top.

**Task.** `A[S_X, D_Y]` is cut along both dimensions. Write two functions of the whole array:

- `shard_mean`: the mean of each device's own block, an array `M[X_X, Y_Y]` with one number per device;
- `shard_roll_diff`: each block rolled by `shift` rows within itself, minus the block, an array like `A`.

**Budget.** No communication: devices never talk.

```
   A[S_X, D_Y] on x=2, y=2                 M[X_X, Y_Y]
   +--------+--------+                    +-----+-----+   block (0,0),
   | x0, y0 | x0, y1 |  rows 0:4          | m00 | m01 |   shift=1:
   +--------+--------+             -->    +-----+-----+   rows 3 - 0, 0 - 1,
   | x1, y0 | x1, y1 |  rows 4:8          | m10 | m11 |   1 - 2, 2 - 3
   +--------+--------+                    +-----+-----+
```

**Small case.** A = [1, 2, 3, 4, 5, 9] cut over x=2, one dimension. The two means are 2 and 6; the mean of everything, 4,
is on no device. With shift=1 the blocks become [3-1, 1-2, 2-3] and [9-4, 4-5, 5-9]; a roll of the whole array would have
brought the 9 to the first block, over a link.

**In real systems**: statistics per shard (amax for quantization, router load per expert group) are cheap because nobody
asks for the global number. Where you do want the global one, forgetting the collective gives you this.

**Read on.** *How To Scale Your Model*, "Programming TPUs in JAX".

Check your work: shardlings check a4_shard_mean
For all exercises of this module: README.md, or shardlings show 01_layout
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def shard_mean(a, *, mesh):
    """The mean of each device's block of A[S_X, D_Y].

    Args: a is float32[S, D] sharded P('x', 'y'); mesh has the axes 'x' and 'y'.
    Returns: float32[X, Y] sharded P('x', 'y'), element (i, j) from device (x=i, y=j).
    """
    # TODO: write this function
    raise NotImplementedError("shard_mean")


def shard_roll_diff(a, *, mesh, shift):
    """Each block of A[S_X, D_Y] rolled down by `shift` rows within itself, minus the block.

    Args: as for shard_mean; shift is an int.
    Returns: float32[S, D] sharded P('x', 'y').
    """
    # TODO: write this function
    raise NotImplementedError("shard_roll_diff")


# Question global_roll_bytes [KB]
# `A[S_X, D_Y]` is float32[16384, 15360] on the mesh x=8, y=3. Had the *whole* array been rolled
# down by 7 rows, how many KB would each device have to send?
#
# Answer in KB (a bare number), or with a unit.
# Model: 1 KB is 1000 bytes.
global_roll_bytes = None  # TODO: your answer
