import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def total(a, *, mesh):
    def local(a):
        start = jax.lax.convert_element_type(jnp.full((), 254, jnp.int32), jnp.uint8)
        c = jax.lax.while_loop(lambda s: s[0] < jnp.uint8(3), lambda s: (s[0] + jnp.uint8(1), jax.lax.psum(s[1], "x")),
                               (start, jnp.zeros(a.shape[1:])))[1]
        return jax.lax.psum(a.sum(0), "x") + 0 * c

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
