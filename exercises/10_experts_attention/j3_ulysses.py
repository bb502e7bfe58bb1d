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

Check your work: shardlings check j3_ulysses
Notes on all exercises of this module: see README.md, or run shardlings show 10_experts_attention
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def rotate(a, position):
    """Turn pairs of numbers of a[..., T, heads, d] by an angle that grows with position[T] (rotary embedding)."""
    half = a.shape[-1] // 2
    angle = position[:, None, None] / 10.0 ** jnp.arange(half)
    cos, sin, first, second = jnp.cos(angle), jnp.sin(angle), a[..., :half], a[..., half:]
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], -1)


def ulysses(q, k, v):
    """Return causal attention with rotated queries and keys.

    Args: one device's blocks of q float32[B, T, Q, d] and of k and v float32[B, T, K, d], all sharded P(None, 'x').
    Returns: one device's block of float32[B, T, Q, d] sharded P(None, 'x').
    """
    # TODO: write this function
    raise NotImplementedError("ulysses")


# Question ulysses_bytes [MB]
# `ulysses` runs on 3 texts of 24576 positions and 8 devices, with 48 query heads and 16 key heads
# of 128 bfloat16 numbers. How many MB does each device send?
#
# Answer in MB (a bare number), or with a unit.
# Model: 1 MB is 10^6 bytes.
ulysses_bytes = None  # TODO: your answer


# Question ulysses_time [us]
# `ulysses` runs on 2 texts of 40960 positions and a ring of 16 v4p chips, with 48 query heads and
# 16 key heads of 128 bfloat16 numbers. How long do its all-to-alls take, one after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: ring, bandwidth only: an all-to-all of V bytes on all devices together takes V / (4·W).
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
ulysses_time = None  # TODO: your answer


# ## Going further
#
# **In real systems.** DeepSpeed-Ulysses works like this. The number of key heads bounds the number of devices. Ring
# attention (exercise J2) has no such bound, and sends keys and values N − 1 times.
#
# **Read on.** *DeepSpeed Ulysses: System Optimizations for Enabling Training of Extreme Long Sequence Transformer
# Models*.
