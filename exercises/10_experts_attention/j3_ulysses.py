"""# J3 Ulysses: from positions to heads and back

Attention works on each head alone, and needs all positions of it. Everything around it works on each position alone. When a
long text is cut by positions, one all-to-all turns "all heads of my positions" into "all positions of my heads", and another
one turns the result back.

**Task.** Write the body `ulysses(q, k, v)`: causal attention of texts whose positions are cut over x. `rotate` is given; it turns
queries and keys by their position *in the text*, before they are multiplied. There are more query heads than key heads:
query head h belongs to key head `h // (Q / K)`. Scores are `q · k`, not scaled. Both numbers of heads can be divided by N.

**Budget.** All-to-alls only. Of q, k, v and the result each device sends (N − 1)/N of its block, once.

```
            heads                                  heads
           0 1 2 3                                0 1 2 3
   x0 rows  . . . .     all-to-all:       rows    a b c d
   x1 rows  . . . .     cut the heads,    rows    a b c d     x0 has a,
   x2 rows  . . . .     join the rows     rows    a b c d     x1 has b, ...
   x3 rows  . . . .                       rows    a b c d
```

**Small case.** 2 texts of 12 positions, 8 query heads and 4 key heads of 6 numbers, N=4: a block of q is [2, 3, 8, 6], and becomes
[2, 12, 2, 6]. Its 1152 bytes keep a quarter at home: 864 are sent.

**In real systems**: DeepSpeed-Ulysses. The number of key heads bounds the number of devices; ring attention (J2) has no such
bound, and sends keys and values N − 1 times.

**Read on.** *DeepSpeed Ulysses: System Optimizations for Enabling Training of Extreme Long Sequence Transformer Models*.

Check your work: shardlings check j3_ulysses
For all exercises of this module: README.md, or shardlings show 10_experts_attention
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def rotate(a, position):
    """Turn pairs of numbers of a[..., T, heads, d] by an angle that grows with position[T]: rotary embedding."""
    half = a.shape[-1] // 2
    angle = position[:, None, None] / 10.0 ** jnp.arange(half)
    cos, sin, first, second = jnp.cos(angle), jnp.sin(angle), a[..., :half], a[..., half:]
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], -1)


def ulysses(q, k, v):
    """Causal attention with rotated queries and keys.

    Args: blocks of q float32[B, T, Q, d], of k and v float32[B, T, K, d], all (-, x, -, -).
    Returns: a block of float32[B, T, Q, d] (-, x, -, -).
    """
    # TODO: write this function
    raise NotImplementedError("ulysses")


# Question ulysses_bytes [MB]
# 3 texts of 24576 positions on 8 devices; 48 query heads and 16 key heads of 128 bfloat16
# numbers. How many MB does each device send in `ulysses`?
#
# Answer in MB (a bare number), or with a unit.
# Model: 1 MB is 10^6 bytes.
ulysses_bytes = None  # TODO: your answer


# Question ulysses_time [us]
# 2 texts of 40960 positions on a ring of 16 v4p chips; 48 query heads and 16 key heads of 128
# bfloat16 numbers. How long do the all-to-alls of `ulysses` take, one after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: ring, bandwidth only: an all-to-all of V bytes in all takes V / (4·W).
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
ulysses_time = None  # TODO: your answer
