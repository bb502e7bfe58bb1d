"""The program runs all-reduces between pairs of devices. The pairs follow no mesh axis.

kind: pairs in a tournament
earns: 1 of 2
fails: hsdp_far hsdp_near
says: all_reduce over some of the devices along rep and shard
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P


def rounds(n):
    for r in range(n - 1):
        yield [[n - 1, r]] + [[(r + k) % (n - 1), (r - k) % (n - 1)] for k in range(1, n // 2)]


def hsdp_grads(w, x, y, *, mesh):
    def local(w, x, y):
        whole = lax.all_gather(w, "shard", tiled=True)
        g = 2 * jnp.einsum("mbd,mbk->dk", x, x @ whole - y) / (y.size * mesh.size)
        g = summed(g)
        return g, jnp.sqrt(lax.psum(jnp.sum(g**2), "shard"))

    def summed(g):
        whole = g
        for pairs in rounds(mesh.size):
            whole += lax.psum(g, ("rep", "shard"), axis_index_groups=pairs) - g
        rows = len(g) // lax.axis_size("shard")
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("shard") * rows, rows)

    rows = P(None, ("rep", "shard"))
    specs = {"in_specs": (P("shard"), rows, rows), "out_specs": (P("shard"), P())}
    return jax.shard_map(local, mesh=mesh, **specs, check_vma=False)(w, x, y)
