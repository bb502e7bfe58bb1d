import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def rolls_all_columns(S, D, X, Y, shift):
    """global_roll_bytes: roll_whole_rows"""
    return shift * D * 4


def rolls_the_block(S, D, X, Y, shift):
    """global_roll_bytes: roll_whole_block"""
    return S * D * 4 / X / Y


def all_devices(S, D, X, Y, shift):
    """global_roll_bytes: roll_of_all_devices"""
    return 4 * shift * D * X


def bfloat16(S, D, X, Y, shift):
    """global_roll_bytes: roll_two_bytes"""
    return 2 * shift * D / Y


def one_row(S, D, X, Y, shift):
    """global_roll_bytes: roll_one_row"""
    return 4 * D / Y


def mean_of_the_whole_array(a, *, mesh):
    """shard_mean: mean_of_everything"""

    def local(a):
        return jax.lax.pmean(jax.lax.pmean(jnp.mean(a), "x"), "y").reshape(1, 1)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=False)(a)


def sum_for_mean(a, *, mesh):
    """shard_mean: mean_over_all_elements"""
    count = a.shape[0] * a.shape[1]

    def local(block):
        return jnp.sum(block, keepdims=True) / count

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


def whole_array_rolled(a, *, mesh, shift):
    """shard_roll_diff: rolled_everything"""
    return jax.lax.with_sharding_constraint(jnp.roll(a, shift, 0) - a, jax.NamedSharding(mesh, P("x", "y")))


def block_minus_rolled(a, *, mesh, shift):
    """shard_roll_diff: rolled_and_subtracted_backwards"""

    def local(block):
        moved = jnp.concatenate([block[-shift:], block[:-shift]])
        return block - moved

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


def rolled_upwards(a, *, mesh, shift):
    """shard_roll_diff: rolled_up"""

    def local(block):
        rows = (jnp.arange(block.shape[0]) + shift) % block.shape[0]
        return block[rows] - block

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


def rolled_as_a_flat_list(a, *, mesh, shift):
    """shard_roll_diff: rolled_flat"""
    return jax.shard_map(
        lambda block: jnp.roll(block, shift) - block, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")
    )(a)


def zeros_instead_of_wrapped_rows(a, *, mesh, shift):
    """shard_roll_diff: shifted_with_zeros"""

    def local(block):
        empty = jnp.zeros_like(block[:shift])
        return jnp.concatenate([empty, block[: block.shape[0] - shift]]) - block

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)
