"""The idea of each module as a small function that each device runs in jax.shard_map.

A module's page on the site shows a picture of the module's function.
"""

import jax
import jax.numpy as jnp


def all_gather(a):
    return jax.lax.all_gather(a, "x", tiled=True)


def reduce_scatter(a):
    return jax.lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True)


def all_reduce(a):
    return jax.lax.psum(a, "x")


def all_to_all(a):
    return jax.lax.all_to_all(a, "x", 1, 0, tiled=True)


def no_communication(a, b):
    return a @ b


def gather_one_operand(a, b):
    return jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b


def reduce_the_sum(a, b):
    return jax.lax.psum(a @ b, "x")


def gather_one_of_two(a, b):
    return jax.lax.all_gather(a, "x", tiled=True) @ b


def ring_all_gather(a):
    n = jax.lax.axis_size("x")
    parts = [a]
    for _ in range(n - 1):
        a = jax.lax.ppermute(a, "x", [(d, (d + 1) % n) for d in range(n)])
        parts.append(a)
    return jnp.concatenate(parts)


def gradient_of_all_gather(a, ct):
    return jax.vjp(all_gather, a)[1](ct)[0]


def gradient_of_reduce_scatter(a, ct):
    return jax.vjp(reduce_scatter, a)[1](ct)[0]


def along_a_pipeline(a):
    n = jax.lax.axis_size("x")
    for _ in range(n):
        a = jax.lax.ppermute(a, "x", [(s, s + 1) for s in range(n - 1)])
    return a


def heads_for_positions(q):
    return jax.lax.all_to_all(q, "x", 1, 0, tiled=True)


def positions_for_heads(q):
    return jax.lax.all_to_all(q, "x", 0, 1, tiled=True)
