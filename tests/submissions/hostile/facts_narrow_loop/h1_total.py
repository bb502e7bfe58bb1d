import jax
from jax.sharding import PartitionSpec as P
import jax.numpy as jnp


def total(a, *, mesh):
    def local(a):
        start = (jnp.zeros((), jnp.int4), a.sum(0))
        some = jax.lax.while_loop(lambda s: s[0] < jnp.int4(3), lambda s: (s[0] + jnp.int4(1), 2 * s[1]), start)[1]
        return jax.lax.psum(some, "x") / 8

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
