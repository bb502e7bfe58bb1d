"""# F1 A gather that hides behind its matmul

`A[B_X, D_Y] · W[D, F_Y] → C[B_X, F_Y]`: y cuts columns of `A` and of `W`, and D is what the product sums over, so every
device needs the rest of its rows of `A`. Gather them first, and the core waits for all of them. But `C` is a sum over
the shards of `A`, and each term needs one: multiply the shard that is here while the next one is on its way.

**Task.** Write the body for `shard_map` (which is around it, with `check_vma=False`), a ring over y.

**Budget.** N − 1 `ppermute`s over y to a neighbour, one shard each, and no other collective. Every product once. No hop
waits for a product, and each has one beside it that need not wait for the hop. On a ring of eight v5e chips nine tenths
of the hops' time lie under products, and the step takes at most 1.2 times as long as its products. With a narrow `W`
(F/Y = 2048 and less) a device never holds more than four shards of `A`.

```
   y = 4, on device y1; W_j are the rows of W that belong to shard A_j

               on the core        on the wires
   round 0     C  = A_1 · W_1     A_1 leaves for y2, A_0 comes from y0
   round 1     C += A_0 · W_0     A_0 leaves for y2, A_3 comes from y0
   round 2     C += A_3 · W_3     A_3 leaves for y2, A_2 comes from y0
   round 3     C += A_2 · W_2     nothing: the last shard goes nowhere
```

**Small case.** float32[10, 60] · [60, 84] on x=2, y=4: shards of [5, 15], 300 bytes. Three hops, 900 bytes sent by each
device, and four products [5, 15] · [15, 21].

**In time**, as the course's clock lays it out: bfloat16[8192, 16384] · [16384, 53248] on 2x4 v5e chips, which form a
ring; `D` is a product and `P` is a hop, times are in us.

```
right: 9,069.576 us, 7 permutes, 100% of their time hidden
        │0                      │5,000
compute D════D═════D════D═════D════D════D═════D════
link y+   P··  P···  P··  P··· P···  P··  P···

each hop waits: 14,289.154 us, 7 permutes, 0% of their time hidden
        │0                      │5,000                  │10,000
compute D════    D════    D════    D════    D════    D════    D════    D════
link y+      P···     P···     P···     P···     P···     P···     P···

loop, receives first: 14,289.154 us, 7 permutes, 0% of their time hidden
        │0
compute D════    D════    D════………    D════
link y+      P···     P···     ………P···
```

**Loops.** All three have the same hops and products. In the second, each hop waits for the product of what it sends. The
third is a `fori_loop`: receive, then multiply. In a Python loop, which JAX writes out, the same lines make the first
picture: their order means nothing, and whatever does not need a hop can run beside it. But a round of `fori_loop` or
`scan` ends when all in it has ended, on TPUs too, and nothing of the next one begins before. So a loop is right here if
hop and product *of one round* do not need each other. One that receives, then multiplies gives right values and traffic
and hides nothing; `unroll=True` would write it out.

**When it pays.** This ring uses one direction of each link, `all_gather` both. Where a hop takes more than twice as long
as a product, gathering first is faster, and the ring only saves memory. F3 goes both ways.

**In real systems**: "collective matmul", or "windowed einsum" in XLA, which can write such rings itself. Columns of
activations times columns of weights is the scheme for which an exercise of HighPerfLLMs2024 (session 4) asks for an order.

**Read on.** *How To Scale Your Model*, "Programming TPUs in JAX", worked problems.

Check your work: shardlings check f1_ag_matmul
For all exercises of this module: README.md, or shardlings show 06_overlap
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def ag_matmul(a, w):
    """Blocks of A[B_X, D_Y] and W[D, F_Y] -> the block of C[B_X, F_Y], C = A W; the ring is mesh axis 'y'."""
    # TODO: write this function
    raise NotImplementedError("ag_matmul")


# Question ag_matmul_bytes [MB]
# `A` is bfloat16[6144, 10240], sharded `A[B_X, D_Y]` with X=2 and Y=16. How many MB does each
# device send in `ag_matmul`?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring, hops of one shard; 1 MB is 10^6 bytes.
ag_matmul_bytes = None  # TODO: your answer


# Question ag_matmul_hides_from [a number]
# `ag_matmul` in bfloat16 on a ring of 16 v5p chips. How many columns must `W[D, F]` have, F over
# all devices, that no hop takes longer than a product?
#
# Answer with a bare number.
# Model: a hop takes the bytes of a shard / W1, one direction of a link, a product takes FLOPs /
# C; neither starts up late.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
ag_matmul_hides_from = None  # TODO: your answer


# Question ag_matmul_time [us]
# A[4096, 8192] (D over y) meets first W[8192, 12288], then W[8192, 69632], each in an `ag_matmul`
# of its own, in bfloat16 on a ring of 8 v4p chips. How long do the two take, one after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: a hop takes the bytes of a shard / W1, one direction of a link, a product takes FLOPs /
# C; neither starts up late.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
ag_matmul_time = None  # TODO: your answer
