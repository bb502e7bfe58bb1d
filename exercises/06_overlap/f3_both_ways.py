"""# F3 Collective matmuls, both ways round

The rings of exercises F1 and F2 leave one direction of every link idle. If a hop takes longer than a matmul, this costs
time. Send half of each block one way round and half the other way, so that a hop takes half the time.

```
   y = 4, on device y1; U_j and L_j are the upper and lower rows of A_j

            on the core        to y2, from y0   to y0, from y2
   round 0  U_1·W_1, L_1·W_1   U_1, U_0         L_1, L_2
   round 1  U_0·W_0, L_2·W_2   U_0, U_3         L_2, L_3
   round 2  U_3·W_3, L_3·W_3   U_3, U_2         L_3, L_0
   round 3  U_2·W_2, L_0·W_0
```

**Write** two bodies for `shard_map`, with `check_vma=False`. The ring is mesh axis `y`. All arrays are float32.

| | blocks of the arguments | returns |
|---|---|---|
| `both_ways_ag_matmul(a, w)`: `A[B_X, D_Y] · W[D, F_Y]` | [B/X, D/Y], [D, F/Y] | C[B/X, F/Y] |
| `both_ways_matmul_rs(t, w)`: `T[B_X, F_Y] · W[F_Y, D]` | [B/X, F/Y], [F/Y, D] | Out[B/X, D/Y] |

**What is checked**, for each body

| check | rule, per device | small case |
|---|---|---|
| C equals A @ W (Out equals T @ W), also on a ring of eight | | |
| only `ppermute`s, N − 1 blocks in all, to neighbours over y | sends (N − 1)·V/N bytes | 1080 bytes |
| a device sends in one direction at most ⌊N/2⌋ blocks, or N − 1 times the larger half of a block | | 540 bytes with halves |
| the program has the same hops at real sizes as at the value check's small sizes, and every matmul runs once | 2·(B/X)·D·(F/Y) FLOPs | |
| by the grader's clock, on eight v5e chips, profile *ideal*: matmuls run beside the hops | the step takes at most 1.6 times as long as its matmuls | |

In `both_ways_ag_matmul` no hop may wait for a matmul. The numbers of rows and columns may be odd: then the halves
differ by one row or column. You may halve rows or columns, or send whole blocks as in exercise E4 (with an even N, send
the opposite device's block only once). You may split a matmul into parts.

**Symbols.** N (Y in the questions): devices of the ring. B, D, F, G: dimensions. V: bytes of N blocks [B/X, D/Y]. W1:
one-way bandwidth of a link. C: FLOP/s of a chip.

**Small case.** Take arrays of float32[12, 60] and [60, 84] on x=2, y=4. A shard is [6, 15], 360 bytes. Each of three
rounds sends half a shard, 180 bytes, each way: 540 bytes each way, 1080 bytes in all.

Check your work: shardlings check f3_both_ways
Notes on all exercises of this module: see README.md, or run shardlings show 06_overlap
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def both_ways_ag_matmul(a, w):
    """Return the block of C[B_X, F_Y], C = A W, from blocks of A[B_X, D_Y] and W[D, F_Y]; the ring is mesh axis 'y'."""
    # TODO: write this function
    raise NotImplementedError("both_ways_ag_matmul")


def both_ways_matmul_rs(t, w):
    """Return the block of Out[B_X, D_Y], Out = T W, from blocks of T[B_X, F_Y] and W[F_Y, D]; the ring is mesh axis
    'y'."""
    # TODO: write this function
    raise NotImplementedError("both_ways_matmul_rs")


# Question both_ways_bytes [MB]
# `A` is bfloat16[4096, 10240], sharded `A[B_X, D_Y]` with X=8 and Y=4. In `both_ways_ag_matmul`,
# how many MB does each device send in *one* direction of its link?
#
# Answer in MB (a bare number), or with a unit.
# Model: half of each shard goes each way; 1 MB is 10^6 bytes.
both_ways_bytes = None  # TODO: your answer


# Question both_ways_most_chips [a number]
# `W[D, F]` has F = 10240 columns, in bfloat16 on v5p. No hop may take longer than the matmuls of
# a round. How many chips may the ring of `both_ways_ag_matmul` have at most?
#
# Answer with a bare number.
# Model: half of a block goes each way; a hop takes its bytes / W1, with W1 the one-way bandwidth
# of a link; the matmuls of a round take FLOPs / C; not rounded.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
both_ways_most_chips = None  # TODO: your answer


# Question both_ways_time_saved [us]
# Two matmuls run in bfloat16 on a ring of 8 v4p chips: A[6144, 8192] · W[8192, 14336], then
# A[6144, 8192] · W[8192, 28672]. Axis y cuts D in A. How much time do two calls of
# `both_ways_ag_matmul` save, compared with two calls of `ag_matmul`, which go one way?
#
# Answer in us (a bare number), or with a unit.
# Model: half of a block goes each way; a hop takes its bytes / W1, with W1 the one-way bandwidth
# of a link; the matmuls of a round take FLOPs / C.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); bf16 2.75e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
both_ways_time_saved = None  # TODO: your answer


# ## Going further
#
# In `both_ways_matmul_rs` the halves of each sum travel in opposite directions. If all sums go one way round, the step
# takes 1.9 times as long as its matmuls.
#
# **In time.** The grader's clock computes the times of this picture for float32[8192, 32768] · [32768, 40960] on 2x4
# v5e chips, which form a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture
# `D` is a matmul, `k` is other work of the core and `P` is a hop; times are in us.
#
# ```
# one way (F1): 22,622.462 us, 7 permutes, 58% of their time overlapped
#         │0             │5,000         │10,000        │15,000        │20,000
# compute D════    D════    D════    D════    D════    D════    D════    D════
# link y+ permute··permute··permute··permute··permute··permute··permute··
#
# both ways: 14,689.754 us, 14 permutes, 100% of their time overlapped
#         │0             │5,000         │10,000
# compute kD══D═D══D═D══D══D═D══D══D═D══D═D══D══D═D══k
# link y+   P··· P··· P····P···· P··· P··· P····
# link y-     P···· P··· P··· P····P···· P··· P···
#
# halves forwards: 22,323.268 us, 14 permutes, 63% of their time overlapped
#         │0             │5,000         │10,000        │15,000        │20,000
# compute kD══D═D══D══  D══ D══  D══ D══  D═  D══  D═  D══  D═  D══  D═  D══k
# link y+ P····P···P····P···P····P···P····P···P····P···P····P···P····P···
# ```
#
# **In real systems.** XLA's windowed einsum has a form that goes both ways. Two matmuls of half a shard are less
# efficient than one matmul of a whole shard: each of the two reads and writes all of `C`, or has half the rows. Compare
# the memory traffic of halved rows and halved columns.
#
# **Read on.** *How To Scale Your Model*, "Programming TPUs in JAX", worked problems (the bidirectional one).
