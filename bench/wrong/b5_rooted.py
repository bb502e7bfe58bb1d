import jax
import jax.numpy as jnp


def no_mask(a, *, root):
    """rooted_broadcast: broadcast_the_sum"""
    return jax.lax.psum(a, axis_name="x")


def gathers_then_picks(a, *, root):
    """rooted_broadcast: broadcast_by_gather"""
    return jnp.take(jax.lax.all_gather(a, "x"), root, axis=0)


def device_0(a, *, root):
    """rooted_broadcast: broadcast_from_0"""
    return jax.lax.psum(a * (jax.lax.axis_index("x") == 0), "x")


def everyone_gathers(a, *, root):
    """rooted_gather: gather_on_every_device"""
    return jax.lax.all_gather(a, "x", axis=1, tiled=True)


def everyone_reduces(a, *, root):
    """rooted_reduce: reduce_on_every_device"""
    return jnp.sum(jnp.stack([jax.lax.psum(a, "x")]), axis=0)


def scatters_sums(a, *, root):
    """rooted_scatter: scatter_the_sum"""
    return jax.lax.psum_scatter(a, "x", tiled=True)


def root_keeps_one(I, K, X):
    """rooted_scatter_bytes: rooted_scatter_of_root"""
    return 4 * I * K * (X - 1) / X


def one_array(I, K, X):
    """rooted_scatter_bytes: none"""
    return 4 * I * K
