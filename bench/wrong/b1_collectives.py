import jax
import jax.numpy as jnp


def stacked(a, *, dim):
    """all_gather_body: gathered_untiled"""
    return jax.lax.all_gather(a, "x", axis=dim, tiled=False)


def always_rows(a, *, dim):
    """all_gather_body: gathered_rows_only"""
    return jax.lax.all_gather(a, axis_name="x", axis=0, tiled=True)


def mean(a):
    """all_reduce_body: averaged"""
    return jax.lax.psum(a, "x") / jax.lax.axis_size("x")


def gathers_and_adds(a):
    """all_reduce_body: gathered_and_added"""
    return jnp.sum(jax.lax.all_gather(a, "x"), axis=0)


def sums_then_cuts(a):
    """reduce_scatter_body: reduced_then_sliced"""
    width = a.shape[1] // jax.lax.axis_size("x")
    whole = jax.lax.psum(a, "x")
    return jax.lax.dynamic_slice(whole, (0, jax.lax.axis_index("x") * width), (a.shape[0], width))


def scatters_rows(a):
    """reduce_scatter_body: scattered_rows"""
    return jax.lax.psum_scatter(a, "x", scatter_dimension=0, tiled=True)


def swapped(a):
    """all_to_all_body: traded_backwards"""
    return jax.lax.all_to_all(a, "x", 0, 1, tiled=True)
