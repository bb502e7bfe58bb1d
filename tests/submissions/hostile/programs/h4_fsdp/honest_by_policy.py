"""The policy of JAX's guide to FSDP keeps everything but the gathered layers, and so gathers layer 0 once."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def fsdp_loss(ws, x, *, mesh):
    """The loss of a batch whose rows are spread over 'dp', as the layers' rows are."""
    rows = x.shape[0]

    def policy(op, *_, **__):
        return str(op) not in ("all_gather", "all_gather_invariant")

    layer = jax.checkpoint(lambda x, w: jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True)), policy=policy)

    def local(ws, x):
        for w in ws:
            x = layer(x, w)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)
