"""# F2 Overlap a reduce-scatter with its matmul

`T[B_X, F_Y] · W[F_Y, D] → Out[B_X, D_Y]` sums over F, which y cuts. So each device has a partial sum of all columns of
`Out`, and needs the whole sum of its own columns. The running sum of exercise E2 needs one block of columns at a time:
compute the next block while the sum travels.

```
   y = 4, on device y1; P_j = T · W_j is its part of block j

               on the core     on the wires
   round 0     S = P_0         nothing
   round 1     P_3, S += P_3   P_0 leaves for y2, S for block 3 comes
   round 2     P_2, S += P_2   old S leaves for y2, S for block 2 comes
   round 3     P_1, S += P_1   old S leaves for y2, S for block 1 comes
```

**Write** `matmul_rs(t, w)`, a body for `shard_map`, with `check_vma=False`. The ring is mesh axis `y`.

| | shape of the block | whole array |
|---|---|---|
| `t` | [B/X, F/Y] | `P("x", "y")` |
| `w` | [F/Y, D] | `P("y", None)` |
| returns | [B/X, D/Y] | `P("x", "y")` |

All arrays are float32, or all are bfloat16; `Out` has the dtype of `T` and `W`.

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| Out equals T @ W, also in bfloat16 on a ring of eight | | |
| N − 1 `ppermute`s over y to a neighbour, one block each, no other collective | sends at most (N − 1)·4·(B/X)·(D/Y) bytes | 3 permutes, 900 bytes |
| the program has the same hops at real sizes as at the value check's small sizes, and every matmul runs once | 2·(B/X)·(F/Y)·D FLOPs | |
| each hop overlaps a matmul that does not need the hop's data | | |
| by the grader's clock, on eight v5e chips, profile *ideal* | overlap saves at least 75 % of the time that it can save; the step takes at most 1.35 times as long as its matmuls | |
| no device holds the partial sums of all N blocks at the same time | | |

A hop carries sums, so it may wait for matmuls. Sums of bfloat16 operands may be bfloat16 or float32.

**Symbols.** N (Y in the questions): devices of the ring. B, F, D, G: dimensions. V: bytes of a device's rows of `Out`.
W1, W: one-way, both-way bandwidth of a link. C: FLOP/s.

**Small case.** The arrays are float32[10, 84] and [84, 60] on x=2, y=4. A block is [5, 15], 300 bytes. A device sends
900 bytes in three hops. It computes four matmuls [5, 21] · [21, 15].

Check your work: shardlings check f2_matmul_rs
Notes on all exercises of this module: see README.md, or run shardlings show 06_overlap
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def matmul_rs(t, w):
    """Return the block of Out[B_X, D_Y], Out = T W, from blocks of T[B_X, F_Y] and W[F_Y, D]; the ring is mesh axis
    'y'."""
    # TODO: write this function
    raise NotImplementedError("matmul_rs")


# Question matmul_rs_bytes [MB]
# `T` is bfloat16[6144, 28672] and `W` is bfloat16[28672, 10240], with X=2 and Y=16. The running
# sums are float32. How many MB does each device send in `matmul_rs`?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring; each hop sends one block; 1 MB is 10^6 bytes.
matmul_rs_bytes = None  # TODO: your answer


# Question matmul_rs_overlaps_from [a number]
# `matmul_rs` on a ring of 12 v4p chips multiplies bfloat16 arrays and sends running sums in
# float32. No hop may take longer than a matmul. How many columns F must the whole `T[B, F]` have
# at least? Count the columns of all devices.
#
# Answer with a bare number.
# Model: a hop takes (bytes of a block) / W1, with W1 the one-way bandwidth of a link; a matmul
# takes FLOPs / C; hops and matmuls have no latency.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); bf16 2.75e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
matmul_rs_overlaps_from = None  # TODO: your answer


# Question matmul_rs_time_saved [us]
# Two matmuls run on a ring of 4 v4p chips, all in bfloat16: T[6144, 16384] · W[16384, 12288],
# then T[6144, 40960] · W[40960, 12288]. Axis y cuts T's columns. How much time do two calls of
# `matmul_rs` save, compared with two whole matmuls that each end in `jax.lax.psum_scatter`?
#
# Answer in us (a bare number), or with a unit.
# Model: a hop takes (bytes of a block) / W1, with W1 the one-way bandwidth of a link; a matmul
# takes FLOPs / C; hops and matmuls have no latency; jax.lax.psum_scatter sends both ways round
# and takes (Y - 1) / Y · V / W.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; bf16 2.75e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
matmul_rs_time_saved = None  # TODO: your answer


# ## Going further
#
# **In time.** The grader's clock computes the times of this picture for bfloat16[8192, 65536] · [65536, 16384] on 2x4
# v5e chips, which form a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture
# `D` is a matmul, `k` is other work of the core and `P` is a hop; times are in us.
#
# ```
# right: 12,021.875 us, 7 permutes, 100% of their time overlapped
#         │0                  │5,000             │10,000
# compute D════D═════k═════k═════k═════k═════k═════k════k
# link y+         P··   P··   P··   P··   P··   P··   P··
#
# loop, adds first: 16,545.813 us, 7 permutes, 0% of their time overlapped
#         │0
# compute k═════   D════   ………D════   D════k
# link y+       P··     P··………     P··
#
# all matmuls first: 17,323.294 us, 7 permutes, 0% of their time overlapped
#         │0                  │5,000             │10,000             │15,000
# compute matmul══════════════════════════════════════k  k  k   k  k   k  k  k
# link y+                                             P·· P· P··P·· P··P·· P··
# ```
#
# **Loops.** A round of `fori_loop` or `scan` ends when all operations in it have ended (exercise F1). The round "hop,
# then add a matmul" overlaps, because the matmul does not need the sum that arrives. The round "add a matmul, then hop"
# does not overlap, because its hop needs the result of its matmul. If JAX unrolls the loop, both kinds of rounds give the
# first picture.
#
# **In float32.** Partial sums in bfloat16 lose bits with each hop. Sums in float32 send twice the bytes. The grader
# accepts both dtypes.
#
# **In real systems.** This is the second matmul of a tensor-parallel MLP with sequence parallelism. F1 is the first
# matmul of this MLP.
#
# **Read on.** *How To Scale Your Model*, "Programming TPUs in JAX", worked problems.
