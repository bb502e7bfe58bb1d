"""The reference solution."""

import jax
import jax.numpy as jnp


def drop(x, seed, *, rate):
    """Return a device's rows with some numbers set to 0, and the other numbers divided by 1 - rate.

    Args: x float32[S/N, D], a device's rows; seed, an int32, equal on all devices; rate, the probability of a 0.
    Returns: float32[S/N, D].
    """
    key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)
