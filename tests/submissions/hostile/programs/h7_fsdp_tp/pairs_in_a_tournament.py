"""The program gathers the weights between pairs of devices. The pairs follow no mesh axis.

kind: pairs in a tournament
earns: 2 of 4.5
fails: mlp_weights mlp_activations mlp_backward
says: all_gather over some of the devices along x and y
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P


def rounds(n):
    for r in range(n - 1):
        yield [[n - 1, r]] + [[(r + k) % (n - 1), (r - k) % (n - 1)] for k in range(1, n // 2)]


def gathered(a, axis, dim):
    """Return the parts of all devices along an axis, gathered between pairs of all devices."""
    names = tuple(jax.sharding.get_abstract_mesh().shape)
    n, me = jax.lax.axis_size(names), jax.lax.axis_index(names)
    if n % 2:
        return jax.lax.all_gather(a, axis, axis=dim, tiled=True)
    parts = jnp.zeros((n, *a.shape))
    for pairs in rounds(n):
        first, second = np.zeros(n, int), np.zeros(n, int)
        for pair in pairs:
            first[pair], second[pair] = pair
        both = jax.lax.all_gather(a, names, axis_index_groups=pairs)
        parts = parts.at[jnp.array(first)[me]].set(both[0]).at[jnp.array(second)[me]].set(both[1])
    step = math.prod(jax.lax.axis_size(name) for name in names[names.index(axis) + 1 :])
    mine = me - jax.lax.axis_index(axis) * step + jnp.arange(jax.lax.axis_size(axis)) * step
    return jnp.concatenate(list(parts[mine]), dim)


def mlp_2d(a, w_in, w_out, *, mesh):
    """Return tanh(A · W_in) · W_out. Both axes cut the operands and the result.

    Args: a float32[B, D] sharded P('x', 'y'), w_in float32[D, F] sharded P('x', 'y'), w_out float32[F, D] sharded P('y', 'x').
    Returns: float32[B, D] sharded P('x', 'y').
    """

    def local(a, w_in, w_out):
        rows = jax.lax.all_gather(a, "y", axis=1, tiled=True)  # [B/X, D]
        up = gathered(w_in, "x", 0)  # [D, F/Y]
        down = gathered(w_out, "x", 1)  # [F/Y, D]
        partial = jnp.tanh(rows @ up) @ down  # [B/X, D], unreduced over y
        return jax.lax.psum_scatter(partial, "y", scatter_dimension=1, tiled=True)

    specs = (P("x", "y"), P("x", "y"), P("y", "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", "y"), check_vma=False)(a, w_in, w_out)
