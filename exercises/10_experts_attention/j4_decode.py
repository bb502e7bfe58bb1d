"""# J4 Decode with a cache that is cut along its length

A model writes one token at a time, and each step reads all keys and values so far: the *KV cache*. The cache can be
larger than the weights. So z cuts the cache's sequences, x cuts its positions, and y cuts its heads. A mean with
softmax weights is a ratio of two sums over positions, Σ e^s v / Σ e^s. Devices can add such sums, but they cannot
average the ratios.

```
   12 positions,    x0            x1            x2
   7 filled         k k k k       k k k -       - - - -
   for each head    max, mass,    max, mass,    nothing:
                    sum of v      sum of v      no mass
                    -- one max for all; masses, sums: rescaled, added --
```

**Write** the body `decode(q, k, v, length)`. For each sequence and head, take the softmax of q · k over the first
`length` positions. The result is the mean of the rows of v with these weights. `q` is already scaled.

| | whole shape | layout |
|---|---|---|
| `q`, result | float32[B, K, H] | `P("z", "y", None)` |
| `k`, `v` | float32[B, S, K, H] | `P("z", "x", "y", None)` |
| `length` | int32[B], from 1 to S | `P("z")` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| value | the mean of v over the filled positions, weighted by the softmax | |
| what is sent | over x at most (X−1) · B/Z · K/Y · (H + 2) numbers: an all-gather of H + 2 numbers for each of the device's sequences and heads | 84 bytes |
| | nothing over y and z | |

Positions from `length` on hold old data: ignore them. Scores may be in the hundreds, so that e^s overflows. From all
scores of a sequence and head, subtract the largest such score on any device.

**Symbols.** B sequences, S positions, K heads of H numbers; X, Y, Z sizes of mesh axes; s score, mass Σ e^(s −
max).

**Small case.** x0 has the scores (0, ln 3), and x1 has (0, 0). Over the scores of x0 only, the weights are (1/4, 3/4);
over the scores of x1 only, they are (1/2, 1/2). Over all scores they are (1, 3, 1, 1)/6, so x0 has 2/3 of the mass.
With B=6, K=2, H=5 on z=x=y=2 a device sends (X−1) · B/Z · K/Y · (H + 2) = 1 · 3 · 1 · 7 numbers, 84 bytes.

Check your work: shardlings check j4_decode
Notes on all exercises of this module: see README.md, or run shardlings show 10_experts_attention
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def decode(q, k, v, length):
    """Return the attention of one new token to a cache.

    Args: one device's blocks of q float32[B, K, H] sharded P('z', 'y'), of k and v float32[B, S, K, H] sharded P('z', 'x', 'y'), and
        of length int32[B] sharded P('z').
    Returns: one device's block of float32[B, K, H] sharded P('z', 'y').
    """
    # TODO: write this function
    raise NotImplementedError("decode")


# Question cache_read_time [ms]
# A layer's cache has 8 heads of 128 bfloat16 numbers, and 48 sequences of 49152 positions. A mesh
# x=12, y=4, z=4 of v4p chips cuts the cache as in the table. How long does a chip take to read
# its part of the layer's cache in a step?
#
# Answer in ms (a bare number), or with a unit.
# Model: HBM bandwidth only.
# Hardware: v4p: HBM 32 GB at 1.2e12 B/s; table 2026-11, from How To Scale Your Model of
# 2025-02-04.
cache_read_time = None  # TODO: your answer


# Question merge_time [us]
# A ring of 8 v5p chips cuts only the positions. How long does `decode` take to add the masses and
# the sums of v of 3584 sequences with 64 heads of 32 numbers, in float32?
#
# Answer in us (a bare number), or with a unit.
# Model: ring, bandwidth only: an all-reduce takes 2·V / W; the all-reduce of the maximum is left
# out.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
merge_time = None  # TODO: your answer


# ## Going further
#
# **In real systems.** Flash decoding merges the devices' results in this way, by their log-sum-exp. Every cache that is
# cut along its positions needs such a merge.
#
# **Read on.** *How To Scale Your Model*, "All About Transformer Inference".
