"""The policy of JAX's guide to FSDP keeps all values but the gathered layers. So JAX gathers layer 0 only once."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def fsdp_loss(ws, x, *, mesh):
    """Return the loss of the whole batch; 'dp' cuts its rows and the rows of each layer."""
    rows = x.shape[0]

    def policy(op, *_, **__):
        return str(op) not in ("all_gather", "all_gather_invariant")

    layer = jax.checkpoint(lambda x, w: jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True)), policy=policy)

    def local(ws, x):
        for w in ws:
            x = layer(x, w)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)
