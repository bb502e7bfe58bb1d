# Mistake: learners' files need a value that a loop binds
# Message: learners' code uses SIZES; assign this name on a line of its own: SIZES = ...
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
def value_bound_in_a_loop(a, *, mesh):
    """Gather A[I_X, J] into A[I, J]."""
    local = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


for SIZES in [{"I": 12, "J": 5}]:
    pass

called = exercise.call(
    value_bound_in_a_loop, a=normal("I", "J", spec=P("x", None)), dims=SIZES, hidden_dims={"I": 20, "J": 7}
)


@exercise.check(called, points=1, public=True)
def value_bound_in_a_loop_value(seen):
    """every device holds the whole of A"""
    expect_close(seen.out, seen.a)
    expect_spec(seen.out, P())


@exercise.check(called, points=1, after=value_bound_in_a_loop_value)
def value_bound_in_a_loop_traffic(seen):
    """one all-gather over x and no other collective"""
    expect_collectives(seen, all_gather={"x": 1})


@exercise.misconception(fails=value_bound_in_a_loop_value)
def value_bound_in_a_loop_zeros(a, *, mesh):
    """You returned zeros."""
    return jnp.zeros_like(a)


@exercise.misconception(fails=value_bound_in_a_loop_traffic)
def value_bound_in_a_loop_twice(a, *, mesh):
    """You gathered, and took the largest of equal values."""
    local = lambda a: jax.lax.pmax(jax.lax.all_gather(a, "x", axis=0, tiled=True), "x")
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
