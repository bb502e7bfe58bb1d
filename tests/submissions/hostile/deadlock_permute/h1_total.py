import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def total(a, *, mesh):
    def local(a):
        first = jax.lax.axis_index("x") == 0
        return jax.lax.cond(first, lambda v: v, lambda v: jax.lax.psum(v, "x"), a.sum(0))

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
