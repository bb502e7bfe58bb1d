"""# J4 Decode with a cache that is cut along its length

A model writes one token at a time. Each step reads all keys and values so far, the *KV cache*; on long texts it is larger than
the weights, and is cut: sequences over z, positions over x, heads over y.

**Task.** Write the body `decode(q, k, v, length)`. For each sequence and head: the softmax of `q · k` over the positions, and
the mean of the rows of `v` with these weights. Only the first `length` positions of a sequence are filled, one at least; what
the cache holds behind them is left from others. `q` is scaled already.

**Budget.** Over x a device may send what an all-gather of one result of `H + 2` numbers for each of its heads takes, over y
and z nothing. Keys and values stay where they are.

```
   12 positions,    x0            x1            x2
   7 filled         k k k k       k k k -       - - - -
   for each head    max, mass,    max, mass,    nothing:
                    sum of v      sum of v      no mass
                    -- one max for all; masses, sums: rescaled, added --
```

A softmax is a ratio of two sums over the positions, `Σ e^s v / Σ e^s`. Sums can be cut anywhere; ratios cannot be averaged.
Scores may be in the hundreds, where `e^s` is out of range: subtract the same number from all of a head's, the largest that any
device has.

**Small case.** Scores (0, ln 3) on x0 and (0, 0) on x1. The weights of the two softmaxes are (1/4, 3/4) and (1/2, 1/2), of the
whole (1, 3, 1, 1)/6: x0 has two thirds of the mass, not half.

**In real systems** this is flash decoding's merge by log-sum-exp, and what a cache shared by several chips needs.

**Read on.** *How To Scale Your Model*, "All About Transformer Inference".

Check your work: shardlings check j4_decode
For all exercises of this module: README.md, or shardlings show 10_experts_attention
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def decode(q, k, v, length):
    """Attention of one new token to a cache.

    Args: blocks of q float32[B, K, H] (z, y, -), of k and v float32[B, S, K, H] (z, x, y, -), of length int32[B] (z).
    Returns: a block of float32[B, K, H] (z, y, -).
    """
    # TODO: write this function
    raise NotImplementedError("decode")


# Question cache_read_time [ms]
# A layer's cache has 8 heads of 128 bfloat16 numbers. 48 sequences of 40960 positions are cut
# over x=16, y=2 and z=2 v4p chips as above. How long does a chip take to read its part of the
# layer's cache in a step?
#
# Answer in ms (a bare number), or with a unit.
# Model: HBM bandwidth only.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
cache_read_time = None  # TODO: your answer


# Question merge_time [us]
# The positions are cut over a ring of 8 v5p chips, nothing else is. How long does `decode` take
# to add masses and sums of 3584 sequences with 16 heads of 128, in float32?
#
# Answer in us (a bare number), or with a unit.
# Model: ring, bandwidth only: an all-reduce takes 2·V / W; the maximum is left out.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
merge_time = None  # TODO: your answer
