import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

def total(a, *, mesh):
    return tuple(jnp.full((1 << 21,), i) * a[0, 0] for i in range(60))
