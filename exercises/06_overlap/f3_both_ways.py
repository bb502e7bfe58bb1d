"""# F3 Collective matmuls, both ways round

The rings of F1 and F2 leave one direction of every link idle. Where a hop takes longer than a product that shows: let
half of what travels go one way round and half the other, and hops are over in half the time.

**Task.** Write F1 and F2 again, both ways round: `both_ways_ag_matmul` for `A[B_X, D_Y] · W[D, F_Y] → C[B_X, F_Y]` and
`both_ways_matmul_rs` for `T[B_X, F_Y] · W[F_Y, D] → Out[B_X, D_Y]`. They are bodies for `shard_map` (which is around
them, with `check_vma=False`), on a ring over y. Rows and columns may be odd in number: halves differ by one then.

**Budget.** `ppermute`s over y to a neighbour and no other collective; in all N − 1 blocks from each device as before,
and in neither direction more than ⌊N/2⌋, or N − 1 of the larger halves. Every product once, in parts if you like, and
beside each hop a product that need not wait for it. On a ring of eight v5e chips, with the sizes below, the step takes
at most 1.4 times as long as its products (`both_ways_matmul_rs` 1.55 times: it adds sums, too); one way round it takes
1.6 times as long.

```
   y = 4, on device y1; U_j and L_j are the upper and lower rows of A_j

            on the core        to y2, from y0   to y0, from y2
   round 0  U_1·W_1, L_1·W_1   U_1, U_0         L_1, L_2
   round 1  U_0·W_0, L_2·W_2   U_0, U_3         L_2, L_3
   round 2  U_3·W_3, L_3·W_3   U_3, U_2         L_3, L_0
   round 3  U_2·W_2, L_0·W_0
```

Halves of columns do as well. So does E4's way, whole shards for half as many rounds; with N even mind the one of the
device opposite, which both directions could bring. A sum goes home both ways likewise.

**Small case.** float32[12, 60] · [60, 84] on x=2, y=4: shards of [6, 15], 360 bytes, halves of 180. Three rounds, 540
bytes sent each way by each device, 1080 in all.

**In time**, as the course's clock lays it out: float32[8192, 32768] · [32768, 40960] on 2x4 v5e chips, which form a
ring; `D` is a product, `k` is other work of the core and `P` is a hop, times are in us.

```
one way (F1): 22,622.462 us, 7 permutes, 58% of their time hidden
        │0             │5,000         │10,000        │15,000        │20,000
compute D════    D════    D════    D════    D════    D════    D════    D════
link y+ permute··permute··permute··permute··permute··permute··permute··

both ways: 14,689.754 us, 14 permutes, 100% of their time hidden
        │0             │5,000         │10,000
compute kD══D═D══D═D══D══D═D══D══D═D══D═D══D══D═D══k
link y+   P··· P··· P····P···· P··· P··· P····
link y-     P···· P··· P··· P····P···· P··· P···

both halves forth: 22,323.268 us, 14 permutes, 63% of their time hidden
        │0             │5,000         │10,000        │15,000        │20,000
compute kD══D═D══D══  D══ D══  D══ D══  D═  D══  D═  D══  D═  D══  D═  D══k
link y+ P····P···P····P···P····P···P····P···P····P···P····P···P····P···
```

**In real systems**: XLA's windowed einsum has a form that goes both ways. Halved products are less efficient: each
reads and writes all of `C`, or takes half the rows. See which half costs less memory traffic.

**Read on.** *How To Scale Your Model*, "Programming TPUs in JAX", worked problems (the bidirectional one).

Check your work: shardlings check f3_both_ways
For all exercises of this module: README.md, or shardlings show 06_overlap
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def both_ways_ag_matmul(a, w):
    """Blocks of A[B_X, D_Y] and W[D, F_Y] -> the block of C[B_X, F_Y], C = A W; the ring is mesh axis 'y'."""
    # TODO: write this function
    raise NotImplementedError("both_ways_ag_matmul")


def both_ways_matmul_rs(t, w):
    """Blocks of T[B_X, F_Y] and W[F_Y, D] -> the block of Out[B_X, D_Y], Out = T W; the ring is mesh axis 'y'."""
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
# `W[D, F]` has F = 10240 columns, in bfloat16 on v5p. Up to how many chips may the ring of
# `both_ways_ag_matmul` have such that no hop takes longer than the products of a round?
#
# Answer with a bare number.
# Model: half of a block goes each way; a hop takes its bytes / W1, one direction of a link, the
# products of a round FLOPs / C; not rounded.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
both_ways_most_chips = None  # TODO: your answer


# Question both_ways_time_saved [us]
# A[6144, 8192] (D over y) meets first W[8192, 14336], then W[8192, 28672], in bfloat16 on a ring
# of 8 v4p chips. How much time do two `both_ways_ag_matmul` save against two `ag_matmul`, which
# go one way?
#
# Answer in us (a bare number), or with a unit.
# Model: half of a block goes each way; a hop takes its bytes / W1, one direction of a link, the
# products of a round FLOPs / C.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
both_ways_time_saved = None  # TODO: your answer
