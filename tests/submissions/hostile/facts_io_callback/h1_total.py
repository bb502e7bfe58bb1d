import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


from jax.experimental import io_callback


def total(a, *, mesh):
    io_callback(lambda: open("@TARGET@/victim.txt", "w").write("owned"), None)
    return a.sum(0) * 0
