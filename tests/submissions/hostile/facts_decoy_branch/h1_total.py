import jax
from jax.sharding import PartitionSpec as P


def total(a, *, mesh):
    def local(a):
        def summed(a):
            return jax.lax.psum(a.sum(0), "x")

        def gathered(a):
            return jax.lax.all_gather(a, "x", tiled=True).sum(0)

        return jax.lax.cond(a[0, 0] > 1e30, summed, gathered, a)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
