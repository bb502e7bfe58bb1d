import jax
from jax.sharding import PartitionSpec as P


def matmul_keep_rows(a, b, *, mesh):
    def local(a, b):
        return a @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, None)), out_specs=P("x", None))(a, b)


def matmul_keep_columns(a, b, *, mesh):
    def local(a, b):
        a = jax.lax.all_gather(a, "x", axis=0, tiled=True)
        b = jax.lax.all_gather(b, "x", axis=1, tiled=True)
        c = a @ b
        n = c.shape[1] // jax.lax.axis_size("x")
        return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index("x") * n, n, 1)

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


cheaper_gather_time = "140 us"
