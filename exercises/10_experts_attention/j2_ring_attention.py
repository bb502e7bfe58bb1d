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

Check your work: shardlings check j2_ring_attention
Notes on all exercises of this module: see README.md, or run shardlings show 10_experts_attention
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def ring_attn(q, k, v, *, causal, striped):
    """Return the attention of a text. cp cuts its positions, in blocks or in stripes, and tp cuts its heads.

    Args: one device's q, k and v, blocks of float32[T, H, d] sharded P('cp', 'tp'). causal: a query sees positions up to its own.
        striped: device i has every N-th position, from i on.
    Returns: one device's block of float32[T, H, d] sharded P('cp', 'tp').
    """
    # TODO: write this function
    raise NotImplementedError("ring_attn")


# Question ring_overlaps_from [a number]
# Attention without a causal mask runs in bfloat16 on a ring of 12 v5p chips. It has 64 query
# heads and 8 key heads, and sends keys and values of these 8 heads round the ring. How many
# positions must the whole text have, at least, so that the hop of a round takes no longer than
# the round's matmuls?
#
# Answer with a bare number.
# Model: a hop takes its bytes / W1, one direction of a link; matmuls take FLOPs / C.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
ring_overlaps_from = None  # TODO: your answer


# Question stripes_save [ms]
# Causal attention of 98304 positions with 24 heads of d=128 runs in bfloat16 on a ring of 4 v4p
# chips. All hops are overlapped. How many ms do stripes save compared with blocks, in all rounds
# together?
#
# Answer in ms (a bare number), or with a unit.
# Model: 4·d FLOPs for each pair of a query and a key that the query sees, at rate C; other pairs
# cost nothing; a round takes as long as its busiest device.
# Hardware: v4p: bf16 2.75e14 FLOP/s; table 2026-11, from How To Scale Your Model of 2025-02-04.
stripes_save = None  # TODO: your answer


# ## Going further
#
# **Stripes.** With blocks, the last device computes in all rounds, but the first device computes in one round. Each round
# waits for the slowest device. With stripes, the queries of a device see, on average, half of the keys of every device.
# So all devices compute about equally much in every round.
#
# **In real systems.** Context parallelism for long texts works like this. Devices add blocks to the softmax as flash
# attention does. Exercise J3 exchanges positions for heads instead. This exchange sends fewer bytes, but needs enough
# heads.
#
# **Read on.** *Ring Attention with Blockwise Transformers for Near-Infinite Context*; *Striped Attention*.
