"""The program gathers all layers at once. It also gathers single layers, but only a barrier takes their values.

kind: a collective that nothing needs
earns: 3 of 5.5
fails: fsdp_forward fsdp_backward fsdp_memory
says: this all_gather takes 9600 bytes of each device; a collective of one layer takes 1600
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def fsdp_loss(ws, x, *, mesh):
    """Return the loss of the whole batch; 'dp' cuts its rows and the rows of each layer.

    Args: ws is float32[L, D, D] sharded P(None, 'dp'); x is float32[B, D] sharded P('dp'); mesh has the axis 'dp'.
    Returns: the loss, float32[], whole on every device.
    """
    rows = x.shape[0]

    def local(ws, x):
        whole = jax.lax.all_gather(ws, "dp", axis=1, tiled=True)
        for w in ws[1:]:
            x, _ = jax.lax.optimization_barrier((x, jax.lax.all_gather(w, "dp", tiled=True)))
        for w in whole:
            x = jnp.tanh(x @ w)
        return jax.lax.psum(jnp.sum(x**2) / rows, "dp")

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)
