from functools import partial

import jax
from jax.sharding import PartitionSpec as P


def matmul_gather_first(a, b, *, mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P(), check_vma=False)
    def mm(a_blk, b_blk):
        a_full = jax.lax.all_gather(a_blk, "x", axis=1, tiled=True)
        return a_full @ b_blk

    return mm(a, b)


def matmul_slice_first(a, b, *, mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())
    def mm(a_blk, b_full):
        n = a_blk.shape[1]
        rows = jax.lax.dynamic_slice_in_dim(b_full, jax.lax.axis_index("x") * n, n, axis=0)
        return jax.lax.psum(a_blk @ rows, "x")

    return mm(a, b)


gather_first_time = "0.652 ms"
slice_first_time = "0.233 ms"
