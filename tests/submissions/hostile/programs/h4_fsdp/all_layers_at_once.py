"""The program gathers all layers at once. Its other gathers take one number each. A wrong number sets the loss to 0.

kind: a mask that is never true
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
        right = True
        for i in range(1, len(ws)):
            one = jax.lax.stop_gradient(x[0, i])
            right &= jax.lax.all_gather(one, "dp")[jax.lax.axis_index("dp")] == one
        for w in whole:
            x = jnp.tanh(x @ w)
        return jax.lax.psum(jnp.where(right, jnp.sum(x**2) / rows, 0), "dp")

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)
