# Mistake: a static keyword has one value in all calls
# Message: keyword_of_one_value: the static keyword scale is 0.25 in every call, so a solution can hard-code it
"""# Gather

Every device gets the whole of A, times `scale`.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_spec

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}])


@exercise.task(hints=["Who has the other rows?", "Almost the line: all_gather."])
def keyword_of_one_value(a, *, mesh, scale):
    """Gather A[I_X, J] into A[I, J], and multiply by scale."""
    local = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
    return 0.25 * jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


called = exercise.call(
    keyword_of_one_value,
    a=normal("I", "J", spec=P("x", None)),
    static={"scale": 0.25},
    dims={"I": 12, "J": 5},
    hidden_dims={"I": 20, "J": 7},
)


@exercise.check(called, points=1, public=True)
def keyword_of_one_value_value(seen):
    """every device holds the whole of A, times scale"""
    expect_close(seen.out, seen.scale * seen.a)
    expect_spec(seen.out, P())


@exercise.check(called, points=1, after=keyword_of_one_value_value)
def keyword_of_one_value_traffic(seen):
    """one all-gather over x and no other collective"""
    expect_collectives(seen, all_gather={"x": 1})


@exercise.misconception(fails=keyword_of_one_value_value)
def keyword_of_one_value_zeros(a, *, mesh, scale):
    """You returned zeros."""
    return jnp.zeros_like(a)


@exercise.misconception(fails=keyword_of_one_value_traffic)
def keyword_of_one_value_twice(a, *, mesh, scale):
    """You gathered, and took the largest of equal values."""
    local = lambda a: jax.lax.pmax(jax.lax.all_gather(a, "x", axis=0, tiled=True), "x")
    return scale * jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
