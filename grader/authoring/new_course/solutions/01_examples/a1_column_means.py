"""# A1 The mean of each column

**Task.** The rows of `A[I_X, J]` are sharded over the mesh axis `x`. Write `column_means(a, *, mesh)`. It returns the
mean of each column, whole on every device.

**Budget.** One all-reduce of J numbers over x, and no other collective. No rows move between devices.

```
    x0  1 2      x1  5 6
        3 4          7 8
    sums 4 6     sums 12 14     all-reduce: 16 20     over 4 rows: 4 5
```
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_spec

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 8}])


@exercise.task(
    hints=[
        "Which part of a column's sum can a device compute from its own rows?",
        "Sum your own rows, add these sums over x, divide by the number of all rows.",
        "jax.lax.psum(block.sum(axis=0), 'x') / a.shape[0], inside shard_map",
    ]
)
def column_means(a, *, mesh):
    """Return the mean of each column of A.

    Args: a is float32[I, J] sharded P('x', None); mesh has an axis 'x'.
    Returns: float32[J] sharded P(None).
    """

    def local(block):
        return jax.lax.psum(block.sum(axis=0), "x") / a.shape[0]

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P(None))(a)


means = exercise.call(
    column_means, a=normal("I", "J", spec=P("x", None)), dims={"I": 24, "J": 10}, hidden_dims={"I": 40, "J": 7}
)


@exercise.check(means, points=1, public=True)
def means_value(seen):
    """column_means: the mean over all rows"""
    expect_close(seen.out, seen.a.mean(axis=0), terms=seen.dims["I"])


@exercise.check(means, points=1, after=means_value)
def means_traffic(seen):
    """column_means: on every device, with one all-reduce over x and no other collective"""
    expect_spec(seen.out, P(None))
    expect_collectives(seen, all_reduce={"x": 1})


@exercise.misconception(fails=means_value)
def means_of_own_rows(a, *, mesh):
    """Each device took the mean of its own rows, and the means were not combined over x."""
    return jax.shard_map(
        lambda block: block.mean(axis=0), mesh=mesh, in_specs=P("x", None), out_specs=P(None), check_vma=False
    )(a)


@exercise.misconception(fails=means_traffic)
def means_gathered(a, *, mesh):
    """You gathered all rows to take their mean. A device needs only the sums of the other devices, not their rows."""

    def local(block):
        return jnp.mean(jax.lax.all_gather(block, "x", axis=0, tiled=True), axis=0)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P(None), check_vma=False)(a)
