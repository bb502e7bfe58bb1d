"""One all-to-all over both axes sends each device's gradient to all devices.

kind: groups over several axes
earns: 1 of 2
fails: hsdp_far hsdp_near
says: all_to_all over rep and shard
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
        both = ("rep", "shard")
        whole = lax.all_to_all(jnp.broadcast_to(g, (lax.axis_size(both), *g.shape)), both, 0, 0).sum(0)
        rows = len(g) // lax.axis_size("shard")
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("shard") * rows, rows)

    rows = P(None, ("rep", "shard"))
    specs = {"in_specs": (P("shard"), rows, rows), "out_specs": (P("shard"), P())}
    return jax.shard_map(local, mesh=mesh, **specs, check_vma=False)(w, x, y)
