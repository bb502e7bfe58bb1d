import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.hardware import CHIPS


def gathers_b(chip, I, J, K, X):
    """gather_first_time: gather_time_of_b"""
    return 2 * J * K / CHIPS[chip].ici_both


def one_shard(chip, I, J, K, X):
    """gather_first_time: gather_time_of_shard"""
    return 2 * I / X * J / CHIPS[chip].ici_both


def one_direction(chip, I, J, K, X):
    """gather_first_time: gather_time_one_way"""
    return 2 * I * J / CHIPS[chip].ici


def as_a_gather(chip, I, J, K, X):
    """slice_first_time: reduce_time_once"""
    return 2 * I * K / CHIPS[chip].ici_both


def _mapped(local, mesh):
    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P(), check_vma=False)


def _own_rows(a, b):
    n = a.shape[1]
    return jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * n, n)


def matmul_reduced_instead(a, b, *, mesh):
    """matmul_gather_first: reduced_after_all"""
    return _mapped(lambda a, b: jax.lax.psum(a @ _own_rows(a, b), "x"), mesh)(a, b)


def partial_matmuls_gathered(a, b, *, mesh):
    """matmul_gather_first: matmuls_gathered"""
    return _mapped(lambda a, b: jax.lax.all_gather(a @ _own_rows(a, b), "x").sum(0), mesh)(a, b)


def gathered_in_wrong_order(a, b, *, mesh):
    """matmul_gather_first: gathered_and_reshaped"""

    def local(a, b):
        whole = jax.lax.all_gather(a, "x", axis=2).reshape(a.shape[0], -1)
        return whole @ b

    return _mapped(local, mesh)(a, b)


def compiler_gathers(a, b, *, mesh):
    """matmul_gather_first: gathered_by_compiler"""
    return jax.lax.with_sharding_constraint(jnp.einsum("ij,jk->ik", a, b), jax.NamedSharding(mesh, P()))


def first_rows_for_all(a, b, *, mesh):
    """matmul_slice_first: first_rows_on_every_device"""
    return _mapped(lambda a, b: jax.lax.psum(jnp.einsum("ij,jk->ik", a, b[: a.shape[1]]), "x"), mesh)(a, b)


def averaged_matmuls(a, b, *, mesh):
    """matmul_slice_first: partial_sums_averaged"""
    return _mapped(lambda a, b: jax.lax.pmean(a @ _own_rows(a, b), "x"), mesh)(a, b)


def padded_with_zeros(a, b, *, mesh):
    """matmul_slice_first: padded_with_zeros"""

    def local(a, b):
        whole = jnp.zeros((a.shape[0], b.shape[0]), a.dtype)
        whole = jax.lax.dynamic_update_slice_in_dim(whole, a, jax.lax.axis_index("x") * a.shape[1], axis=1)
        return jax.lax.psum(whole @ b, "x")

    return _mapped(local, mesh)(a, b)


def never_summed(a, b, *, mesh):
    """matmul_slice_first: partial_sums_returned"""
    return _mapped(lambda a, b: a @ _own_rows(a, b), mesh)(a, b)


def scattered_and_gathered(a, b, *, mesh):
    """matmul_slice_first: scattered_and_gathered"""

    def local(a, b):
        part = jax.lax.psum_scatter(a @ _own_rows(a, b), "x", scatter_dimension=1, tiled=True)
        return jax.lax.all_gather(part, "x", axis=1, tiled=True)

    return _mapped(local, mesh)(a, b)
