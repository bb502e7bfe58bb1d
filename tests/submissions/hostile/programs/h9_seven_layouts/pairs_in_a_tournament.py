"""In layout 7, the program gathers between pairs of devices. The pairs follow no mesh axis.

kind: pairs in a tournament
earns: 1.75 of 2.25
fails: both_budget
says: all_gather over some of the devices along x and y
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P


SCHEMES = {
    1: (P("x", None), P(None, None)),
    2: (P("x", None), P("x", None)),
    3: (P("x", None), P(None, "x")),
    4: (P("x", None), P(None, "y")),
    5: (P(None, "x"), P("x", None)),
    6: (P(None, "x"), P(None, "x")),
    7: (P("x", "y"), P("y", "x")),
}


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


def stack(a, ws, *, mesh, scheme):
    """Return A · ws[0] · ws[1] · ..., with the result of each layer laid out as A.

    Args: a float32[B, E] and ws float32[L, E, E], sharded as SCHEMES[scheme] says: (A, each W); scheme is 1 to 7.
    Returns: float32[B, E], sharded as a. In scheme 4 JAX cannot see that the gathered array is equal along y: use
        check_vma=False.
    """
    act, weight = SCHEMES[scheme]

    def gather(array, axis, dim):
        if scheme == 7:
            return gathered(array, axis, dim)
        return jax.lax.all_gather(array, axis, axis=dim, tiled=True)

    def local(a, ws):
        for w in ws:
            if scheme in (2, 3, 7):
                w = gather(w, "x", 0 if scheme == 2 else 1)
            a = (gather(a, "x", 1) if scheme == 6 else a) @ w
            if scheme == 4:
                a = gather(a, "y", 1)
            if scheme in (5, 7):
                a = jax.lax.psum_scatter(a, act[1], scatter_dimension=1, tiled=True)
        return a

    return jax.shard_map(local, mesh=mesh, in_specs=(act, P(None, *weight)), out_specs=act, check_vma=False)(a, ws)
