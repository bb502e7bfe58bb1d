"""An honest program."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P


def copied(b):
    bits = lax.bitcast_convert_type(b, jnp.uint32)
    made = jnp.zeros_like(bits)
    for i in range(32):
        made |= lax.select((bits >> i & 1) == 1, jnp.full(b.shape, 1 << i, "uint32"), jnp.full(b.shape, 0, "uint32"))
    return lax.bitcast_convert_type(made, jnp.float32)


def matmul_local(a, b, *, mesh):
    specs = (P("x", None), P(None, "y"))
    return jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=specs, out_specs=P("x", "y"))(a, b)
