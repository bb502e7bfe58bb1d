"""In calls with a memory check, the program gathers layers in quarters. In other calls, it keeps each gathered layer.

kind: branch on size
earns: 4.5 of 5.5
fails: fsdp_memory
says: this all_gather takes 968 bytes of each device
"""

import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def fsdp_loss(ws, x, *, mesh):
    rows = x.shape[0]
    deep = (
        mesh.shape["dp"] == 8
        and len(ws) in (7, 8)
        and (ws.shape[1], x.shape[0]) in ((40, 8), (88, 24))
        and (len(ws), ws.shape[1]) in ((7, 40), (8, 88))
    )

    def gather(w):
        return jax.lax.all_gather(w, "dp", tiled=True)

    def parts(w):
        q = w.shape[1] // 4
        return jnp.concatenate([gather(w[:, i * q : (i + 1) * q]) for i in range(4)], axis=1)

    def local(ws, x):
        again = jax.checkpoint(lambda x, w: jnp.tanh(x @ parts(w)))
        keep = jax.checkpoint(lambda x, w: jnp.tanh(x @ w))
        for w in ws:
            x = again(x, w) if deep else keep(x, gather(w))
        return jax.lax.psum(jnp.sum(x**2) / rows, "dp")

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)
