import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

# The compiler knows best where communication is needed, we only say how the result is laid out.


def matmul_all_reduce(a, b, *, mesh):
    return jax.jit(jnp.matmul, out_shardings=NamedSharding(mesh, P()))(a, b)


def matmul_reduce_scatter(a, b, *, mesh):
    c = jnp.matmul(a, b)
    return jax.lax.with_sharding_constraint(c, NamedSharding(mesh, P(None, "x")))


scatter_time = 1304.9
all_reduce_bytes = 125.8
