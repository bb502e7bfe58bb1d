import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

def total(a, *, mesh):
    x = a[0, 0]
    step = jax.jit(lambda x: x * 1.5 - x)
    for _ in range(15):
        step = (lambda f: jax.jit(lambda x: f(f(x))))(step)
    return a.sum(0) * step(x)
