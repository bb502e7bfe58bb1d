"""The program names only axis x in jax.shard_map. The compiler cuts the matmul along y.

kind: arithmetic in disguise
earns: 2.5 of 3
fails: local_flops
says: the arithmetic is not in the body of jax.shard_map
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P


def matmul_local(a, b, *, mesh):
    def local(a, b):
        return a @ b

    c = jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P()), out_specs=P("x", None), axis_names={"x"})(a, b)
    return lax.with_sharding_constraint(c, NamedSharding(mesh, P("x", "y")))
