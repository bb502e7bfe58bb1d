"""# F1 Overlap a gather with its matmul

`A[B_X, D_Y] · W[D, F_Y] → C[B_X, F_Y]` sums over D, and y cuts D in `A`. So a device needs all shards of its rows of
`A`. But `C` is a sum, and each term needs one shard: multiply one shard while the next shard
travels.

```
   y = 4, on device y1; W_j are the rows of W that belong to shard A_j

               on the core        on the wires
   round 0     C  = A_1 · W_1     A_1 leaves for y2, A_0 comes from y0
   round 1     C += A_0 · W_0     A_0 leaves for y2, A_3 comes from y0
   round 2     C += A_3 · W_3     A_3 leaves for y2, A_2 comes from y0
   round 3     C += A_2 · W_2     nothing: the last shard goes nowhere
```

**Write** `ag_matmul(a, w)`, a body for `shard_map`, with `check_vma=False`. The ring is mesh axis `y`.

| | shape of the block | whole array |
|---|---|---|
| `a` | [B/X, D/Y] | `P("x", "y")` |
| `w` | [D, F/Y] | `P(None, "y")` |
| returns | [B/X, F/Y] | `P("x", "y")` |

All arrays are float32, or all are bfloat16; `C` has the dtype of `A` and `W`.

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| C equals A @ W, also in bfloat16 on a ring of eight | | |
| N − 1 `ppermute`s over y to a neighbour, one shard each, no other collective | sends (N − 1)·V/N bytes | 3 permutes, 900 bytes |
| the program has the same hops at real sizes as at the value check's small sizes, and every matmul runs once | 2·(B/X)·D·(F/Y) FLOPs | |
| no hop waits for a matmul, and each hop overlaps a matmul | a hop can overlap a matmul that does not need the hop's data | |
| by the grader's clock, on eight v5e chips, profile *ideal* | overlap saves at least 80 % of the time that it can save; the step takes at most 1.2 times as long as its matmuls | |
| a device holds at most four shards of `A` at the same time, in addition to `W` and `C` | the grader checks this with F/Y ≤ 2048 | |

**Symbols.** N (Y in the questions): devices of the ring. B, D, F, G: dimensions. V: bytes of a device's rows of `A`.
W1: one-way bandwidth of a link. C: FLOP/s of a chip.

**Small case.** The arrays are float32[10, 60] and [60, 84] on x=2, y=4. A shard is [5, 15], 300 bytes. A device sends
900 bytes in three hops. It computes four matmuls [5, 15] · [15, 21].

Check your work: shardlings check f1_ag_matmul
Notes on all exercises of this module: see README.md, or run shardlings show 06_overlap
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def ag_matmul(a, w):
    """Return the block of C[B_X, F_Y], C = A W, from blocks of A[B_X, D_Y] and W[D, F_Y]; the ring is mesh axis 'y'."""
    # TODO: write this function
    raise NotImplementedError("ag_matmul")


# Question ag_matmul_bytes [MB]
# `A` is bfloat16[6144, 10240], sharded `A[B_X, D_Y]` with X=2 and Y=16. How many MB does each
# device send in `ag_matmul`?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring; each hop sends one shard; 1 MB is 10^6 bytes.
ag_matmul_bytes = None  # TODO: your answer


# Question ag_matmul_overlaps_from [a number]
# `ag_matmul` runs in bfloat16 on a ring of 8 v5p chips. No hop may take longer than a matmul. How
# many columns F must the whole `W[D, F]` have at least? Count the columns of all devices.
#
# Answer with a bare number.
# Model: a hop takes (bytes of a shard) / W1, with W1 the one-way bandwidth of a link; a matmul
# takes FLOPs / C; hops and matmuls have no latency.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
ag_matmul_overlaps_from = None  # TODO: your answer


# Question ag_matmul_time [us]
# Two calls of `ag_matmul` run one after the other, in bfloat16 on a ring of 8 v4p chips. The
# first multiplies A[4096, 8192] by W[8192, 12288], the second multiplies the same A by W[8192,
# 69632]. Axis y cuts D in A. How long do the two calls take together?
#
# Answer in us (a bare number), or with a unit.
# Model: a hop takes (bytes of a shard) / W1, with W1 the one-way bandwidth of a link; a matmul
# takes FLOPs / C; hops and matmuls have no latency.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); bf16 2.75e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
ag_matmul_time = None  # TODO: your answer


# ## Going further
#
# **In time.** The grader's clock computes the times of this picture for bfloat16[8192, 16384] · [16384, 53248] on 2x4
# v5e chips, which form a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture
# `D` is a matmul and `P` is a hop; times are in us.
#
# ```
# right: 9,069.576 us, 7 permutes, 100% of their time overlapped
#         │0                      │5,000
# compute D════D═════D════D═════D════D════D═════D════
# link y+   P··  P···  P··  P··· P···  P··  P···
#
# each hop waits: 14,289.154 us, 7 permutes, 0% of their time overlapped
#         │0                      │5,000                  │10,000
# compute D════    D════    D════    D════    D════    D════    D════    D════
# link y+      P···     P···     P···     P···     P···     P···     P···
#
# loop, receives first: 14,289.154 us, 7 permutes, 0% of their time overlapped
#         │0
# compute D════    D════    D════………    D════
# link y+      P···     P···     ………P···
# ```
#
# **The pictures.** All three programs have the same hops and matmuls. In the second picture each hop waits for the matmul
# of the shard that it sends. The program of the third picture is a `fori_loop` whose rounds receive, then multiply.
#
# **Loops.** JAX unrolls a Python loop. In an unrolled loop the order of lines does not matter: each operation that does
# not need a hop can run beside that hop. So an unrolled "receive, then multiply" runs as in the first picture. A round of
# `fori_loop` or `scan` ends when all operations in it have ended, and nothing of the next round begins before that. The
# TPU compiler also keeps the rounds apart with its default options (libtpu 0.0.42.1, on v5e, v6e, v5p and 7x). So a loop
# overlaps its hops only if, *in one round*, the matmul needs no data of the hop and the hop needs no result of the
# matmul. A loop that receives, then multiplies, gives right values and sends the right bytes, but all its hops are
# exposed. With `unroll=True` JAX unrolls such a loop. Compiler options can move operations from one round to another.
# With `xla_tpu_enable_ici_ag_pipelining=true` the v5e compiler gathers the next layer of an FSDP loop beside the current
# round's matmul.
#
# **When it pays.** This ring uses one direction of each link; `all_gather` uses both. If a hop takes more than twice as
# long as a matmul, gathering first is faster, and the ring only saves memory. Exercise F3 uses both directions.
#
# **What v5e does with `a @ w`.** The compiler for v5e does not gather first. Under `jit`, with these sizes and shardings
# and no options, this compiler (libtpu 0.0.42.1) writes a ring itself. Its loop goes both ways and multiplies two shards
# at a time:
#
# ```
#                     on the core                on the wires
# before the loop     nothing                    one hop one way
# round 1             2 shards, 2,860 us         a hop each way
#                     2 shards, 3,213 us         a hop each way
# round 2             as round 1                 as round 1
# ```
#
# The times are the compiler's own counts of cycles, divided by 1.5 GHz. By these counts the matmuls of the compiler's own ring
# take 12,146 us in all. The matmuls of the ring that you write here take 9,605 us
# (`shardlings chip f1 --on v5e:2x4 --solution`).
#
# **In real systems.** This is a "collective matmul". XLA calls it a "windowed einsum". An
# exercise of HighPerfLLMs2024 (session 4) cuts the columns of the activations and the columns of the weights.
#
# **Read on.** *How To Scale Your Model*, "Programming TPUs in JAX", worked problems.
