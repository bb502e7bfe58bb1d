"""Five ways to compute A[I_X, J] @ W[J, K], each for jax.shard_map. docs/clock-pictures.md draws their timelines."""

import jax
import jax.numpy as jnp


def gather_first(a, w):
    """The matmul waits until the device has all of A."""
    return jax.lax.all_gather(a, "x", tiled=True) @ w


def right(a, w):
    """While the device multiplies a block, the next block arrives."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    ring = [(d, (d + 1) % n) for d in range(n)]
    out = jnp.zeros((n, a.shape[0], w.shape[1]), a.dtype)
    for hop in range(n):
        arriving = jax.lax.ppermute(a, "x", ring) if hop < n - 1 else a
        out = out.at[(me - hop) % n].set(a @ w)
        a = arriving
    return out.reshape(-1, w.shape[1])


def waits(a, w):
    """Compute as ``right`` does, but make each hop wait for the matmul before it."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    ring = [(d, (d + 1) % n) for d in range(n)]
    out = jnp.zeros((n, a.shape[0], w.shape[1]), a.dtype)
    for hop in range(n):
        a, matmul = jax.lax.optimization_barrier((a, a @ w))
        out = out.at[(me - hop) % n].set(matmul)
        a = jax.lax.ppermute(a, "x", ring) if hop < n - 1 else a
    return out.reshape(-1, w.shape[1])


def late_loop(a, w):
    """Each round of a loop receives a block and then multiplies it. Rounds are barriers, so nothing overlaps."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    ring = [(d, (d + 1) % n) for d in range(n)]
    out = jnp.zeros((n, a.shape[0], w.shape[1]), a.dtype).at[me].set(a @ w)

    def one(hop, carry):
        a, out = carry
        a = jax.lax.ppermute(a, "x", ring)
        return a, out.at[(me - hop) % n].set(a @ w)

    return jax.lax.fori_loop(1, n, one, (a, out))[1].reshape(-1, w.shape[1])


def both_ways(a, w):
    """Blocks travel in both directions round the ring, which takes half as many rounds as one direction."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    forth, back = ([(d, (d + step) % n) for d in range(n)] for step in (1, -1))
    out = jnp.zeros((n, a.shape[0], w.shape[1]), a.dtype)
    ahead, behind = a, a
    for hop in range(n // 2 + 1):
        farther = jax.lax.ppermute(ahead, "x", forth) if hop < n // 2 else ahead
        nearer = jax.lax.ppermute(behind, "x", back) if 2 * (hop + 1) < n else behind
        out = out.at[(me - hop) % n].set(ahead @ w)
        if 0 < 2 * hop < n:
            out = out.at[(me + hop) % n].set(behind @ w)
        ahead, behind = farther, nearer
    return out.reshape(-1, w.shape[1])
