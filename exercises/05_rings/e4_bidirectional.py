"""# E4 Both ways round

A wire carries data in both directions at the same time, and a one-way ring leaves one direction idle. Let every shard
travel both ways. Then each shard reaches you by the shorter way, after at most half a turn.

```
    what x0 holds      ring of 5                  ring of 4

    start              a . . . .                  a . . .
    round 1            a b . . e   e →, ← b       a b . d   d →, ← b
    round 2            a b c d e   d →, ← c       a b c d   c → or ← c

    e →  came forwards, from the device before x0;  ← b  came backwards
```

**Write** `bidi_all_gather(a)`, a body. The grader wraps it in `shard_map` over mesh axis `x`, with `check_vma=False`.

| | shape | layout |
|---|---|---|
| `a` | float32[I/X, J] | the device's shard of `A[I_X, J]` |
| returns | float32[I, J] | the whole `A` on every device |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| every device holds the whole `A` | | |
| only `ppermute`s, and no shard comes twice | sends at most (N − 1)·V/N bytes | 1800 bytes |
| at most ⌊N/2⌋ `ppermute`s each way round, all to neighbours | | 2 permutes each way |

N may be odd or even. With an even N the shard of the opposite device is equally far both ways. Send it one way, or half
of it each way. Do not send it twice.

**Symbols.** N (X in the questions): devices of the ring. I, J: rows and columns (L: rows in a question). V: bytes of
the whole `A`. W1: one-way bandwidth of a link.

**Small case.** On x=4, a gather of float32[120, 5] takes three permutes of 600 bytes (two forwards, one backwards), in
two rounds instead of three. On x=5 it takes four permutes of 480 bytes (two each way), in two rounds instead of four.

Check your work: shardlings check e4_bidirectional
Notes on all exercises of this module: see README.md, or run shardlings show 05_rings
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def bidi_all_gather(a):
    """Return the whole A[I, J] from a shard of A[I_X, J]; the mesh axis is 'x'."""
    # TODO: write this function
    raise NotImplementedError("bidi_all_gather")


# Question bidi_gather_time [us]
# `A` is bfloat16[8192, 6144] on a ring of 16 v5p chips. How long does `bidi_all_gather` take?
#
# Answer in us (a bare number), or with a unit.
# Model: both ways round, bandwidth only: ⌊N/2⌋ rounds; each round takes (bytes of a shard) / W1,
# with W1 the one-way bandwidth of a link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
bidi_gather_time = None  # TODO: your answer


# Question bidi_time_saved [us]
# A program gathers two arrays on a ring of 8 v5p chips: bfloat16[96, 256] and bfloat16[2304,
# 256]. How much time does the program save if it calls `bidi_all_gather` for both arrays instead
# of `ring_all_gather`, which sends one way?
#
# Answer in us (a bare number), or with a unit.
# Model: a round takes the longer of two times, 1 us and (bytes of a shard) / W1.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); hop 1 us; table
# 2026-11, from How To Scale Your Model of 2025-02-04.
bidi_time_saved = None  # TODO: your answer


# ## Going further
#
# **Latency.** A hop takes about 1 µs, even if it carries almost nothing. So for small arrays only the number of rounds
# counts. Another scheme halves each shard and sends one half all the way round in each direction. That scheme sends
# equally many bytes, but in N − 1 rounds.
#
# **In time.** The grader's clock computes the times of this picture for float32[8192, 512] on 2x4 v5e chips, which form
# a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture `k` is work of the core
# and `permute` is a hop; times are in us.
#
# ```
# one way (E1): 333.896 us, 7 permutes, 23% of their time overlapped
#         │0        │50       │100       │150      │200      │250      │300
# compute k─────   k─        k─       k─        k─       k─        k─       k─
# link x+ permute··permute···permute··permute···permute··permute···permute··
#
# both ways: 194.086 us, 7 permutes, 41% of their time overlapped
#         │0        │50       │100       │150
# compute k─────   k─k─      k─k      k─k─      k─
# link x+ permute··permute···permute··permute···
# link x-   permute··permute···permute··
# ```
#
# **In real systems.** The usual formula for an all-gather is V / W, with W the both-way bandwidth of a link. With an even
# N, this algorithm takes that time: N/2 rounds, each as long as the hop of a whole shard.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them".
