import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from b4_halo import halo


def one_neighbour(N, D, X, w):
    """halo_bytes: halo_one_side"""
    return 4 * w * D


def every_device(N, D, X, w):
    """halo_bytes: halo_of_all_devices"""
    return 2 * w * D * 4 * X


def rows_of_the_block(N, D, X, w):
    """halo_bytes: halo_of_blocks"""
    return 2 * 4 * D * N / X


def width_forgotten(N, D, X, w):
    """halo_bytes: halo_of_one_row"""
    return 2 * 4 * D


def neighbours_swapped(a, *, w):
    """halo: halo_on_the_wrong_side"""
    n = jax.lax.axis_size("x")
    up = [(i, (i + 1) % n) for i in range(n)]
    down = [(t, s) for s, t in up]
    from_left = jax.lax.ppermute(a[-w:], "x", up)
    from_right = jax.lax.ppermute(a[:w], "x", down)
    return jnp.concatenate([from_right, a, from_left])


def ends_of_the_wrong_side(a, *, w):
    """halo: halo_of_the_far_ends"""
    n = jax.lax.axis_size("x")
    from_left = jax.lax.ppermute(a[:w], "x", [(i, (i + 1) % n) for i in range(n)])
    from_right = jax.lax.ppermute(a[-w:], "x", [(i, (i - 1) % n) for i in range(n)])
    return jnp.concatenate([from_left, a, from_right])


def whole_blocks_sent(a, *, w):
    """halo: halo_of_whole_blocks"""
    n = jax.lax.axis_size("x")
    left = jax.lax.ppermute(a, "x", [(i, (i + 1) % n) for i in range(n)])
    right = jax.lax.ppermute(a, "x", [(i, (i - 1) % n) for i in range(n)])
    return jnp.concatenate([left[left.shape[0] - w :], a, right[:w]])


def no_wrap_line(a, *, w):
    """halo: halo_zeros_at_the_wrap"""
    n = jax.lax.axis_size("x")
    left = jax.lax.ppermute(a[-w:], "x", [(i, i + 1) for i in range(n - 1)])
    right = jax.lax.ppermute(a[:w], "x", [(i + 1, i) for i in range(n - 1)])
    return jnp.concatenate([left, a, right])


def as_numpy_convolves(a, *, mesh, weights):
    """stencil: stencil_mirrored"""
    w = len(weights) // 2

    def local(a):
        wide = halo(a, w=w)
        return jnp.convolve(wide, jnp.array(weights, a.dtype), mode="valid")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(a)


def each_block_alone(a, *, mesh, weights):
    """stencil: stencil_of_blocks"""
    w = len(weights) // 2

    def local(a):
        wide = jnp.concatenate([a[-w:], a, a[:w]])
        return sum(c * wide[k : k + a.shape[0]] for k, c in enumerate(weights))

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


def rolled_globally(a, *, mesh, weights):
    """stencil: stencil_of_rolls"""
    w = len(weights) // 2
    return sum(c * jnp.roll(a, w - k) for k, c in enumerate(weights))


def zeros_at_the_ends(a, *, mesh, weights):
    """stencil: stencil_between_zeros"""
    w = len(weights) // 2

    def local(a):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        wide = halo(a, w=w)
        at = jnp.arange(wide.shape[0])
        off = ((me == 0) & (at < w)) | ((me == n - 1) & (at >= w + a.shape[0]))
        wide = jnp.where(off, 0, wide)
        return sum(c * wide[k : k + a.shape[0]] for k, c in enumerate(weights))

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(a)
