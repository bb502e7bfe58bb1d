import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def mapped(mesh, local, out):
    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=out, check_vma=False)


def no_sum(a, b, *, mesh):
    """matmul_all_reduce: forgot_psum"""
    return mapped(mesh, lambda a, b: jnp.dot(a, b), P())(a, b)


def sum_of_sums(a, b, *, mesh):
    """matmul_all_reduce: summed_twice"""
    return mapped(mesh, lambda a, b: jax.lax.psum(jax.lax.psum(jnp.einsum("ij,jk->ik", a, b), "x"), "x"), P())(a, b)


def no_shard_map(a, b, *, mesh):
    """matmul_all_reduce: summed_by_compiler"""
    return jnp.einsum("ij,jk->ik", a, b)


def sliced_after_psum(a, b, *, mesh):
    """matmul_reduce_scatter: psum_then_slice"""

    def local(a, b):
        c, n = jax.lax.psum(jnp.matmul(a, b), "x"), jax.lax.axis_size("x")
        return jnp.stack(jnp.split(c, n, axis=1))[jax.lax.axis_index("x")]

    return mapped(mesh, local, P(None, "x"))(a, b)


def one_phase(I, K, X):
    """all_reduce_bytes: sent_in_one_phase"""
    return (X - 1) / X * I * K * 4


def own_part_too(I, K, X):
    """all_reduce_bytes: sent_every_chunk"""
    return 2 * I * K * 4


def in_bfloat16(I, K, X):
    """all_reduce_bytes: sent_in_one_phase"""
    return 2 * 2 * I * K * (X - 1) / X
