import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from m2_train_step import LIMIT, PARAMS, RATE, ROWS, on_device


def length_of(grads):
    cut = sum(jnp.sum(grads[name] ** 2) for name in ("qkv", "out", "up", "down"))
    whole = jnp.sum(grads["before"] ** 2) + jnp.sum(grads["between"] ** 2)
    return jnp.sqrt(jax.lax.psum(cut, "tp") + whole)


def clipped(p, g, length):
    return p - RATE * g * jnp.minimum(1, LIMIT / length)


def step(params, x, y, mesh, length=length_of, share=None, update=clipped):
    def local(params, x, y):
        def loss_of(params):
            every = share or mesh.shape["dp"] * mesh.shape["sp"]
            return jnp.mean((on_device(params, x) - y) ** 2) / every

        loss, grads = jax.value_and_grad(loss_of)(params)
        n = length(grads)
        return jax.tree.map(lambda p, g: update(p, g, n), params, grads), jax.lax.psum(loss, ("dp", "sp")), n

    specs = {"in_specs": (PARAMS, ROWS, ROWS), "out_specs": (PARAMS, P(), P())}
    return jax.shard_map(local, mesh=mesh, **specs)(params, x, y)


def norm_counts_copies(params, x, y, *, mesh):
    """train_step: norm_counts_copies
    Row: the norm counts copies: the squares of the whole scales are summed over tp, too."""

    def length(grads):
        own = {k: jax.lax.pcast(g, "tp", to="varying") if k in ("before", "between") else g for k, g in grads.items()}
        return jnp.sqrt(jax.lax.psum(sum(jnp.vdot(g, g) for g in own.values()), "tp"))

    return step(params, x, y, mesh, length)


def norms_added(params, x, y, *, mesh):
    """train_step: norms_of_devices_added, norms_of_all_parts_added, norms_of_parameters_added
    Row: norms, not squares, are added over tp."""

    def length(grads):
        whole = jnp.sum(grads["before"] ** 2) + jnp.sum(grads["between"] ** 2)
        cut = sum(jnp.sum(grads[name] ** 2) for name in ("qkv", "out", "up", "down"))
        return jax.lax.psum(jnp.sqrt(cut), "tp") + jnp.sqrt(whole)

    return step(params, x, y, mesh, length)


def own_means_added(params, x, y, *, mesh):
    """train_step: each_device_its_mean
    Row: denominators differ: each device's mean is added, not divided by the number of devices."""
    return step(params, x, y, mesh, share=1)


def divided_by_dp_only(params, x, y, *, mesh):
    """train_step: mean_over_the_batch_only
    Row: denominators differ: the mean counts dp, but not sp."""
    return step(params, x, y, mesh, share=mesh.shape["dp"])


def always_clipped(params, x, y, *, mesh):
    """train_step: always_of_one_length
    Row: the gradient always gets the length LIMIT."""
    return step(params, x, y, mesh, update=lambda p, g, n: p - RATE * g * LIMIT / n)


def never_clipped(params, x, y, *, mesh):
    """train_step: never_clipped
    Row: the gradient is not clipped."""
    return step(params, x, y, mesh, update=lambda p, g, n: p - RATE * g)


def each_array_clipped(params, x, y, *, mesh):
    """train_step: clipped_one_by_one
    Row: each parameter is clipped by the norm of its own gradient, on each device by that of its part."""

    def update(p, g, n):
        return p - RATE * g * jnp.minimum(1, LIMIT / jnp.maximum(jnp.linalg.norm(g.ravel()), 1e-9))

    return step(params, x, y, mesh, update=update)
