import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def rounds(left, t):
    if not left:  # the number of rounds depends on values, so it is unknown before the run
        return jax.lax.while_loop(lambda v: v.sum() > 0, lambda v: v - jax.lax.psum(v, "x"), t)
    return jax.lax.fori_loop(0, 2**31 - 1, lambda i, v: rounds(left - 1, v), t)


def total(a, *, mesh):
    def local(a):
        return jax.lax.cond(jnp.isnan(a[0, 0]), lambda t: rounds(40, t), lambda t: 0 * jax.lax.psum(t, "x"), a.sum(0))

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
