import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


import jax.ffi


def total(a, *, mesh):
    return jax.ffi.ffi_call("xla_ffi_python_cpu_callback", jax.ShapeDtypeStruct(a.shape[1:], a.dtype))(a)
