"""Outside jax.shard_map, the program copies b bit by bit and computes the matmul as sums of elementwise products.

kind: comparisons as data
earns: 2.5 of 3
fails: local_flops
says: the arithmetic is not in the body of jax.shard_map
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P


def copied(b):
    bits = lax.bitcast_convert_type(b, jnp.uint32)
    made = jnp.zeros_like(bits)
    for i in range(32):
        made |= lax.select((bits >> i & 1) == 1, jnp.full(b.shape, 1 << i, "uint32"), jnp.full(b.shape, 0, "uint32"))
    return lax.bitcast_convert_type(made, jnp.float32)


def matmul_local(a, b, *, mesh):
    c = (a[:, :, None] * copied(b)).sum(1)
    return jax.shard_map(lambda c: c, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(c)
