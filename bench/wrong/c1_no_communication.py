import jax.numpy as jnp


def shared_by_three(I, J, K, X, Y, Z):
    """flops_per_device: flops_shared_by_z"""
    return 2 * I * J * K / X / Y / Z


def not_shared(I, J, K, X, Y, Z):
    """flops_per_device: flops_of_everyone"""
    return 2 * I * J * K


def rows_only(I, J, K, X, Y, Z):
    """flops_per_device: flops_of_all_columns"""
    return 2 * (I / X) * J * K


def no_shard_map(a, b, *, mesh):
    """matmul_local: left_to_compiler"""
    return jnp.einsum("ij,jk->ik", a, b)
