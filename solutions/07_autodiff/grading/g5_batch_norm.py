"""Checks, alternatives and misconceptions of G5."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from g5_batch_norm import EPS, batch_norm, exercise, two_pass_cost
from grader.exercise import Scenario, array, normal
from grader.expect import expect_close, expect_not_waiting, expect_only, expect_spec, expect_traffic, needed
from grader.hardware import all_reduce_time, latency

DIMS = {"B": 60, "D": 6}
HIDDEN = {"B": 84, "D": 7}


@exercise.helper
def drifting(rng, shape):
    """Return rows whose mean goes from -2 to 2 over the batch. Each column has its own standard deviation."""
    return np.linspace(-2, 2, shape[0])[:, None] + rng.uniform(0.5, 2, shape[1]) * rng.standard_normal(shape)


forwards = exercise.call(batch_norm, x=array("B", "D", draw=drifting, spec=P("dp")), dims=DIMS, hidden_dims=HIDDEN)
both_ways = exercise.call(
    batch_norm,
    x=array("B", "D", draw=drifting, spec=P("dp")),
    wrt=["x"],
    cotangent=normal("B", "D", spec=P("dp")),
    dims=DIMS,
    hidden_dims=HIDDEN,
)


@exercise.check(forwards, points=0.5, public=True)
def normed_value(seen):
    """batch_norm: mean and variance cover all rows of the batch"""
    expect_close(seen.out, (seen.x - seen.x.mean(0)) / np.sqrt(seen.x.var(0) + EPS))


@exercise.check(forwards, points=0.25, public=True, after=normed_value)
def normed_spec(seen):
    """batch_norm: each device has its own rows of the result"""
    expect_spec(seen.out, P("dp"))


@exercise.check(both_ways, points=0.75, public=True, after=normed_value)
def normed_gradient(seen):
    """batch_norm: the gradient goes through mean and variance, too"""
    width = np.sqrt(seen.x.var(0) + EPS)
    out, back = (seen.x - seen.x.mean(0)) / width, seen.cotangent
    expect_close(seen.grads["x"], (back - back.mean(0) - out * (back * out).mean(0)) / width)


def _bytes(seen):
    n = seen.mesh["dp"]
    sums = 2 * (n - 1) / n * 4 * seen.dims["D"]
    return needed(2 * sums, 3 * sums)


@exercise.check(forwards, points=0.5, after=normed_value)
def normed_traffic(seen):
    """batch_norm: the forward pass sends the bytes of one all-reduce of 2 D numbers; no all-reduce waits for another"""
    expect_only(seen, "all_reduce")
    expect_traffic(seen, at_most=_bytes(seen))
    expect_not_waiting(seen, "all_reduce", on="all_reduce")


@exercise.check(both_ways, points=0.25, after=[normed_gradient, normed_traffic])
def normed_back_traffic(seen):
    """batch_norm: if JAX takes a gradient, each pass sends at most the bytes of one all-reduce of 2 D numbers over dp"""
    for backward in (False, True):
        expect_traffic(seen.only(backward=backward, axis="dp"), at_most=_bytes(seen))
    expect_not_waiting(seen.only(backward=False), "all_reduce", on="all_reduce")


def _mapped(local, x, mesh, check_vma=True):
    return jax.shard_map(local, mesh=mesh, in_specs=P("dp"), out_specs=P("dp"), check_vma=check_vma)(x)


@exercise.alternative(of=batch_norm)
def normed_unchecked(x, *, mesh):
    """Use check_vma=False. Without types JAX transposes psum to psum. That is right here, because each device uses the sums for its own rows."""

    def local(x):
        count = x.shape[0] * jax.lax.axis_size("dp")
        mean, square = jax.lax.psum(jnp.stack([x.sum(0), (x**2).sum(0)]), "dp") / count
        return (x - mean) / jnp.sqrt(square - mean**2 + EPS)

    return _mapped(local, x, mesh, check_vma=False)


@exercise.alternative(of=batch_norm)
def normed_by_two(x, *, mesh):
    """Use two independent all-reduces: a pmean of a tuple."""

    def local(x):
        mean, square = jax.lax.pmean((x.mean(0), (x**2).mean(0)), "dp")
        return (x - mean) / jnp.sqrt(square - mean**2 + EPS)

    return _mapped(local, x, mesh)


@exercise.alternative(of=batch_norm)
def normed_of_deviations(x, *, mesh):
    """Compute a device's mean of squares as its variance plus the square of its mean."""

    def local(x):
        own = x.mean(0)
        sums = jnp.concatenate([own, ((x - own) ** 2).mean(0) + own**2])
        mean, square = jnp.split(jax.lax.pmean(sums, "dp"), 2)
        return (x - mean) / jnp.sqrt(square - mean**2 + EPS)

    return _mapped(local, x, mesh)


@exercise.alternative(of=batch_norm)
def normed_by_rule(x, *, mesh):
    """Use a custom backward pass: one all-reduce of two sums."""

    def stats(a, b):
        return jax.lax.pmean(jnp.stack([a.mean(0), b.mean(0)]), "dp")

    def forward(x):
        mean, square = stats(x, x**2)
        width = jnp.sqrt(square - mean**2 + EPS)
        out = (x - mean) / width
        return out, (out, width)

    def backward(kept, back):
        out, width = kept
        mean, along = stats(back, back * out)
        return ((back - mean - out * along) / width,)

    norm = jax.custom_vjp(lambda x: forward(x)[0])
    norm.defvjp(forward, backward)
    return _mapped(norm, x, mesh, check_vma=False)


@exercise.misconception(of=batch_norm, fails=normed_value, breaks="mean and variance cover all rows of the batch")
def normed_locally(x, *, mesh):
    """Each device normalized its rows by the mean and variance of these rows only. Use the mean and variance of the whole batch."""
    return _mapped(lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + EPS), x, mesh)


@exercise.misconception(of=batch_norm, fails=normed_value, breaks="mean and variance cover all rows of the batch")
def normed_by_mean_of_variances(x, *, mesh):
    """You took the mean of the devices' variances. This mean leaves out the differences between the devices' means. Add up the squares, and subtract the square of the mean at the end."""

    def local(x):
        mean, variance = jax.lax.pmean(jnp.stack([x.mean(0), x.var(0)]), "dp")
        return (x - mean) / jnp.sqrt(variance + EPS)

    return _mapped(local, x, mesh)


@exercise.misconception(of=batch_norm, fails=normed_value, breaks="mean and variance cover all rows of the batch")
def normed_by_local_count(x, *, mesh):
    """You divided sums over all rows by the number of a device's own rows. Divide by the number of all rows."""

    def local(x):
        mean, square = jax.lax.psum(jnp.stack([x.sum(0), (x**2).sum(0)]), "dp") / x.shape[0]
        return (x - mean) / jnp.sqrt(jnp.abs(square - mean**2) + EPS)

    return _mapped(local, x, mesh)


@exercise.misconception(of=batch_norm, fails=normed_value, breaks="The variance is the mean of squared deviations")
def normed_unbiased(x, *, mesh):
    """You divided by the number of rows minus 1. The variance is the mean of the squared deviations over all rows."""
    rows = x.shape[0]

    def local(x):
        mean, square = jax.lax.psum(jnp.stack([x.sum(0), (x**2).sum(0)]), "dp") / rows
        return (x - mean) / jnp.sqrt((square - mean**2) * rows / (rows - 1) + EPS)

    return _mapped(local, x, mesh)


@exercise.misconception(of=batch_norm, fails=normed_value, breaks="mean and variance cover all rows of the batch")
def normed_by_two_means(x, *, mesh):
    """You subtracted the square of the mean of a device's own rows. Subtract the square of the mean of all rows."""

    def local(x):
        mean, square = jax.lax.pmean(jnp.stack([x.mean(0), (x**2).mean(0)]), "dp")
        return (x - mean) / jnp.sqrt(square - x.mean(0) ** 2 + EPS)

    return _mapped(local, x, mesh)


@exercise.misconception(of=batch_norm, fails=normed_value, breaks="of each column over all rows of the batch")
def normed_over_all_columns(x, *, mesh):
    """You took one mean and one variance for all columns. Each column has its own."""

    def local(x):
        mean, square = jax.lax.pmean(jnp.stack([x.mean(), (x**2).mean()]), "dp")
        return (x - mean) / jnp.sqrt(square - mean**2 + EPS)

    return _mapped(local, x, mesh)


@exercise.misconception(of=batch_norm, fails=normed_value, breaks="√(variance + `EPS`)")
def normed_with_eps_outside(x, *, mesh):
    """You added EPS outside the root. Use sqrt(variance + EPS)."""
    rows = x.shape[0]

    def local(x):
        mean, square = jax.lax.psum(jnp.stack([x.sum(0), (x**2).sum(0)]), "dp") / rows
        return (x - mean) / (jnp.sqrt(square - mean**2) + EPS)

    return _mapped(local, x, mesh)


@exercise.misconception(of=batch_norm, fails=normed_value, breaks="The variance is the mean of squared deviations")
def normed_without_the_mean(x, *, mesh):
    """You took the mean of squares as the variance. Subtract the square of the mean."""
    rows = x.shape[0]

    def local(x):
        mean, square = jax.lax.psum(jnp.stack([x.sum(0), (x**2).sum(0)]), "dp") / rows
        return (x - mean) / jnp.sqrt(square + EPS)

    return _mapped(local, x, mesh)


@exercise.misconception(of=batch_norm, fails=normed_gradient, breaks="goes through mean and variance, too")
def normed_by_constants(x, *, mesh):
    """You stopped the gradient at mean and variance. Every row changes mean and variance, and so changes the result of every other row."""
    rows = x.shape[0]

    def local(x):
        sums = jax.lax.psum(jax.lax.stop_gradient(jnp.stack([x.sum(0), (x**2).sum(0)])), "dp")
        mean, square = sums / rows
        return (x - mean) / jnp.sqrt(square - mean**2 + EPS)

    return _mapped(local, x, mesh)


@exercise.misconception(of=batch_norm, fails=normed_gradient, breaks="each row affects every other")
def normed_with_local_gradient(x, *, mesh):
    """Your cotangents of mean and variance cover only one device's rows. Add these cotangents up over dp, as you added the sums."""
    rows = x.shape[0]

    def local(x):
        own = jnp.stack([x.sum(0), (x**2).sum(0)])
        mean, square = (own + jax.lax.stop_gradient(jax.lax.psum(own, "dp") - own)) / rows
        return (x - mean) / jnp.sqrt(square - mean**2 + EPS)

    return _mapped(local, x, mesh)


@exercise.misconception(of=batch_norm, fails=normed_back_traffic, breaks="no more bytes over dp than the forward pass")
def normed_by_the_paper(x, *, mesh):
    """Your backward pass adds up three sums over the batch. The deviations from the mean add up to zero, so two sums are enough: the sum of dy, and the sum of dy times the result."""
    rows = x.shape[0]

    def forward(x):
        mean, square = jax.lax.psum(jnp.stack([x.sum(0), (x**2).sum(0)]), "dp") / rows
        centred, width = x - mean, jnp.sqrt(square - mean**2 + EPS)
        return centred / width, (centred, width)

    def backward(kept, back):
        centred, width = kept
        own = jnp.stack([(back * centred).sum(0), -back.sum(0) / width, -2 * centred.sum(0)])
        along, of_mean, deviations = jax.lax.psum(own, "dp")
        of_variance = -along / (2 * width**3)
        return (back / width + (2 * centred * of_variance + of_mean + of_variance * deviations / rows) / rows,)

    norm = jax.custom_vjp(lambda x: forward(x)[0])
    norm.defvjp(forward, backward)
    return _mapped(norm, x, mesh, check_vma=False)


@exercise.misconception(of=batch_norm, fails=normed_traffic, breaks="no all-reduce waits for another")
def normed_in_two_passes(x, *, mesh):
    """Your second all-reduce waits for the first, because the deviations need the mean. The sums of x and of x**2 are independent: send them together."""

    def local(x):
        mean = jax.lax.pmean(x.mean(0), "dp")
        return (x - mean) / jnp.sqrt(jax.lax.pmean(((x - mean) ** 2).mean(0), "dp") + EPS)

    return _mapped(local, x, mesh)


@exercise.misconception(of=batch_norm, fails=normed_traffic, breaks="of 2D numbers in all")
def normed_by_three_sums(x, *, mesh):
    """You reduce three numbers for each column: mean, variance and square of the mean. Add the last two before you send
    them."""

    def local(x):
        mean, variance, square = jax.lax.pmean(jnp.stack([x.mean(0), x.var(0), x.mean(0) ** 2]), "dp")
        return (x - mean) / jnp.sqrt(variance + square - mean**2 + EPS)

    return _mapped(local, x, mesh)


@exercise.misconception(of=batch_norm, fails=[normed_spec, normed_traffic], breaks="the result is laid out as")
def normed_whole(x, *, mesh):
    """You gathered the result, so every device has all rows. Keep each device's own rows."""
    return jax.jit(lambda x: x, out_shardings=jax.NamedSharding(mesh, P()))(batch_norm(x, mesh=mesh))


@exercise.misconception(of=batch_norm, fails=normed_traffic, breaks="only all-reduces")
def normed_gathered(x, *, mesh):
    """You gathered all rows on every device. Two sums of each column are enough."""

    def local(x):
        whole = jax.lax.all_gather(x, "dp", tiled=True)
        return (x - whole.mean(0)) / jnp.sqrt(whole.var(0) + EPS)

    return _mapped(local, x, mesh)


@exercise.misconception(of=batch_norm, fails=normed_traffic, breaks="no all-reduce waits for another")
def normed_by_compiler(x, *, mesh):
    """You left the sums to the compiler, and its second all-reduce waits for the first. Write the sums yourself, with jax.shard_map."""
    return jax.lax.with_sharding_constraint(
        (x - x.mean(0)) / jnp.sqrt(x.var(0) + EPS), jax.NamedSharding(mesh, P("dp"))
    )


@exercise.misconception(of=two_pass_cost)
def two_pass_forwards(L, X, D):
    """Your answer is half of the right one. There are two possible causes. You may have left out the backward pass: in this pass, too, each layer of the second program waits for one all-reduce more than in the first program. Or you may have counted only one of the two phases of each all-reduce."""
    return L * 2 * latency(X)


@exercise.misconception(of=two_pass_cost)
def two_pass_in_all(L, X, D):
    """Your answer is the time of all four all-reduces of each layer. The question asks for the extra time: the first program also needs two of the four."""
    return L * 4 * 2 * latency(X)


@exercise.misconception(of=two_pass_cost)
def two_pass_one_way(L, X, D):
    """You counted the hops of a one-way ring. A ring uses both directions: X/2 hops reach every device."""
    return L * 2 * 2 * latency(X, "one_way_ring")


@exercise.misconception(of=two_pass_cost)
def two_pass_by_bytes(L, X, D):
    """You counted bytes. Both programs send equally many bytes, and the bytes take far less time than the hops."""
    return L * 2 * all_reduce_time(4 * D, X, "v5p")


exercise.scenario(
    two_pass_cost, lambda L, X, D: Scenario(chip="v5p", rings=(X,), mesh={"dp": X}, least=L * 2 * 2 * latency(X))
)
