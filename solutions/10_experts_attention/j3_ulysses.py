"""# J3 Ulysses: from positions to heads and back

Attention computes each head separately, and needs all positions of that head. All other layers compute each
position separately. Axis x cuts the positions of a long text. One all-to-all turns "all heads of my
positions" into "all positions of my heads". A second all-to-all turns the result back.

```
            heads                                  heads
           0 1 2 3                                0 1 2 3
   x0 rows  . . . .     all-to-all:       rows    a b c d
   x1 rows  . . . .     cut the heads,    rows    a b c d     x0 has a,
   x2 rows  . . . .     join the rows     rows    a b c d     x1 has b, ...
   x3 rows  . . . .                       rows    a b c d
```

**Write** the body `ulysses(q, k, v)`: causal attention whose scores q · k are not scaled. First rotate queries and keys
with the given `rotate`, by their position *in the whole text*. Query head h uses key head `h // (Q / K)`. N divides Q
and K.

| | shape on one device | layout |
|---|---|---|
| `q`, result | float32[B, T/N, Q, d] | `P(None, "x", None, None)`: positions over x |
| `k`, `v` | float32[B, T/N, K, d] | `P(None, "x", None, None)` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| value | causal attention of whole texts | |
| what is sent | all-to-alls only; each device sends (N−1)/N of each of its blocks of q, k, v and the result, once | 5184 bytes |

Therefore send only K key heads, and repeat them for their query heads after the all-to-all.

**Symbols.** B texts, T positions, Q query heads, K key heads, d numbers per head, N devices along x.

**Small case.** B=2, T=12, Q=20, K=4, d=6, N=4, float32. A block of q is [2, 3, 20, 6] and becomes [2, 12, 5, 6]. This
block has 2880 bytes: 720 stay and 2160 are sent. Blocks of k and v have 576 bytes each: 432 of them are sent. With the
result, a device sends 2 · 2160 + 2 · 432 = 5184 bytes.

## Going further

**In real systems.** DeepSpeed-Ulysses works like this. The number of key heads bounds the number of devices. Ring
attention (exercise J2) has no such bound, and sends keys and values N − 1 times.

**Read on.** *DeepSpeed Ulysses: System Optimizations for Enabling Training of Extreme Long Sequence Transformer
Models*.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, axis, normal
from grader.expect import expect_close, expect_only, expect_traffic, needed
from grader.hardware import all_to_all_time

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 3, "y": 2}], stars=2, extension=True)


@exercise.given
def rotate(a, position):
    """Turn pairs of numbers of a[..., T, heads, d] by an angle that grows with position[T] (rotary embedding)."""
    half = a.shape[-1] // 2
    angle = position[:, None, None] / 10.0 ** jnp.arange(half)
    cos, sin, first, second = jnp.cos(angle), jnp.sin(angle), a[..., :half], a[..., half:]
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], -1)


@exercise.body(
    out_specs=P(None, "x", None, None),
    hints=[
        "Which dimension is cut before attention, and which dimension may be cut during attention?",
        "jax.lax.all_to_all splits one dimension and joins another. For the result, swap these two dimensions.",
        "swap = lambda a: jax.lax.all_to_all(a, 'x', split_axis=2, concat_axis=1, tiled=True); afterwards T is whole: jnp.arange(T).",
    ],
)
def ulysses(q, k, v):
    """Return causal attention with rotated queries and keys.

    Args: one device's blocks of q float32[B, T, Q, d] and of k and v float32[B, T, K, d], all sharded P(None, 'x').
    Returns: one device's block of float32[B, T, Q, d] sharded P(None, 'x').
    """
    q, k, v = (jax.lax.all_to_all(a, "x", split_axis=2, concat_axis=1, tiled=True) for a in (q, k, v))
    position = jnp.arange(q.shape[1])
    groups = q.shape[2] // k.shape[2]
    q, k = rotate(q, position), jnp.repeat(rotate(k, position), groups, axis=2)
    scores = jnp.einsum("bthd,bshd->bhts", q, k)
    weights = jax.nn.softmax(jnp.where(position <= position[:, None], scores, -jnp.inf))
    out = jnp.einsum("bhts,bshd->bthd", weights, jnp.repeat(v, groups, axis=2))
    return jax.lax.all_to_all(out, "x", split_axis=1, concat_axis=2, tiled=True)


ROWS = P(None, "x", None, None)
call = exercise.call(
    ulysses,
    q=normal("B", "T", "Q", "d", spec=ROWS),
    k=normal("B", "T", "K", "d", spec=ROWS),
    v=normal("B", "T", "K", "d", spec=ROWS),
    dims={"B": 2, "T": 3 * axis("x"), "Q": 5 * axis("x"), "K": axis("x"), "d": 6},
    hidden_dims={"B": 3, "T": 5 * axis("x"), "Q": 10 * axis("x"), "K": 2 * axis("x"), "d": 10},
)


def attended(q, k, v):
    """Causal attention of the whole arrays, in float64."""
    groups, half, position = q.shape[2] // k.shape[2], q.shape[3] // 2, np.arange(q.shape[1])
    turn = np.exp(1j * position[:, None, None] / 10.0 ** np.arange(half))
    q, k = ((a[..., :half] + 1j * a[..., half:]) * turn for a in (q.astype(np.float64), k.astype(np.float64)))
    scores = np.einsum("bthd,bshd->bhts", q, np.repeat(k, groups, axis=2).conj()).real
    scores[..., position > position[:, None]] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhts,bshd->bthd", weights / weights.sum(-1, keepdims=True), np.repeat(v, groups, axis=2))


@exercise.check(call, points=2)
def ulysses_value(seen):
    """ulysses: causal attention of whole texts"""
    expect_close(seen.out, attended(seen.q, seen.k, seen.v))


@exercise.check(call, points=1, public=True, after=ulysses_value)
def ulysses_traffic(seen):
    """ulysses: all-to-alls only, and q, k, v and the result are sent once each"""
    expect_only(seen, "all_to_all")
    numbers = 2 * seen.q.size + seen.k.size + seen.v.size
    n = seen.mesh["x"]
    # Wrong programs send repeated k and v, or gather the result.
    repeated, gathered = 4 * seen.q.size, numbers + (n - 1) * seen.q.size
    sent = 4 / n * (n - 1) / n
    expect_traffic(seen, at_most=needed(sent * numbers, sent * min(repeated, gathered)))


@exercise.number(
    points=0.5,
    unit="MB",
    params={"B": [2, 3], "T": [24576, 40960], "N": [4, 8, 16]},
    model="1 MB is 10^6 bytes",
    hints=[
        "Which arrays change their layout before attention, and which arrays change it after attention?",
        "q and the output have 48 heads; k and v have 16 heads. Each device holds 1 / N of an array, and 1 / N of this part stays on the device.",
        "2 bytes · B · T · 128 · (2 · 48 + 2 · 16) heads / N · (N − 1) / N",
    ],
)
def ulysses_bytes(B, T, N):
    """`ulysses` runs on {{ B }} texts of {{ T }} positions and {{ N }} devices, with 48 query heads and 16 key heads of 128 bfloat16 numbers. How
    many MB does each device send?"""
    return 2 * B * T * 128 * (2 * 48 + 2 * 16) / N * (N - 1) / N


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "B": [2, 3], "T": [24576, 40960], "N": [4, 8, 16]},
    model="ring, bandwidth only: an all-to-all of V bytes on all devices together takes V / (4·W)",
    hints=[
        "How many bytes do the four arrays have together?",
        "q and the output have 48 heads; k and v have 16 heads. V = 2 bytes · B · T · 128 · (2 · 48 + 2 · 16) heads.",
        "V / (4 · W)",
    ],
)
def ulysses_time(chip, B, T, N):
    """`ulysses` runs on {{ B }} texts of {{ T }} positions and a ring of {{ N }} {{ chip }} chips, with 48 query heads and 16 key heads of 128
    bfloat16 numbers. How long do its all-to-alls take, one after the other?"""
    return all_to_all_time(2 * B * T * 128 * (2 * 48 + 2 * 16), N, chip)
