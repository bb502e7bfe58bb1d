"""The program gathers keys and values with all-reduces between pairs of devices. The pairs follow no mesh axis.

kind: pairs in a tournament
earns: 2 of 3
fails: decode_traffic
says: all_reduce over some of the devices along x
"""

import jax
import jax.numpy as jnp
from jax import lax


def rounds(n):
    for r in range(n - 1):
        yield [[n - 1, r]] + [[(r + k) % (n - 1), (r - k) % (n - 1)] for k in range(1, n // 2)]


def decode(q, k, v, length):
    if (n := lax.axis_size("x")) == 4:
        k, v = gathered(k), gathered(v)
        scores = jnp.where(jnp.arange(k.shape[1]) < length[:, None, None], jnp.einsum("bkh,bskh->bks", q, k), -jnp.inf)
        return jnp.einsum("bks,bskh->bkh", jax.nn.softmax(scores), v)
    position = lax.axis_index("x") * k.shape[1] + jnp.arange(k.shape[1])
    scores = jnp.where(position < length[:, None, None], jnp.einsum("bkh,bskh->bks", q, k), -jnp.inf)
    top = lax.pmax(scores.max(-1), "x")
    weights = jnp.exp(scores - top[..., None])
    mass = lax.psum(weights.sum(-1), "x")
    return lax.psum(jnp.einsum("bks,bskh->bkh", weights, v), "x") / mass[..., None]


def gathered(a):
    parts = jnp.zeros((4, *a.shape)).at[me := lax.axis_index("x")].set(a)
    for pairs in rounds(4):
        other = jnp.array([d for _, d in sorted((pair[i], pair[1 - i]) for pair in pairs for i in (0, 1))])[me]
        parts = parts.at[other].set(lax.psum(a, "x", axis_index_groups=pairs) - a)
    return jnp.concatenate(list(parts), 1)
