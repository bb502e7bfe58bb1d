# Mistake: all elements of an argument are 1
# Message: argument a has equal values along dimension 0 in every draw, so a program that swaps positions along it would pass: draw different values
"""# Gather

Every device gets the whole of A.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, array
from grader.expect import expect_close, expect_collectives, expect_spec

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}])


@exercise.task(hints=["Who has the other rows?", "Almost the line: all_gather."])
def all_ones(a, *, mesh):
    """Gather A[I_X, J] into A[I, J]."""
    local = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


called = exercise.call(
    all_ones,
    a=array("I", "J", draw=lambda rng, shape: np.ones(shape), spec=P("x", None)),
    dims={"I": 12, "J": 5},
    hidden_dims={"I": 20, "J": 7},
)


@exercise.check(called, points=1, public=True)
def all_ones_value(seen):
    """every device holds the whole of A"""
    expect_close(seen.out, seen.a)
    expect_spec(seen.out, P())


@exercise.check(called, points=1, after=all_ones_value)
def all_ones_traffic(seen):
    """one all-gather over x and no other collective"""
    expect_collectives(seen, all_gather={"x": 1})


@exercise.misconception(fails=all_ones_value)
def all_ones_zeros(a, *, mesh):
    """You returned zeros."""
    return jnp.zeros_like(a)


@exercise.misconception(fails=all_ones_traffic)
def all_ones_twice(a, *, mesh):
    """You gathered, and took the largest of equal values."""
    local = lambda a: jax.lax.pmax(jax.lax.all_gather(a, "x", axis=0, tiled=True), "x")
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
