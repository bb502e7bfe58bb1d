import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

def total(a, *, mesh):
    x = a[0, 0]
    for i in range(10**6):
        x = x * 1.0001 + i
    return a.sum(0) * x
