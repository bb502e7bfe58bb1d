"""The mask of a row is a hash of the row's first number.

kind: a hash for random numbers
earns: 0.25 of 0.5
fails: drop_rows
says: with the same seed, other numbers in x get a different mask
"""

import jax
import jax.numpy as jnp


def drop(x, seed, *, rate):
    row = jax.lax.bitcast_convert_type(x[:, :1], jnp.uint32) + jnp.arange(x.shape[1], dtype="uint32") * jnp.uint32(
        40503
    )
    mixed = (row ^ jnp.uint32(seed)) * jnp.uint32(2654435761)
    mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(2246822519)
    share = (mixed ^ (mixed >> 13)) >> 8
    return jnp.where(share >= rate * 2**24, x / (1 - rate), 0)
