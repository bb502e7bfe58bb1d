"""An honest program."""

import jax.numpy as jnp
from jax import lax


def rounds(n):
    for r in range(n - 1):
        yield [[n - 1, r]] + [[(r + k) % (n - 1), (r - k) % (n - 1)] for k in range(1, n // 2)]


def decode(q, k, v, length):
    position = lax.axis_index("x") * k.shape[1] + jnp.arange(k.shape[1])
    scores = jnp.where(position < length[:, None, None], jnp.einsum("bkh,bskh->bks", q, k), -jnp.inf)
    top = lax.pmax(scores.max(-1), "x")
    weights = jnp.exp(scores - top[..., None])
    mass = lax.psum(weights.sum(-1), "x")
    return lax.psum(jnp.einsum("bks,bskh->bkh", weights, v), "x") / mass[..., None]
