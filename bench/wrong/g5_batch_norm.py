import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from g5_batch_norm import EPS


def mapped(local, mesh, x):
    return jax.shard_map(local, mesh=mesh, in_specs=P("dp"), out_specs=P("dp"))(x)


def own_statistics(x, *, mesh):
    """batch_norm: normed_locally
    Statement: mean and variance of the device's own rows."""
    return mapped(lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + EPS), mesh, x)


def mean_of_variances(x, *, mesh):
    """batch_norm: normed_by_mean_of_variances
    Statement: the mean of the devices' variances."""

    def local(x):
        mean, variance = jax.lax.pmean((jnp.mean(x, 0), jnp.var(x, 0)), "dp")
        return (x - mean) / jnp.sqrt(variance + EPS)

    return mapped(local, mesh, x)


def around_the_mean(x, *, mesh):
    """batch_norm: normed_in_two_passes
    Statement: the second all-reduce waits for the first."""

    def local(x):
        centred = x - jax.lax.pmean(x.mean(0), "dp")
        return centred / jnp.sqrt(jax.lax.pmean((centred**2).mean(0), "dp") + EPS)

    return mapped(local, mesh, x)


def statistics_are_constants(x, *, mesh):
    """batch_norm: normed_by_constants
    Statement: no gradient goes through mean and variance."""

    def local(x):
        mean, square = jax.lax.pmean((x.mean(0), (x**2).mean(0)), "dp")
        mean, variance = jax.lax.stop_gradient((mean, square - mean**2))
        return (x - mean) / jnp.sqrt(variance + EPS)

    return mapped(local, mesh, x)


def divided_by_one_less(x, *, mesh):
    """batch_norm: normed_unbiased
    Statement: the variance is divided by B - 1."""

    def local(x):
        n = jax.lax.axis_size("dp") * len(x)
        total, squares = jax.lax.psum((x.sum(0), (x**2).sum(0)), "dp")
        return (x - total / n) / jnp.sqrt((squares - total**2 / n) / (n - 1) + EPS)

    return mapped(local, mesh, x)


def gathered_rows(x, *, mesh):
    """batch_norm: normed_gathered
    Statement: all rows are gathered on every device."""

    def local(x):
        rows = jax.lax.all_gather(x, "dp", tiled=True)
        return (x - rows.mean(0)) / jnp.sqrt(rows.var(0) + EPS)

    return mapped(local, mesh, x)


def eps_outside(x, *, mesh):
    """batch_norm: normed_with_eps_outside
    Statement: EPS is added to the standard deviation, not to the variance."""

    def local(x):
        mean, square = jax.lax.pmean((x.mean(0), (x * x).mean(0)), "dp")
        return (x - mean) / (jnp.sqrt(square - mean * mean) + EPS)

    return mapped(local, mesh, x)


def own_mean_in_the_variance(x, *, mesh):
    """batch_norm: normed_by_two_means"""
    rows = x.shape[0]

    def local(x):
        sums = jax.lax.psum(jnp.stack([jnp.einsum("bd->d", x), jnp.einsum("bd,bd->d", x, x)]), "dp") / rows
        own = x.mean(0)
        return (x - sums[0]) / jnp.sqrt(sums[1] - own**2 + EPS)

    return jax.shard_map(local, mesh=mesh, in_specs=P("dp"), out_specs=P("dp"))(x)


def one_mean_for_all_columns(x, *, mesh):
    """batch_norm: normed_over_all_columns"""

    def local(x):
        mean = jax.lax.pmean(jnp.mean(x), "dp")
        square = jax.lax.pmean(jnp.mean(x * x), "dp")
        return (x - mean) * jax.lax.rsqrt(square - mean**2 + EPS)

    return jax.shard_map(local, mesh=mesh, in_specs=P("dp"), out_specs=P("dp"))(x)


def sums_not_divided(x, *, mesh):
    """batch_norm: normed_by_local_count"""

    def local(x):
        both = jax.lax.psum(jnp.concatenate([x.sum(0), (x**2).sum(0)]), "dp") / len(x)
        mean, square = jnp.split(both, 2)
        return (x - mean) / jnp.sqrt(jnp.abs(square - mean**2) + EPS)

    return jax.shard_map(local, mesh=mesh, in_specs=P("dp"), out_specs=P("dp"))(x)


def _normed(mesh, statistics):
    def body(x):
        mean, var = statistics(x)
        return (x - mean) * jax.lax.rsqrt(var + EPS)

    return jax.shard_map(body, mesh=mesh, in_specs=P("dp"), out_specs=P("dp"))


def every_device_for_itself(x, *, mesh):
    """batch_norm: normed_locally"""
    return _normed(mesh, lambda x: (x.mean(0), x.var(0)))(x)


def variances_averaged(x, *, mesh):
    """batch_norm: normed_by_mean_of_variances"""
    return _normed(mesh, lambda x: jax.lax.pmean((x.mean(axis=0), x.var(axis=0)), "dp"))(x)


def deviations_after_the_mean(x, *, mesh):
    """batch_norm: normed_in_two_passes"""

    def statistics(x):
        mean = jax.lax.pmean(x.mean(0), "dp")
        return mean, jax.lax.pmean(((x - mean) ** 2).mean(0), "dp")

    return _normed(mesh, statistics)(x)


def statistics_are_constants_again(x, *, mesh):
    """batch_norm: normed_by_constants"""

    def statistics(x):
        m, s = jax.lax.pmean((x.mean(0), (x * x).mean(0)), "dp")
        return jax.lax.stop_gradient(m), jax.lax.stop_gradient(s - m * m)

    return _normed(mesh, statistics)(x)


def divides_by_one_row_less(x, *, mesh):
    """batch_norm: normed_unbiased"""

    def statistics(x):
        rows = x.shape[0] * jax.lax.axis_size("dp")
        m, s = jax.lax.pmean((x.mean(0), (x * x).mean(0)), "dp")
        return m, (s - m * m) * rows / (rows - 1)

    return _normed(mesh, statistics)(x)


def batch_brought_together(x, *, mesh):
    """batch_norm: normed_gathered"""

    def statistics(x):
        every = jax.lax.all_gather(x, "dp", tiled=True)
        return every.mean(0), every.var(0)

    return _normed(mesh, statistics)(x)


def extra_time_forward_only(L, X, D):
    """two_pass_cost: two_pass_forwards"""
    return L * X * 1e-6


def hops_all_the_way_round(L, X, D):
    """two_pass_cost: two_pass_one_way"""
    return L * 2 * 2 * (X - 1) * 1e-6


def one_phase_of_each(L, X, D):
    """two_pass_cost: two_pass_forwards"""
    return L * 2 * X / 2 * 1e-6
