import jax
import jax.numpy as jnp

from grader.hardware import CHIPS


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


def gather_time(chip, I, J, X):
    """all_to_all_on_ring: all_to_all_as_all_gather"""
    return 2 * I * J / CHIPS[chip].ici_both


def quarter_one_way(chip, I, J, X):
    """all_to_all_on_ring: all_to_all_one_way"""
    return 2 * I * J / 4 / CHIPS[chip].ici


def shard_over_w(chip, I, J, X):
    """all_to_all_on_ring: all_to_all_of_a_shard"""
    return 2 * I * J / X / CHIPS[chip].ici_both


def float32_bytes(chip, I, J, X):
    """all_to_all_on_ring: all_to_all_one_way"""
    return 4 * I * J / 4 / CHIPS[chip].ici_both


def rings_by_hand(a, *, dim):
    """all_gather_body: gathered_hop_by_hop"""
    n = jax.lax.axis_size("x")
    me = jax.lax.axis_index("x")
    out = jnp.zeros([s * (n if d == dim else 1) for d, s in enumerate(a.shape)], a.dtype)
    for k in range(n):
        out = jax.lax.dynamic_update_slice_in_dim(out, a, (me - k) % n * a.shape[dim], dim)
        a = jax.lax.ppermute(a, "x", [(i, (i + 1) % n) for i in range(n)])
    return out


def scattered_then_gathered(a):
    """all_reduce_body: scattered_then_gathered"""
    mine = jax.lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True)
    return jax.lax.all_gather(mine, "x", axis=1, tiled=True)


def own_columns_unsummed(a):
    """reduce_scatter_body: columns_of_own_part"""
    n = jax.lax.axis_size("x")
    return (
        jnp.split(a, n, axis=1)[0]
        if n == 1
        else jax.lax.dynamic_index_in_dim(jnp.stack(jnp.split(a, n, axis=1)), jax.lax.axis_index("x"), keepdims=False)
    )


def gathered_and_cut(a):
    """all_to_all_body: gathered_then_sliced"""
    n = jax.lax.axis_size("x")
    whole = jax.lax.all_gather(a, "x", tiled=True)
    width = a.shape[1] // n
    return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * width, width, axis=1)
