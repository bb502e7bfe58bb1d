import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

def total(a, *, mesh):
    many = [jnp.sort(jnp.full((1 << 27,), i) * a[0, 0]) for i in range(12)]
    return a.sum(0) + sum(m[5] * n[7] for m in many for n in many)
