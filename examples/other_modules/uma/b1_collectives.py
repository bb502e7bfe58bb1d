"""B1 - Uma"""

import jax
import jax.numpy as jnp
from jax.lax import all_gather, all_to_all, psum, psum_scatter


def all_gather_body(a, *, dim):
    return all_gather(a, "x", axis=dim, tiled=True)


def all_reduce_body(a):
    return psum(a, "x")


def reduce_scatter_body(a):
    # psum_scatter = psum + keep my part
    return psum_scatter(a, "x", tiled=True)


def all_to_all_body(a):
    return all_to_all(a, "x", 0, 1, tiled=True)


# quarter of an all-gather:  2*8192*8192 / 90e9 / 4
all_to_all_on_ring = "186.4 µs"
