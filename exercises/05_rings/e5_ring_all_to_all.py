"""# E5 An all-to-all from hops

In an all-to-all every device has another chunk for every other one: rows were cut, now columns shall be,
`A[I_X, J] → A[I, J_X]`. Your block has N chunks of columns; chunk c is for device c. On a ring a chunk for the k-th
device after you rides through k − 1 others. A bus does it: load everything, let off at each stop what is for it.

**Task.** Write the body for `shard_map`: a block of `A[I_X, J]` becomes a block of `A[I, J_X]`, with `ppermute` as
the only collective.

**Budget.** N·(N − 1)/2 *chunk-hops* from each device: every chunk (V/N² bytes) times the wires it passes. Each
`ppermute` is a rotation of the ring; one by k places passes k wires, or N − k the other way if these are fewer.

```
   "23" is the chunk from x2 for x3; on each bus, the nearest stop first

                     at x0       at x1       at x2       at x3
   start           01 02 03    12 13 10    23 20 21    30 31 32
   hop 1 (3)       30 31 32    01 02 03    12 13 10    23 20 21    each lets
   hop 2 (2)       20 21       31 32       02 03       13 10       its first
   hop 3 (1)       10          21          32          03          one off
```

Sort the chunks by distance, not by number, and the one to let off is always the first.

**Small case.** float32[120, 240] on x=4: a block of [30, 240], chunks of [30, 60], 7200 bytes. Each device sends 6
chunks, 43,200 bytes. An all-gather from hops would send 3 blocks of 4 chunks, 86,400 bytes, to keep a quarter of it.

**Beyond.** Both ways round, each chunk along its shorter side, it takes only about N²/4 chunk-hops, spread over twice
the wires: a quarter of the all-gather's time. That is allowed here, too.

**In time**, as the course's clock lays it out: float32[8192, 512] on 2x4 v5e chips, which form a ring; `k` is work of
the core and `P` is a hop, times are in us.

```
from hops: 185.419 us, 7 permutes, 4% of their time hidden
        │0                │50                │100              │150
compute k─               k             k           k        k      k    k─kk
link x+   permute········ permute······ permute···· permute· P····· P···  P·
```

**In real systems**: tokens on their way to experts, and Ulysses attention, on torus networks.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", question 10.

Check your work: shardlings check e5_ring_all_to_all
For all exercises of this module: README.md, or shardlings show 05_rings
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def ring_all_to_all(a):
    """A block of A[I_X, J] -> a block of A[I, J_X]; the mesh axis is 'x'."""
    # TODO: write this function
    raise NotImplementedError("ring_all_to_all")


# Question ring_trade_bytes [MB]
# `A` is float32[6144, 5120] over 8 devices. How many MB does each device send, its own and those
# it passes on, in a one-way `ring_all_to_all`?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring; a chunk counts once for every wire it passes; 1 MB is 10^6 bytes.
ring_trade_bytes = None  # TODO: your answer


# Question ring_trade_time [us]
# `A` is bfloat16[8192, 14336] on a ring of 8 v5p chips. How long does the one-way
# `ring_all_to_all` take?
#
# Answer in us (a bare number), or with a unit.
# Model: one-way ring, bandwidth only: each hop takes its bytes / W1, one direction of a link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
ring_trade_time = None  # TODO: your answer
