"""# H1 The total over all devices

`total` adds the rows of an array that is cut by rows; `twice` doubles a number; `megabytes` is a question.
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_outcomes

exercise = Exercise(meshes=[{"x": 4}])


@exercise.task
def total(a, *, mesh):
    """The sum of all rows of a, whole on every device."""

    def local(a):
        canary_of_a_solution_line = a.sum(0)
        return jax.lax.psum(canary_of_a_solution_line, "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P())(a)


@exercise.function
def twice(n):
    """2 n"""
    return 2 * n


summed = exercise.call(total, a=normal("I", "J", spec=P("x")), dims={"I": 8, "J": 6}, hidden_dims={"I": 12, "J": 10})
doubled = exercise.cases(
    twice, public=[{"n": 3}], hidden=lambda rng: ({"n": int(n)} for n in rng.integers(10**6, 10**9, 20))
)


@exercise.check(summed, points=2, public=True)
def value(seen):
    """total: the sum of all rows"""
    expect_close(seen.out, seen.a.sum(0))


@exercise.check(summed, points=1, after=value)
def traffic(seen):
    """total: one all-reduce over x and no other collective"""
    expect_collectives(seen, all_reduce={"x": 1})


@exercise.check(doubled, points=1)
def doubles(seen):
    """twice: 2 n"""
    expect_outcomes(seen)


@exercise.number(points=1, unit="MB", params={"n": [3, 5]})
def megabytes(n):
    """How many MB are {{ n }} arrays of 2 MB?"""
    return 2e6 * n
