from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


@partial(jax.jit, static_argnames="mesh")
def matmul_gather_first(a, b, *, mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P(), check_vma=False)
    def go(a, b):
        return jnp.einsum("ij,jk->ik", jax.lax.all_gather(a, "x", axis=1, tiled=True), b)

    return go(a, b)


@partial(jax.jit, static_argnames="mesh")
def matmul_slice_first(a, b, *, mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P())
    def go(a, b):
        return jax.lax.psum(jnp.einsum("ij,jk->ik", a, b), "x")

    return go(a, b)


gather_first_time = 652.4, "us"
slice_first_time = 233.0
