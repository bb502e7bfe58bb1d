# Mistake: the check compares with something else
# Message: the reference does not pass wrong_reference_value: on the mesh (x=4, y=2), on device (x=0, y=0), all values are wrong, the first at [0, 0]; every value is 2 times too small, and 2 is the size of axis y: did you take a mean instead of a sum?; expected 
"""# Gather

Every device gets the whole of A.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_spec

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}])


@exercise.task(hints=["Who has the other rows?", "Almost the line: all_gather."])
def wrong_reference(a, *, mesh):
    """Gather A[I_X, J] into A[I, J]."""
    local = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


called = exercise.call(
    wrong_reference, a=normal("I", "J", spec=P("x", None)), dims={"I": 12, "J": 5}, hidden_dims={"I": 20, "J": 7}
)


@exercise.check(called, points=1, public=True)
def wrong_reference_value(seen):
    """every device holds the whole of A"""
    expect_close(seen.out, 2 * seen.a)
    expect_spec(seen.out, P())


@exercise.check(called, points=1, after=wrong_reference_value)
def wrong_reference_traffic(seen):
    """one all-gather over x and no other collective"""
    expect_collectives(seen, all_gather={"x": 1})


@exercise.misconception(fails=wrong_reference_value)
def wrong_reference_zeros(a, *, mesh):
    """You returned zeros."""
    return jnp.zeros_like(a)


@exercise.misconception(fails=wrong_reference_traffic)
def wrong_reference_twice(a, *, mesh):
    """You gathered, and took the largest of equal values."""
    local = lambda a: jax.lax.pmax(jax.lax.all_gather(a, "x", axis=0, tiled=True), "x")
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
