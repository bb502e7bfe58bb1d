"""The reference solution."""

from functools import partial

import jax
import jax.numpy as jnp


def send(*blocks):
    """Send each array to the next device."""
    n = jax.lax.axis_size("cp")
    return (jax.lax.ppermute(a, "cp", [(i, (i + 1) % n) for i in range(n)]) for a in blocks)


def scored(q, k, hop, causal, striped):
    """Return scores [H, own, theirs] for the keys that came from `hop` devices before this one; -inf for unseen
    keys."""
    n, me, rows = jax.lax.axis_size("cp"), jax.lax.axis_index("cp"), jnp.arange(len(q))
    mine, theirs = (rows * n + i if striped else rows + i * len(q) for i in (me, (me - hop) % n))
    scores = jnp.einsum("thd,shd->hts", q, k)
    return jnp.where(theirs <= mine[:, None], scores, -jnp.inf) if causal else scores


def attend(q, k, v, causal, striped):
    """Return the result [T/N, H, d], and each query's log-sum-exp [H, T/N]."""
    n = jax.lax.axis_size("cp")
    top, mass, total = -jnp.inf, 0, 0
    for hop in range(n):
        scores = scored(q, k, hop, causal, striped)
        largest = jnp.maximum(top, scores.max(-1))  # finite from the first round on, because each query sees its own key
        weights, scale = jnp.exp(scores - largest[..., None]), jnp.exp(top - largest)
        mass = mass * scale + weights.sum(-1)
        total = total * scale[..., None] + jnp.einsum("hts,shd->htd", weights, v)
        top = largest
        k, v = send(k, v) if hop < n - 1 else (k, v)
    return (total / mass[..., None]).swapaxes(0, 1), top + jnp.log(mass)


def forward(q, k, v, causal, striped):
    out, lse = attend(q, k, v, causal, striped)
    return out, (q, k, v, out, lse)


def backward(kept, d_out, causal, striped):
    """Return the gradients of q, k and v.

    With weights w: dv = w d_out, dw = d_out v, and dscores = w (dw - mean). Here mean is the mean of dw with weights w,
    which equals d_out · out.
    """
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
        d_k, d_v = send(d_k, d_v)  # after N hops, each block is on its own device again
    return d_q, d_k, d_v


def ring_attn(q, k, v, *, causal, striped):
    """Return the attention of a text. cp cuts its positions, in blocks or in stripes, and tp cuts its heads.

    Args: one device's q, k and v, blocks of float32[T, H, d] sharded P('cp', 'tp'). causal: a query sees positions up to its own.
        striped: device i has every N-th position, from i on.
    Returns: one device's block of float32[T, H, d] sharded P('cp', 'tp').
    """
    how = {"causal": causal, "striped": striped}
    attention = jax.custom_vjp(lambda q, k, v: attend(q, k, v, **how)[0])
    attention.defvjp(partial(forward, **how), partial(backward, **how))
    return attention(q, k, v)
