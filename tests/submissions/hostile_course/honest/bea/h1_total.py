import jax
from jax.sharding import PartitionSpec as P


def total(a, *, mesh):
    def local(a):
        whole = jax.lax.all_gather(a, "x", tiled=True)
        return jax.lax.psum(whole.sum(0), "x") / jax.lax.axis_size("x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P())(a)


def twice(n):
    if n > 1000:
        raise ValueError("too large")
    return 2 * n


megabytes = 10
