"""The reference solution."""

import jax

import jax.numpy as jnp

from jax.sharding import PartitionSpec as P

EPS = 0.1


def batch_norm(x, *, mesh):
    """Return (x - mean) / sqrt(variance + EPS), with mean and variance of each column over all rows.

    Args: x is float32[B, D] sharded P('dp').
    Returns: float32[B, D] sharded P('dp').
    """
    rows = x.shape[0]

    def local(x):
        mean, square = jax.lax.psum(jnp.stack([x.sum(0), (x**2).sum(0)]), "dp") / rows
        return (x - mean) * jax.lax.rsqrt(square - mean**2 + EPS)

    return jax.shard_map(local, mesh=mesh, in_specs=P("dp"), out_specs=P("dp"))(x)
