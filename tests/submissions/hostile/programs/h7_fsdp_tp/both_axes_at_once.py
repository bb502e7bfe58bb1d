"""The program gathers the weights over both axes, and takes a part of the result.

kind: groups over several axes
earns: 2 of 4.5
fails: mlp_weights mlp_activations mlp_backward
says: all_gather over x and y
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def mlp_2d(a, w_in, w_out, *, mesh):
    """Return tanh(A · W_in) · W_out. Both axes cut the operands and the result.

    Args: a float32[B, D] sharded P('x', 'y'), w_in float32[D, F] sharded P('x', 'y'), w_out float32[F, D] sharded P('y', 'x').
    Returns: float32[B, D] sharded P('x', 'y').
    """

    def local(a, w_in, w_out):
        rows = jax.lax.all_gather(a, "y", axis=1, tiled=True)  # [B/X, D]
        whole = jax.lax.all_gather(w_in, ("x", "y"))
        mine = jnp.arange(jax.lax.axis_size("x")) * jax.lax.axis_size("y") + jax.lax.axis_index("y")
        up = jnp.concatenate(list(whole[mine]))  # [D, F/Y]
        down = jax.lax.all_gather(w_out, "x", axis=1, tiled=True)  # [F/Y, D]
        partial = jnp.tanh(rows @ up) @ down  # [B/X, D], unreduced over y
        return jax.lax.psum_scatter(partial, "y", scatter_dimension=1, tiled=True)

    specs = (P("x", "y"), P("x", "y"), P("y", "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", "y"))(a, w_in, w_out)
