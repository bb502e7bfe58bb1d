"""# A2 One step around the ring

**Task.** The devices along `x` form a ring. Write `shift(block)`, a body for `shard_map` (the grader calls `shard_map`
with it). Each device returns the block of its left neighbour, and the first device returns the block of the last
device.

**Budget.** One permute over x, and no other collective.

```
    before    x0  a     x1  b     x2  c     x3  d
    after     x0  d     x1  a     x2  b     x3  c
```
"""

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, Scenario, normal
from grader.expect import expect_close, expect_collectives

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 5}, {"x": 8}])


@exercise.body(
    out_specs=P("x", None),
    hints=[
        "To whom does device i send?",
        "ppermute takes pairs (from, to); the last device's neighbour on the right is the first.",
        "jax.lax.ppermute(block, 'x', [(i, (i + 1) % n) for i in range(n)]), with n = jax.lax.axis_size('x')",
    ],
)
def shift(block):
    """Return the left neighbour's block: float32[I/X, J] -> float32[I/X, J]."""
    n = jax.lax.axis_size("x")
    return jax.lax.ppermute(block, "x", [(i, (i + 1) % n) for i in range(n)])


shifted = exercise.call(
    shift, block=normal("I", "J", spec=P("x", None)), dims={"I": 40, "J": 6}, hidden_dims={"I": 120, "J": 7}
)


@exercise.check(shifted, points=1, public=True)
def shift_value(seen):
    """shift: every device holds its left neighbour's block"""
    expect_close(seen.out, np.roll(seen.block, seen.dims["I"] // seen.mesh["x"], axis=0))


@exercise.check(shifted, points=1, after=shift_value)
def shift_traffic(seen):
    """shift: one permute over x and no other collective"""
    expect_collectives(seen, permute={"x": 1})


@exercise.misconception(fails=shift_value)
def shift_to_the_left(block):
    """You sent to the left, so every device holds its right neighbour's block."""
    n = jax.lax.axis_size("x")
    return jax.lax.ppermute(block, "x", [(i, (i - 1) % n) for i in range(n)])


@exercise.misconception(fails=shift_value)
def shift_on_a_line(block):
    """The last device has no receiver. A device that no pair names as a target receives zeros, and no error."""
    n = jax.lax.axis_size("x")
    return jax.lax.ppermute(block, "x", [(i, i + 1) for i in range(n - 1)])


@exercise.misconception(fails=shift_traffic)
def shift_gathered(block):
    """You gathered the whole array, and kept only one block of it."""
    n = jax.lax.axis_size("x")
    return jax.lax.all_gather(block, "x")[(jax.lax.axis_index("x") - 1) % n]


@exercise.number(
    points=1,
    unit="MB",
    params={"I": [4096, 8192, 12288], "J": [2048, 5120, 7168], "X": [4, 8, 16]},
    model="1 MB is 10^6 bytes",
)
def shift_bytes(I, J, X):
    """The rows of `A`, float32[{{ I }}, {{ J }}], are sharded over a ring of {{ X }} devices. How many MB does each
    device send in one `shift`?"""
    return 4 * I * J / X


@exercise.misconception(of=shift_bytes)
def shift_bytes_of_all(I, J, X):
    """These are the bytes of the whole array. Each device sends its own block."""
    return 4 * I * J


exercise.scenario(shift_bytes, lambda I, J, X: Scenario(mesh={"x": X}, arrays=[((I, J), P("x"))]))
