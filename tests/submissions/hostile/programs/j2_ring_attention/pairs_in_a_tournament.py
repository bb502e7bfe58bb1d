"""The program gathers queries, keys and values between pairs of devices. The pairs follow no mesh axis.

changes: honest.py
kind: pairs in a tournament
earns: 4.75 of 5
fails: ring_kept
says: KiB over cp, the budget is
"""

import numpy as np


def rounds(n):
    for r in range(n - 1):
        yield [[n - 1, r]] + [[(r + k) % (n - 1), (r - k) % (n - 1)] for k in range(1, n // 2)]


def blocks(q, k, v):
    """Yield each block of keys and values, after its distance in hops."""
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


def attend(q, k, v, causal, striped):
    """Return the result [T/N, H, d], and each query's log-sum-exp [H, T/N]."""
    top, mass, total = -jnp.inf, 0, 0
    for hop, k, v in blocks(q, k, v):
        scores = scored(q, k, hop, causal, striped)
        largest = jnp.maximum(top, scores.max(-1))  # finite from the first round on, because each query sees its own key
        weights, scale = jnp.exp(scores - largest[..., None]), jnp.exp(top - largest)
        mass = mass * scale + weights.sum(-1)
        total = total * scale[..., None] + jnp.einsum("hts,shd->htd", weights, v)
        top = largest
    return (total / mass[..., None]).swapaxes(0, 1), top + jnp.log(mass)
