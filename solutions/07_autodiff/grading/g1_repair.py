"""Checks, alternatives and misconceptions of G1."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from g1_repair import decay, exercise, loop_time, means, squares
from grader.exercise import Scenario, larger, normal
from grader.expect import expect_close, expect_collectives, expect_spec, expect_traffic, needed
from grader.hardware import all_gather_time, all_reduce_time, latency

rows = normal("B", "D", spec=P("x"))
DIMS = {"B": 24, "D": 6}
HIDDEN = {"B": 60, "D": 7}
squared = exercise.call(squares, x=rows, returns=("rows", "columns"), dims=DIMS, hidden_dims=HIDDEN)
squared_back = exercise.call(
    squares,
    x=rows,
    wrt=["x"],
    returns=("rows", "columns"),
    cotangent=(normal("B", spec=P("x")), normal("D")),
    dims=DIMS,
    hidden_dims=HIDDEN,
)
decayed = exercise.call(
    decay,
    x=normal("T", "B", "D", spec=P(None, "x")),
    wrt=["x"],
    cotangent=normal("D"),
    dims={"T": 3, "B": 24, "D": 6},
    hidden_dims={"T": 5, "B": 60, "D": 7},
)
averaged = exercise.call(means, x=rows, wrt=["x"], cotangent=normal("D"), dims=DIMS, hidden_dims=HIDDEN)


@exercise.helper
def one_sum_of_columns(seen):
    """Require one all-reduce of D float32 numbers over x, in both passes together.

    The result is a sum over all devices, so every right program has at least one all-reduce.
    """
    n = seen.mesh["x"]
    expect_collectives(seen, all_reduce={"x": 1})
    one = 2 * (n - 1) / n * 4 * seen.dims["D"]
    expect_traffic(seen, at_most=needed(one, 2 * one))


@exercise.check(squared, points=0.5, public=True)
def squares_value(seen):
    """squares: the sums of rows are cut over x, and the sums of columns are whole"""
    expect_close(seen.out, ((seen.x**2).sum(1), (seen.x**2).sum(0)))
    expect_spec(seen.out, (P("x"), P()))


@exercise.check(decayed, points=0.5, public=True)
def decay_value(seen):
    """decay: the decayed sum is whole on every device, and its gradient is right"""
    factors = 0.5 ** np.arange(seen.dims["T"])[::-1, None, None]
    expect_close(seen.out, (factors * seen.x).sum((0, 1)))
    expect_close(seen.grads["x"], factors * np.ones_like(seen.x) * seen.cotangent)


@exercise.check(averaged, points=0.5, public=True)
def means_value(seen):
    """means: the mean of each column is whole on every device, and its gradient is right"""
    expect_close(seen.out, seen.x.mean(0))
    expect_close(seen.grads["x"], np.ones_like(seen.x) * seen.cotangent / len(seen.x))


@exercise.check(squared_back, points=0.25, public=True, after=squares_value)
def squares_traffic(seen):
    """squares: one all-reduce of D numbers in the forward pass, none in the backward pass, with check_vma on"""
    of_rows, of_columns = seen.cotangent
    expect_close(seen.grads["x"], 2 * seen.x * (of_rows[:, None] + of_columns))
    one_sum_of_columns(seen)


@exercise.check(decayed, points=0.25, public=True, after=decay_value)
def decay_traffic(seen):
    """decay: one all-reduce of D numbers in the forward pass, none in the backward pass, with check_vma on"""
    one_sum_of_columns(seen)


@exercise.check(averaged, points=0.25, public=True, after=means_value)
def means_traffic(seen):
    """means: one all-reduce of D numbers in the forward pass, none in the backward pass, with check_vma on"""
    one_sum_of_columns(seen)


def _mapped(local, x, mesh, in_specs=None, out_specs=None, check_vma=True):
    in_specs, out_specs = in_specs or P("x"), out_specs or P()
    return jax.shard_map(local, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_vma)(x)


def _squares(x):
    return (x**2).sum(1), jax.lax.psum((x**2).sum(0), "x")


def _decay(start, x):
    return jax.lax.fori_loop(0, len(x), lambda t, c: c / 2 + x[t].sum(0), start)


@exercise.alternative(of=squares)
def squares_of_old(x, *, mesh):
    """Use jax.experimental.shard_map with check_rep, and sum by einsum."""
    from jax.experimental.shard_map import shard_map

    def local(x):
        return jnp.einsum("bd,bd->b", x, x), jax.lax.psum(jnp.einsum("bd,bd->d", x, x), "x")

    return shard_map(local, mesh=mesh, in_specs=(P("x", None),), out_specs=(P("x"), P(None)), check_rep=True)(x)


@exercise.alternative(of=decay)
def decay_by_pvary(x, *, mesh):
    """Use pvary, the older name of the cast."""
    local = lambda x: jax.lax.psum(_decay(jax.lax.pvary(jnp.zeros(x.shape[2]), "x"), x), "x")  # noqa: E731
    return _mapped(local, x, mesh, P(None, "x"))


@exercise.alternative(of=decay)
def decay_from_data(x, *, mesh):
    """Make the loop's initial carry from an array that varies over x."""
    local = lambda x: jax.lax.psum(_decay(jnp.zeros_like(x[0, 0]), x), "x")  # noqa: E731
    return _mapped(local, x, mesh, P(None, "x"))


@exercise.alternative(of=decay)
def decay_from_the_first(x, *, mesh):
    """Start a scan with the first round already done."""

    def local(x):
        return jax.lax.psum(jax.lax.scan(lambda c, a: (c / 2 + a.sum(0), None), x[0].sum(0), x[1:])[0], "x")

    return _mapped(local, x, mesh, P(None, "x"))


@exercise.alternative(of=decay)
def decay_unrolled(x, *, mesh):
    """Use a Python loop, where a carry may change its type."""

    def local(x):
        c = jnp.zeros(x.shape[2])
        for a in x:
            c = c / 2 + a.sum(0)
        return jax.lax.psum(c, "x")

    return _mapped(local, x, mesh, P(None, "x"))


@exercise.alternative(of=means)
def means_by_psum(x, *, mesh):
    """Divide the psum of the sums by the number of all rows."""
    local = lambda block: jax.lax.psum(block.sum(0), "x") / x.shape[0]  # noqa: E731
    return _mapped(local, x, mesh)


@exercise.misconception(
    of=squares, fails=squares_value, breaks="the sums of rows are cut over x, and the sums of columns are whole"
)
def squares_unchecked(x, *, mesh):
    """You turned check_vma off. With out_specs=P() JAX then returns one device's rows as all rows. Use P('x') for the first result."""
    return _mapped(_squares, x, mesh, check_vma=False)


@exercise.misconception(
    of=squares, fails=squares_value, breaks="the sums of rows are cut over x, and the sums of columns are whole"
)
def squares_summed(x, *, mesh):
    """You summed the rows' results over the devices to make them equal. Row 1 of one device is not row 1 of the next device. Axis x cuts these results: use P('x')."""
    local = lambda x: (jax.lax.psum((x**2).sum(1), "x"), jax.lax.psum((x**2).sum(0), "x"))  # noqa: E731
    return _mapped(local, x, mesh)


@exercise.misconception(
    of=squares, fails=squares_value, breaks="the sums of rows are cut over x, and the sums of columns are whole"
)
def squares_all_cut(x, *, mesh):
    """Your out_specs cuts both results, so N copies of the columns' sums follow one another. The psum's result is whole: use P()."""
    return _mapped(_squares, x, mesh, out_specs=P("x"))


@exercise.misconception(
    of=squares, fails=squares_value, breaks="the sums of rows are cut over x, and the sums of columns are whole"
)
def squares_summed_twice(x, *, mesh):
    """You summed the columns' results over the devices twice. After the first psum all devices hold equal sums, and the second adds N copies."""
    local = lambda x: ((x**2).sum(1), jax.lax.psum(jax.lax.psum((x**2).sum(0), "x"), "x"))  # noqa: E731
    return _mapped(local, x, mesh, out_specs=(P("x"), P()))


@exercise.misconception(of=squares, fails=squares_traffic, breaks="none in the backward pass")
def squares_right_but_unchecked(x, *, mesh):
    """The specs are right, but you turned check_vma off. JAX no longer knows that the psum's result is equal on all devices, so the backward pass sums its cotangent over the devices."""
    return _mapped(_squares, x, mesh, out_specs=(P("x"), P()), check_vma=False)


@exercise.misconception(of=decay, fails=decay_traffic, breaks="none in the backward pass")
def decay_unchecked(x, *, mesh):
    """You turned check_vma off. The values are right, but without types the backward pass sums N equal cotangents. The error message names the carry and the axis: cast the carry's start."""
    return _mapped(
        lambda x: jax.lax.psum(_decay(jnp.zeros(x.shape[2]), x), "x"), x, mesh, P(None, "x"), check_vma=False
    )


@exercise.misconception(of=decay, fails=decay_traffic, breaks="one all-reduce over x")
def decay_psum_in_the_loop(x, *, mesh):
    """You sum over the devices in each round. The types fit, but T all-reduces do the work of one. Cast the start instead: a cast sends nothing."""

    def local(x):
        return jax.lax.fori_loop(0, len(x), lambda t, c: c / 2 + jax.lax.psum(x[t].sum(0), "x"), jnp.zeros(x.shape[2]))

    return _mapped(local, x, mesh, P(None, "x"))


@exercise.misconception(of=decay, fails=decay_traffic, breaks="one all-reduce over x of D numbers")
def decay_psum_before_the_loop(x, *, mesh):
    """You sum every round's rows over the devices before the loop: T times the bytes. Cast the start, and sum over the devices once, after the loop."""

    def local(x):
        sums = jax.lax.psum(x.sum(1), "x")
        return jax.lax.fori_loop(0, len(x), lambda t, c: c / 2 + sums[t], jnp.zeros(x.shape[2]))

    return _mapped(local, x, mesh, P(None, "x"))


@exercise.misconception(of=decay, fails=decay_value, breaks="the result and its gradient are right")
def decay_psum_in_the_loop_and_after(x, *, mesh):
    """You sum over the devices in each round and again at the end, which adds N copies. Cast the start, and keep only the psum at the end."""

    def local(x):
        add = lambda t, c: c / 2 + jax.lax.psum(x[t].sum(0), "x")  # noqa: E731
        return jax.lax.psum(jax.lax.fori_loop(0, len(x), add, jnp.zeros(x.shape[2])), "x")

    return _mapped(local, x, mesh, P(None, "x"))


@exercise.misconception(of=decay, fails=decay_value, breaks="the result and its gradient are right")
def decay_of_the_carry(x, *, mesh):
    """You sum the carry over the devices in each round. Each round sums the earlier sums again, so these sums grow by a factor of N. Cast the start, and sum over the devices once, after the loop."""

    def local(x):
        add = lambda t, c: jax.lax.psum(c / 2 + x[t].sum(0), "x")  # noqa: E731
        return jax.lax.fori_loop(0, len(x), add, jnp.zeros(x.shape[2]))

    return _mapped(local, x, mesh, P(None, "x"))


@exercise.misconception(of=means, fails=means_value, breaks="the result and its gradient are right")
def means_unchecked(x, *, mesh):
    """You turned check_vma off, but the check was right: each device has only the mean of its own rows. JAX now returns one of these means as the mean of all rows."""
    return _mapped(lambda x: x.mean(0), x, mesh, check_vma=False)


@exercise.misconception(of=means, fails=means_value, breaks="the result and its gradient are right")
def means_cut(x, *, mesh):
    """Your out_specs names x. The result is now N times as long: the devices' means, one after the other. Reduce the means over the devices instead."""
    return _mapped(lambda x: x.mean(0), x, mesh, out_specs=P("x"))


@exercise.misconception(of=means, fails=means_value, breaks="the result and its gradient are right")
def means_summed(x, *, mesh):
    """You added the means of N devices. Take the mean of these means."""
    return _mapped(lambda x: jax.lax.psum(x.mean(0), "x"), x, mesh)


@exercise.misconception(of=means, fails=means_value, breaks="the result and its gradient are right")
def means_summed_twice(x, *, mesh):
    """You reduced twice. After the first reduction all devices hold equal results, and the second adds N copies."""
    return _mapped(lambda x: jax.lax.psum(jax.lax.pmean(x.mean(0), "x"), "x"), x, mesh)


@exercise.misconception(of=means, fails=means_traffic, breaks="one all-reduce over x of D numbers")
def means_of_summed_rows(x, *, mesh):
    """You reduced the rows over the devices before you took the mean of the rows. That sends the bytes of all rows of a device. Take the mean of the device's rows first."""
    return _mapped(lambda x: jax.lax.pmean(x, "x").mean(0), x, mesh)


@exercise.misconception(of=means, fails=means_traffic, breaks="none in the backward pass")
def means_right_but_unchecked(x, *, mesh):
    """The mean is right, but you turned check_vma off. Without types the backward pass sums N equal cotangents."""
    return _mapped(lambda x: jax.lax.pmean(x.mean(0), "x"), x, mesh, check_vma=False)


def _loop_time(chip, T, X, sizes, one):
    return T * sum(one(2 * latency(X), all_reduce_time(4 * n, X, chip)) for n in sizes)


@exercise.misconception(of=loop_time)
def loop_once(chip, T, X, D, E):
    """Your answer is the time of one round. The loop runs its all-reduces T times."""
    return _loop_time(chip, 1, X, (D, E), max)


@exercise.misconception(of=loop_time)
def loop_added(chip, T, X, D, E):
    """You added the time of the hops and the time of the bytes. The two overlap: take the longer time."""
    return _loop_time(chip, T, X, (D, E), lambda hops, sent: hops + sent)


@exercise.misconception(of=loop_time)
def loop_of_hops(chip, T, X, D, E):
    """You counted the hops only. With many columns, the time of the bytes is longer than the latency of the hops."""
    return _loop_time(chip, T, X, (D, E), lambda hops, sent: hops)


@exercise.misconception(of=loop_time)
def loop_of_bytes(chip, T, X, D, E):
    """You counted the bytes only. With few columns, the latency of the hops is longer than the time of the bytes."""
    return _loop_time(chip, T, X, (D, E), lambda hops, sent: sent)


@exercise.misconception(of=loop_time)
def loop_in_one_phase(chip, T, X, D, E):
    """You counted one phase of the all-reduce. An all-reduce has two phases: a reduce-scatter, then an all-gather."""
    return T * sum(max(latency(X), all_gather_time(4 * n, X, chip)) for n in (D, E))


exercise.scenario(
    loop_time,
    lambda chip, T, X, D, E: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, least=2 * T * 2 * latency(X),
        branches=tuple(larger(hops=2 * latency(X), bytes=all_reduce_time(4 * n, X, chip)) for n in (D, E)),
    ),
)  # fmt: skip
