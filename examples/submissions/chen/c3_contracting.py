import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P


def matmul_all_reduce(a, b, *, mesh):
    f = lambda a, b: lax.psum(a @ b, "x")
    return jax.shard_map(f, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, None))(a, b)


def matmul_reduce_scatter(a, b, *, mesh):
    # first the full product, then everybody keeps his own columns
    def f(a, b):
        full = lax.psum(a @ b, "x")
        i = lax.axis_index("x")
        w = full.shape[1] // mesh.shape["x"]
        return lax.dynamic_slice(full, (0, i * w), (full.shape[0], w))

    return jax.shard_map(f, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


scatter_time = "2609.8 us"  # 117.4 MB / 45 GB/s
all_reduce_bytes = "120 MiB"
