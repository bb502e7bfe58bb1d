# Mistake: no right program needs the budget
# Message: the budget says that right programs need at least 4.9 KiB, but the cheapest, the reference, needs 180 B
"""# Gather

Every device gets the whole of A.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_spec, expect_traffic, needed

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}])


@exercise.task(hints=["Who has the other rows?", "Almost the line: all_gather."])
def loose_budget(a, *, mesh):
    """Gather A[I_X, J] into A[I, J]."""
    local = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


called = exercise.call(
    loose_budget, a=normal("I", "J", spec=P("x", None)), dims={"I": 12, "J": 5}, hidden_dims={"I": 20, "J": 7}
)


@exercise.check(called, points=1, public=True)
def loose_budget_value(seen):
    """every device holds the whole of A"""
    expect_close(seen.out, seen.a)
    expect_spec(seen.out, P())


@exercise.check(called, points=1, after=loose_budget_value)
def loose_budget_traffic(seen):
    """one all-gather over x and no other collective"""
    expect_traffic(seen, at_most=needed(5_000, 10_000))


@exercise.misconception(fails=loose_budget_value)
def loose_budget_zeros(a, *, mesh):
    """You returned zeros."""
    return jnp.zeros_like(a)


@exercise.misconception(fails=loose_budget_traffic)
def loose_budget_twice(a, *, mesh):
    """You gathered, and took the largest of equal values."""
    local = lambda a: jax.lax.pmax(jax.lax.all_gather(a, "x", axis=0, tiled=True), "x")
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
