import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from b6_vmap import centre


def all_examples(B, X, Y):
    """looped_latency: looped_latency_of_whole_batch"""
    return B * 2 * (X // 2) * 1e-6


def one_phase(B, X, Y):
    """looped_latency: looped_latency_of_gathers"""
    return B / Y * (X // 2) * 1e-6


def one_way_hops(B, X, Y):
    """looped_latency: looped_latency_one_way"""
    return B / Y * 2 * (X - 1) * 1e-6


def over_y(B, X, Y):
    """looped_latency: looped_latency_over_y"""
    return B / X * 2 * (Y // 2) * 1e-6


def plain_vmap_with_constraint(a, *, mesh):
    """centre_batch: mapped_and_cut_again"""
    out = jax.vmap(lambda one: centre(one, mesh=mesh))(a)
    return jax.lax.with_sharding_constraint(out, jax.NamedSharding(mesh, P("y", "x")))


def loop_over_own_examples(a, *, mesh):
    """centre_batch: looped_over_block"""

    def local(block):
        return jnp.stack([one - jax.lax.pmean(jnp.mean(one, axis=0), "x") for one in block])

    return jax.shard_map(local, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))(a)


def mean_over_both_axes(a, *, mesh):
    """centre_batch: centred_over_both_axes"""

    def local(block):
        return block - jax.lax.pmean(block.mean(1, keepdims=True), ("x", "y"))

    return jax.shard_map(local, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))(a)


def mean_of_the_batch(a, *, mesh):
    """centre_batch: centred_together"""

    def local(block):
        return block - jax.lax.pmean(block.mean((0, 1)), "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))(a)


def mean_of_own_rows(a, *, mesh):
    """centre_batch: centred_by_own_rows"""

    def local(block):
        return block - block.mean(axis=1, keepdims=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))(a)


def mean_of_rows(a, *, mesh):
    """centre_batch: centred_rows"""

    def local(block):
        return block - block.mean(axis=2, keepdims=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))(a)


def rows_gathered(a, *, mesh):
    """centre_batch: rows_gathered"""

    def local(block):
        whole = jax.lax.all_gather(block, "x", axis=1, tiled=True)
        return block - whole.mean(1, keepdims=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))(a)
