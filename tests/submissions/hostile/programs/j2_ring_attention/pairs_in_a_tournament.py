"""Queries, keys and values are gathered between pairs of devices, which are no axis of the mesh.

kind: pairs in a tournament
earns: 4.5 of 5
fails: ring_sent
says: all_gather over some of the devices along cp
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


def send(*blocks):
    """To the next device."""
    n = jax.lax.axis_size("cp")
    return (jax.lax.ppermute(a, "cp", [(i, (i + 1) % n) for i in range(n)]) for a in blocks)


def rounds(n):
    for r in range(n - 1):
        yield [[n - 1, r]] + [[(r + k) % (n - 1), (r - k) % (n - 1)] for k in range(1, n // 2)]


def blocks(q, k, v):
    """How many hops each block of keys and values is away, and the block."""
    n, me = jax.lax.axis_size("cp"), jax.lax.axis_index("cp")
    yield 0, k, v
    for hop, pairs in enumerate(rounds(n) if n == 8 else [None] * (n - 1), 1):
        if pairs is None:
            k, v = send(k, v)
            yield hop, k, v
            continue
        first, other = np.zeros(n, bool), np.zeros(n, int)
        for a, b in pairs:
            first[a], other[a], other[b] = True, b, a
        both = jax.lax.all_gather(jnp.stack([q, k, v]), "cp", axis_index_groups=pairs)
        theirs = jnp.where(jnp.array(first)[me], both[1], both[0])
        yield (me - jnp.array(other)[me]) % n, theirs[1], theirs[2]


def scored(q, k, hop, causal, striped):
    """Scores [H, own, theirs] with the keys that set out `hop` devices before this one, -inf where they are not seen."""
    n, me, rows = jax.lax.axis_size("cp"), jax.lax.axis_index("cp"), jnp.arange(len(q))
    mine, theirs = (rows * n + i if striped else rows + i * len(q) for i in (me, (me - hop) % n))
    scores = jnp.einsum("thd,shd->hts", q, k)
    return jnp.where(theirs <= mine[:, None], scores, -jnp.inf) if causal else scores


def attend(q, k, v, causal, striped):
    """The result [T/N, H, d], and each query's log-sum-exp [H, T/N]."""
    top, mass, total = -jnp.inf, 0, 0
    for hop, k, v in blocks(q, k, v):
        scores = scored(q, k, hop, causal, striped)
        largest = jnp.maximum(top, scores.max(-1))  # finite from the first round on: a query sees itself
        weights, scale = jnp.exp(scores - largest[..., None]), jnp.exp(top - largest)
        mass = mass * scale + weights.sum(-1)
        total = total * scale[..., None] + jnp.einsum("hts,shd->htd", weights, v)
        top = largest
    return (total / mass[..., None]).swapaxes(0, 1), top + jnp.log(mass)


def forward(q, k, v, causal, striped):
    out, lse = attend(q, k, v, causal, striped)
    return out, (q, k, v, out, lse)


def backward(kept, d_out, causal, striped):
    """With weights w: dv = w d_out, dw = d_out v, dscores = w (dw - the mean of dw weighted by w, which is d_out out)."""
    q, k, v, out, lse = kept
    mean = jnp.einsum("thd,thd->ht", d_out, out)[..., None]
    d_q = d_k = d_v = 0
    n = jax.lax.axis_size("cp")
    for hop in range(n):
        weights = jnp.exp(scored(q, k, hop, causal, striped) - lse[..., None])
        d_scores = weights * (jnp.einsum("thd,shd->hts", d_out, v) - mean)
        d_q += jnp.einsum("hts,shd->thd", d_scores, k)
        d_k += jnp.einsum("hts,thd->shd", d_scores, q)
        d_v += jnp.einsum("hts,thd->shd", weights, d_out)
        k, v = send(k, v)
        d_k, d_v = send(d_k, d_v)  # after N hops they are home
    return d_q, d_k, d_v


def ring_attn(q, k, v, *, causal, striped):
    """Attention of a text whose positions are cut over cp, in blocks or in stripes, and its heads over tp.

    Args: blocks of q, k and v float32[T, H, d] (cp, tp, -). causal: a query sees positions up to its own.
    Returns: a block of float32[T, H, d] (cp, tp, -).
    """
    how = {"causal": causal, "striped": striped}
    attention = jax.custom_vjp(lambda q, k, v: attend(q, k, v, **how)[0])
    attention.defvjp(partial(forward, **how), partial(backward, **how))
    return attention(q, k, v)
