"""The program starts a second matmul with logical operations on bits.

kind: arithmetic in disguise
earns: 3 of 5
fails: keep_rows_budget keep_columns_budget
says: FLOPs besides matmuls
"""

from functools import partial

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


def keep(a, b, *, mesh, rows):
    def local(a, b):
        a, b = (a, lax.all_gather(b, "x", axis=1, tiled=True)) if rows else (lax.all_gather(a, "x", tiled=True), b)
        bits = lax.bitcast_convert_type(a, jnp.uint32)[:, :, None] & lax.bitcast_convert_type(b, jnp.uint32)
        made = 0
        for _ in range(40):
            bits = bits ^ bits << 1
        made = lax.reduce(bits, jnp.uint32(0), lax.bitwise_xor, (1,))
        return lax.optimization_barrier((a @ b, made))[0]

    out = P("x", None) if rows else P(None, "x")
    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=out)(a, b)


matmul_keep_rows, matmul_keep_columns = partial(keep, rows=True), partial(keep, rows=False)
