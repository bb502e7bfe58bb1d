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

## Going further

In the small case the mean of the whole array is 4, and no device returns this number. A roll of the whole array would
send the 9 to the device of the first block.

**In real systems.** Statistics of a shard (amax for quantization, router load of a group of experts) are cheap, because
they need no communication. If you want the statistic of the whole array and forget the collective, each device returns
the statistic of its own shard.

**Read on.** *How To Scale Your Model*, "Programming TPUs in JAX".
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_no_collectives, expect_spec

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 8, "y": 1}], stars=1)


@exercise.task(
    hints=[
        "Write the function of one block first. Which shape must it return, so that the results of all devices form an array of shape [X, Y]?",
        "Return one number per device, as a [1, 1] array: out_specs joins them along x and y into [X, Y].",
        "Inside shard_map: jnp.mean(block, keepdims=True), with in_specs and out_specs P('x', 'y').",
    ]
)
def shard_mean(a, *, mesh):
    """Return the mean of each device's block of A[S_X, D_Y].

    Args: a is float32[S, D] sharded P('x', 'y'); mesh has the axes 'x' and 'y'.
    Returns: float32[X, Y] sharded P('x', 'y'), element (i, j) from device (x=i, y=j).
    """

    def local(block):
        return jnp.mean(block, keepdims=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


@exercise.task(
    hints=[
        "jnp.roll of the whole array moves rows between devices. How can you roll only the rows of one block?",
        "Inside shard_map jnp.roll sees the block. Give jnp.roll an axis: without an axis it rolls the flattened block.",
        "Inside shard_map: jnp.roll(block, shift, axis=0) - block.",
    ]
)
def shard_roll_diff(a, *, mesh, shift):
    """Return each block of A[S_X, D_Y], rolled down by `shift` rows within itself, minus the block.

    Args: as for shard_mean; shift is an int.
    Returns: float32[S, D] sharded P('x', 'y').
    """

    def local(block):
        return jnp.roll(block, shift, axis=0) - block

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


a = normal("S", "D", spec=P("x", "y"))
means = exercise.call(shard_mean, a=a, dims={"S": 48, "D": 40}, hidden_dims={"S": 24, "D": 60})
rolled = exercise.call(
    shard_roll_diff, a=a, static={"shift": 1}, dims={"S": 48, "D": 40}, hidden_dims={"S": 24, "D": 60}
)
rolled_far = exercise.call(shard_roll_diff, a=a, static={"shift": 3}, dims={"S": 56, "D": 44})


@exercise.check(means, points=0.5, public=True)
def shard_mean_value(seen):
    """shard_mean: element (i, j) is the mean of the block of device (x=i, y=j)"""
    width = seen.a.shape[1] // seen.mesh["y"]
    blocks = seen.a.reshape(seen.mesh["x"], -1, seen.mesh["y"], width)
    expect_close(seen.out, blocks.mean(axis=(1, 3)), scale=1.0)


@exercise.check(means, points=0.25, after=shard_mean_value)
def shard_mean_alone(seen):
    """shard_mean: no communication, and each device keeps its own mean, P('x', 'y')"""
    expect_no_collectives(seen)
    expect_spec(seen.out, P("x", "y"))


@exercise.check(rolled, points=0.25, public=True)
def shard_roll_value(seen):
    """shard_roll_diff: every block rolled by one row, minus the block"""
    width = seen.a.shape[1] // seen.mesh["y"]
    blocks = seen.a.reshape(seen.mesh["x"], -1, seen.mesh["y"], width)
    expect_close(seen.out, (np.roll(blocks, 1, axis=1) - blocks).reshape(seen.a.shape))


@exercise.check(rolled_far, points=0.25, after=shard_roll_value)
def shard_roll_further(seen):
    """shard_roll_diff: every block rolled by three rows, minus the block"""
    width = seen.a.shape[1] // seen.mesh["y"]
    blocks = seen.a.reshape(seen.mesh["x"], -1, seen.mesh["y"], width)
    expect_close(seen.out, (np.roll(blocks, 3, axis=1) - blocks).reshape(seen.a.shape))


@exercise.check(rolled, points=0.25, after=shard_roll_value)
def shard_roll_alone(seen):
    """shard_roll_diff: no communication, and the result is sharded P('x', 'y')"""
    expect_no_collectives(seen)
    expect_spec(seen.out, P("x", "y"))


@exercise.number(
    points=0.5,
    unit="KB",
    params={"S": [8192, 16384], "D": [6144, 10240, 15360], "X": [8, 16], "Y": [2, 4], "shift": [3, 7]},
    model="1 KB is 1000 bytes",
    hints=[
        "Which rows move from one device to another?",
        "Only the last `shift` rows of each block move to the next device along x. y cuts the columns, so a block has only some of the columns.",
        "bytes that a device sends = 4 bytes · shift rows · (columns of a block)",
    ],
)
def global_roll_bytes(S, D, X, Y, shift):
    """`A[S_X, D_Y]` is float32[{{ S }}, {{ D }}] on the mesh x={{ X }}, y={{ Y }}. Suppose that you roll the *whole* array down
    by {{ shift }} rows. How many KB must each device send?"""
    return 4 * shift * D / Y
