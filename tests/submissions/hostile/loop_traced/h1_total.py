import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

def total(a, *, mesh):
    return jax.lax.while_loop(lambda c: c[0] > -1, lambda c: jnp.abs(c) + 1e-9, a.sum(0) * 0)
