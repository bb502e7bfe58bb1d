"""# J2 Ring attention

A text is so long that its positions are cut over the devices of cp, and stay cut in attention too: queries stay at home,
blocks of keys and values go round a ring, and no device ever has all of them.

**Task.** Write the body `ring_attn(q, k, v, causal=, striped=)`: for each head, the softmax of `q · k` over the positions (not
scaled), and the mean of the rows of `v` with these weights. With `causal` a query sees its own position and those before it.
A device has T/N rows: device i those from `i · T/N` on, or with `striped` every N-th, from i on. Each device may have some
of the heads only (tp); they need nothing of one another.

**Gradients** are asked too. JAX's own will do, with a `jax.checkpoint` around each round, so that no round's weights are
kept; it keeps K and V of each round. The solution keeps neither: its own backward pass sends K and V round again, and beside
them the sums of their gradients, until these are home.

**Budget.** Forward, a device sends K and V N − 1 times, and holds what one round needs: K and V of all devices are too
much. With gradients it sends K, V and their gradients N times more at most. It may keep K and V of each round, and no T/N
by T/N scores or weights of a round that is done. One number more for each row and block sent comes free.

```
   N = 3, causal, on device 1         so far, for each query and head
   round 0   q1, k1 v1: half of it    largest score, mass, sum of v
   round 1   q1, k0 v0: all of it     mass and sum times e^(old - new)
   round 2   q1, k2 v2: nothing       e^-inf = 0 is added
```

**Small case.** Scores (1, 2) in round 0: max 2, mass e^-1 + 1 = 1.368. Score 4 in round 1: max 4, and the old mass counts e^-2 of
what it did: 1.368 · 0.135 + 1 = 1.185. Without that factor it would be 2.368.

**Stripes.** When a text is cut in blocks, the last device has something to do in all rounds and the first in one, yet
each round waits for the slowest. Of two stripes each query sees about half of the other's keys, in all rounds alike.

**In real systems**: context parallelism for long texts; blocks are folded in as flash attention does it. J3 swaps
positions for heads instead, which sends less but needs enough heads.

**Read on.** *Ring Attention with Blockwise Transformers for Near-Infinite Context*; *Striped Attention*.

Check your work: shardlings check j2_ring_attention
For all exercises of this module: README.md, or shardlings show 10_experts_attention
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
