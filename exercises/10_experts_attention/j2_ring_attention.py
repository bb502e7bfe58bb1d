"""# J2 Ring attention

A text is so long that axis cp cuts its positions, in attention, too. Queries stay on their devices. Blocks of keys
and values go round a ring, and no device ever holds all of them. Each round folds one block into a running softmax.

```
   N = 3, causal, on device 1         so far, for each query and head
   round 0   q1, k1 v1: half of it    largest score, mass, sum of v
   round 1   q1, k0 v0: all of it     mass and sum times e^(old - new)
   round 2   q1, k2 v2: nothing       e^-inf = 0 is added
```

**Write** the body `ring_attn(q, k, v, *, causal, striped)`. For each head: the softmax of q · k over the positions,
not scaled, and the mean of the rows of v with these weights. With `causal` a query sees its own position and those
before it.

| | whole shape | layout |
|---|---|---|
| `q`, `k`, `v`, result | float32[T, H, d] | `P("cp", "tp", None)`: T/N positions, some heads |

Device i has positions i · T/N and on; with `striped` it has every N-th position, from i on.

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| `ring_value`, `ring_whole`, `ring_stripes` | blocks, causal and not; stripes | |
| `ring_gradients` | gradients of q, k and v | |
| `ring_sent` | forward pass: K and V are sent N − 1 times; nothing over tp | 2 · 7 blocks |
| `ring_held` | forward pass, cp=8: only what one round needs; K and V of all devices are too much | |
| `ring_back` | with gradients: K, V and their gradients are sent N more times at most | 2 · 3 + 4 · 4 blocks (cp=4) |
| `ring_kept` | with gradients, cp=8: no scores or weights of a finished round | |

A block may carry one number more per row. Allowed: JAX's gradients with `jax.checkpoint` around each round, which
keep each round's K and V. Your own backward pass can keep neither, and send K, V and the sums of their gradients
round.

**Symbols.** T positions, N devices along cp, H (Q) query heads, d numbers per head; mass: Σ e^(score − max). W1
one-way bandwidth of a link, C a chip's FLOP/s.

**Small case.** Round 0 has scores (1, 2): max 2, mass e^-1 + 1 = 1.368. Round 1 has score 4: max 4. The old mass is
multiplied by e^(2 − 4) = 0.135: 1.368 · 0.135 + 1 = 1.185. Without that factor it would be 2.368.

Check your work: shardlings check j2_ring_attention
For all exercises of this module: README.md, or shardlings show 10_experts_attention
Going further: below the code
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def ring_attn(q, k, v, *, causal, striped):
    """Attention of a text whose positions are cut over cp, in blocks or in stripes, and its heads over tp.

    Args: blocks of q, k and v float32[T, H, d] (cp, tp, -). causal: a query sees positions up to its own.
    Returns: a block of float32[T, H, d] (cp, tp, -).
    """
    # TODO: write this function
    raise NotImplementedError("ring_attn")


# Question ring_hides_from [a number]
# Attention in bfloat16, not causal, on a ring of 16 v4p chips: 64 query heads, and 8 key heads
# that are sent round as 8. How many positions must a text have, over all chips, that no round's
# hop takes longer than its products?
#
# Answer with a bare number.
# Model: a hop takes its bytes / W1, one direction of a link; products take FLOPs / C.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
ring_hides_from = None  # TODO: your answer


# Question stripes_save [ms]
# Causal attention of 98304 positions with 24 heads of d=128, bfloat16, on a ring of 4 v4p chips;
# hops are hidden. How many ms do the rounds take less with stripes than with blocks?
#
# Answer in ms (a bare number), or with a unit.
# Model: 4·d FLOPs for each pair of a query and a key that it sees, at C; nothing for other pairs;
# a round takes as long as its busiest device.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
stripes_save = None  # TODO: your answer


# ## Going further
#
# **Stripes.** With blocks the last device computes in all rounds and the first in one, and each round waits for the
# slowest device. With stripes a query sees about half of the keys of every device. So all devices compute about the
# same in every round.
#
# **In real systems.** Context parallelism for long texts. Devices fold in blocks as flash attention does. J3
# exchanges positions for heads instead. That sends less, but needs enough heads.
#
# **Read on.** *Ring Attention with Blockwise Transformers for Near-Infinite Context*; *Striped Attention*.
