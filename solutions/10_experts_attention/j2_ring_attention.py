"""# J2 Ring attention

A text is so long that axis cp cuts its positions, even in attention. Queries stay on their devices. Blocks of keys and
values go round a ring. In each round a device adds one block to its running softmax.

```
   N = 3, causal, on device 1         so far, for each query and head
   round 0   q1, k1 v1: half of it    largest score, mass, sum of v
   round 1   q1, k0 v0: all of it     mass and sum times e^(old - new)
   round 2   q1, k2 v2: nothing       e^-inf = 0 is added
```

**Write** the body `ring_attn(q, k, v, *, causal, striped)`. For each head, take the softmax of q · k (not scaled) over
the positions. The result is the mean of the rows of v with these weights. With `causal` a query sees its own position
and the positions before it.

| | whole shape | layout |
|---|---|---|
| `q`, `k`, `v`, result | float32[T, H, d] | `P("cp", "tp", None)`: T/N positions, some heads |

Device i has the T/N positions that begin at i · T/N. With `striped`, device i has every N-th position, from i on.

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| value | right for blocks with `causal`, blocks without `causal`, stripes with `causal` | |
| gradients | gradients of q, k and v | |
| sent, forward | `k` and `v` are sent N − 1 times | 2 · 2 blocks (cp=3) |
| memory, forward | cp=7: room for what one round needs, not for `k` and `v` of all devices, and not for scores of all rounds; the limit for sending holds | |
| sent, with gradients | in the backward pass, `k`, `v` and their gradients are sent at most N times; nothing over tp | 2 · 3 + 4 · 4 blocks (cp=4) |
| memory, with gradients | cp=8: a device keeps no scores or weights of a finished round; the limit for sending holds | |

A sent block may hold one extra number per row. You may use JAX's gradients with `jax.checkpoint` around each round. JAX
then keeps each round's `k` and `v`. Or write your own backward pass, which sends `k`, `v` and their gradients round the
ring.

**Symbols.** T positions, N devices along cp, H (in one question Q) query heads of d numbers; mass: Σ e^(score −
max).

**Small case.** Round 0 has scores (1, 2): max 2, mass e^-1 + 1 = 1.368. Round 1 has score 4: max 4, mass 1.368 · e^(2 −
4) + 1 = 1.185. Without the factor e^(2 − 4) the mass would be 2.368.

## Going further

**Stripes.** With blocks, the last device computes in all rounds, but the first device computes in one round. Each round
waits for the slowest device. With stripes, the queries of a device see, on average, half of the keys of every device.
So all devices compute about equally much in every round.

**In real systems.** Context parallelism for long texts works like this. Devices add blocks to the softmax as flash
attention does. Exercise J3 exchanges positions for heads instead. This exchange sends fewer bytes, but needs enough
heads.

**Read on.** *Ring Attention with Blockwise Transformers for Near-Infinite Context*; *Striped Attention*.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import CHIPS, matmul_time

exercise = Exercise(meshes=[{"cp": 4, "tp": 2}, {"cp": 3, "tp": 1}], stars=3)
ROWS = P("cp", "tp", None)


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
        largest = jnp.maximum(top, scores.max(-1))  # finite from the first round on: a query sees itself
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
        d_k, d_v = send(d_k, d_v)  # after N hops they are back on their own device
    return d_q, d_k, d_v


@exercise.body(
    out_specs=ROWS,
    hints=[
        "You can compute two sums over the positions, Σ e^s and Σ e^s v, block by block. What changes when a later block has a larger score?",
        "Carry the largest score, the mass and the sum of v from round to round. For a new maximum, multiply mass and sum by exp(old - new). Mask scores by the keys' positions in the text.",
        "mass = mass * jnp.exp(top - largest) + jnp.exp(scores - largest[..., None]).sum(-1); the block comes from device (me - hop) % n.",
    ],
)
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


HOPS = "a hop takes its bytes / W1, one direction of a link; matmuls take FLOPs / C"


@exercise.number(
    points=0.5,
    unit="",
    params={"chip": ["v4p", "v5p"], "N": [4, 8, 12, 16], "Q": [32, 48, 64]},
    model=HOPS,
    hints=[
        "How does a hop's time grow with T/N, and how does the time of a round's matmuls grow?",
        "A hop sends keys and values of 8 heads. Each of Q query heads has two matmuls, q · k and weights · v.",
        "2 * 2 * (T/N) * 8 * d / W1 = 2 * 2 * (T/N)**2 * Q * d / C",
    ],
)
def ring_overlaps_from(chip, N, Q):
    """Attention without a causal mask runs in bfloat16 on a ring of {{ N }} {{ chip }} chips. It has {{ Q }} query heads and 8
    key heads, and sends keys and values of these 8 heads round the ring. How many positions must the whole text have,
    at least, so that the hop of a round takes no longer than the round's matmuls?"""
    return N * 8 / Q * CHIPS[chip].bf16 / CHIPS[chip].ici


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "T": [98304, 131072, 196608], "N": [4, 8, 16], "H": [24, 40]},
    model="4·d FLOPs for each pair of a query and a key that the query sees, at rate C; other pairs cost nothing; a round takes as long as its busiest device",
    hints=[
        "What does the busiest device do in round 0, and what does it do in the other rounds?",
        "With blocks, the busiest device computes half of a block's (query, key) pairs in round 0 and all pairs in the other rounds. With stripes every device computes half of a block's pairs in each round.",
        "(N - 1) / 2 * (T/N)**2 pairs are saved.",
    ],
)
def stripes_save(chip, T, N, H):
    """Causal attention of {{ T }} positions with {{ H }} heads of d=128 runs in bfloat16 on a ring of {{ N }}
    {{ chip }} chips. All hops are overlapped. How many ms do stripes save compared with blocks, in all rounds
    together?"""
    rows = T // N
    half = rows * (rows + 1) / 2
    blocks, stripes = half + (N - 1) * rows**2, N * half
    return matmul_time(4 * 128 * H * (blocks - stripes), chip)
