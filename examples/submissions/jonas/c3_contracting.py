import jax
from jax.sharding import PartitionSpec as P


def matmul_all_reduce(a, b, *, mesh):
    def local(a, b):
        c = a @ b
        return jax.lax.psum(jax.lax.psum(c, "x"), "x")

    return jax.shard_map(
        local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, None), check_vma=False
    )(a, b)


def matmul_reduce_scatter(a, b, *, mesh):
    def local(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


scatter_time = "326 us"
all_reduce_bytes = "62.9 MB"
