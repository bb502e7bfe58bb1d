"""Each device draws one mask for all seeds, and shifts the mask by the seed.

kind: nearly equal random numbers
earns: 0.25 of 0.5
fails: drop_rows
says: random numbers that are nearly equal, or equal but shifted, mirrored or transposed
"""

import jax
import jax.numpy as jnp


def drop(x, seed, *, rate):
    key = jax.random.fold_in(jax.random.key(0), jax.lax.axis_index("tp"))
    kept = jnp.roll(jax.random.bernoulli(key, 1 - rate, x.shape), seed % x.shape[1], 1)
    return jnp.where(kept, x / (1 - rate), 0)
