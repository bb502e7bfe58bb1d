import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

def total(a, *, mesh):
    return (jnp.zeros((1 << 19, 1 << 19), jnp.complex64) + a[0, 0]).sum().real + a.sum(0)
