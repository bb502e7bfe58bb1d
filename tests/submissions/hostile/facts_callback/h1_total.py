import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


import numpy as np


def total(a, *, mesh):
    return jax.pure_callback(lambda a: np.asarray(a).sum(0), jax.ShapeDtypeStruct(a.shape[1:], a.dtype), a)
