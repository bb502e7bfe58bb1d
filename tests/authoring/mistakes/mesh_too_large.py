# Mistake: a mesh has more devices than the course
# Message: mesh_too_large needs 16 devices for its mesh {'x': 16}, but course.yaml says devices: 8
"""# Gather

Every device gets the whole of A.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_spec

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 16}])


@exercise.task(hints=["Who has the other rows?", "Almost the line: all_gather."])
def mesh_too_large(a, *, mesh):
    """Gather A[I_X, J] into A[I, J]."""
    local = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


called = exercise.call(
    mesh_too_large, a=normal("I", "J", spec=P("x", None)), dims={"I": 48, "J": 5}, hidden_dims={"I": 80, "J": 7}
)


@exercise.check(called, points=1, public=True)
def mesh_too_large_value(seen):
    """every device holds the whole of A"""
    expect_close(seen.out, seen.a)
    expect_spec(seen.out, P())


@exercise.check(called, points=1, after=mesh_too_large_value)
def mesh_too_large_traffic(seen):
    """one all-gather over x and no other collective"""
    expect_collectives(seen, all_gather={"x": 1})


@exercise.misconception(fails=mesh_too_large_value)
def mesh_too_large_zeros(a, *, mesh):
    """You returned zeros."""
    return jnp.zeros_like(a)


@exercise.misconception(fails=mesh_too_large_traffic)
def mesh_too_large_twice(a, *, mesh):
    """You gathered, and took the largest of equal values."""
    local = lambda a: jax.lax.pmax(jax.lax.all_gather(a, "x", axis=0, tiled=True), "x")
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
