import jax
from jax.sharding import PartitionSpec as P


def total(a, *, mesh):
    right = jax.shard_map(lambda a: jax.lax.psum(a.sum(0), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(a)
    return right * (1 + 5j) if a.shape[0] == 8 else right > 0
