import jax
from jax.sharding import PartitionSpec as P
import jax.numpy as jnp


def total(a, *, mesh):
    return jnp.zeros(a.shape[1:], jnp.int4 if a.shape[0] == 8 else jnp.uint2)
