"""The reference."""

import jax
import jax.numpy as jnp


def drop(x, seed, *, rate):
    """float32[S/N, D], a device's rows, and an int32 -> the same rows with some numbers dropped, the others / (1 - rate)."""
    key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)
