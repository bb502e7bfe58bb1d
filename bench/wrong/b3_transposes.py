import jax
import jax.numpy as jnp


def summed_then_mine(y):
    """all_gather_t: all_gather_t_all_reduced"""
    n, i = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    return jax.lax.psum(y, "x").reshape(n, -1, y.shape[1])[i]


def own_block_only(y):
    """all_gather_t: all_gather_t_own_rows"""
    n, i = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    return y.reshape(n, y.shape[0] // n, -1)[i]


def averaged_over_copies(y):
    """all_gather_t: all_gather_t_mean"""
    return jax.lax.psum_scatter(y / jax.lax.psum(1, "x"), "x", tiled=True)


def traded_then_added(y):
    """all_gather_t: all_gather_t_by_all_to_all"""
    n = jax.lax.axis_size("x")
    parts = jax.lax.all_to_all(y, "x", 0, 0, tiled=True)
    return parts.reshape(n, y.shape[0] // n, -1).sum(0)


def added_everywhere(y):
    """reduce_scatter_t: reduce_scatter_t_summed"""
    whole = jnp.concatenate([y] * jax.lax.axis_size("x"))
    return jax.lax.psum(whole, "x")


def averaged_cotangent(y):
    """reduce_scatter_t: reduce_scatter_t_mean"""
    return jax.lax.all_gather(y / jax.lax.axis_size("x"), "x", tiled=True)


def stacked_not_joined(y):
    """reduce_scatter_t: reduce_scatter_t_untiled"""
    return jax.lax.all_gather(y, "x")


def passed_through(y):
    """all_reduce_t: all_reduce_t_identity"""
    return y * 1


def averaged(y):
    """all_reduce_t: all_reduce_t_mean"""
    return jax.lax.psum(y, "x") / jax.lax.axis_size("x")


def gathered_and_added(y):
    """all_reduce_t: all_reduce_t_gathered"""
    return jnp.sum(jax.lax.all_gather(y, "x", axis=0), axis=0)


def in_two_phases(y):
    """all_reduce_t: none"""
    part = jax.lax.psum_scatter(y, "x", scatter_dimension=0, tiled=True)
    return jax.lax.all_gather(part, "x", axis=0, tiled=True)


def trade_by_reshape(y):
    """all_to_all_t: all_to_all_t_by_reshape"""
    n = jax.lax.axis_size("x")
    parts = jax.lax.all_to_all(y.reshape(n, y.shape[0] // n, y.shape[1]), "x", 0, 0)
    return parts.reshape(y.shape[0] // n, n * y.shape[1])


def trade_the_same_way(y):
    """all_to_all_t: all_to_all_t_forwards"""
    return jax.lax.all_to_all(y, "x", 1, 0, tiled=True)


def trade_by_gather(y):
    """all_to_all_t: all_to_all_t_gathered"""
    n, i = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    whole = jnp.concatenate(list(jax.lax.all_gather(y, "x")), axis=1)
    return whole.reshape(n, y.shape[0] // n, -1)[i]


def shifted_again(y):
    """shift_t: shift_t_forwards"""
    n = jax.lax.axis_size("x")
    return jax.lax.ppermute(y, "x", [(d, d + 1) for d in range(n) if d + 1 < n])


def shifted_round(y):
    """shift_t: shift_t_round"""
    n = jax.lax.axis_size("x")
    return jax.lax.ppermute(y, "x", [(d, (d - 1) % n) for d in range(n)])


def shifted_round_then_zeroed(y):
    """shift_t: none"""
    n = jax.lax.axis_size("x")
    got = jax.lax.ppermute(y, "x", [(d, (d - 1) % n) for d in range(n)])
    return jnp.where(jax.lax.axis_index("x") == 0, 0, got)
