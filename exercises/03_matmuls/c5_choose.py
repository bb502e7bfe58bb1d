"""# C5 Gather first or reduce last?

`In[B, D] · W[D_X, F] → Out[B, F]` in bfloat16 on a ring of X chips. Every chip holds all of `In` and needs all of `Out`.

1. Gather `W`, then every chip computes all of `Out`.
2. Every chip multiplies its columns of `In` by its rows of `W`, then an all-reduce adds the partial `Out[B, F]{U_X}`.

**Task.** Write `choose(B, D, F, X, flops, bandwidth)`: return 1 or 2, the faster one.

- A strategy takes the longer of its arithmetic and its communication, since they overlap.
- Arithmetic runs at `flops` FLOP/s on each chip, and a matmul has 2 FLOPs per term.
- Gathering an array of V bytes takes V / `bandwidth`, all-reducing one takes twice as long.

```
   1   W[D_X, F] --all-gather--> W[D, F],  In[B, D] · W[D, F] = Out[B, F]
   2   In[B, D_X] · W[D_X, F] = Out[B, F]{U_X} --all-reduce--> Out[B, F]
```

**Small case.** B=512, D=4096, F=16384, X=4, 4.59e14 FLOP/s, 1.8e11 B/s. Strategy 1: arithmetic 150 µs, gathering 134 MB
746 µs. Strategy 2: arithmetic 37 µs, reducing 16.8 MB 186 µs. So 2.

Checked on both sides of B = `flops` / `bandwidth`; in no case are the two strategies within 5 % of each other.

**In real systems**: move the weights or the activations? Training batches move weights, decoding moves activations.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", problem 4.

Check your work: shardlings check c5_choose
For all exercises of this module: README.md, or shardlings show 03_matmuls
"""

import math


def choose(B, D, F, X, flops, bandwidth):
    """The faster strategy, 1 or 2.

    Args:
        B, D, F: dimensions of In[B, D] and W[D, F].
        X: chips on the ring.
        flops: FLOP/s of one chip.
        bandwidth: bytes/s of one link, both directions.
    """
    # TODO: write this function
    raise NotImplementedError("choose")


# Question gather_first_total [us]
# D=7168, F=16384 on a ring of 8 v5p chips, in bfloat16. Strategy 1 serves a batch of B=384, then
# one of B=10240, gathering `W` each time. How long do the two products take, one after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: each product takes the longer of arithmetic and communication; on a ring an all-gather
# takes V / W, W both directions.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
gather_first_total = None  # TODO: your answer


# Question reduce_last_total [us]
# Two layers by strategy 2, `In[B, D] · W_in[D_X, F]`, then `H[B, F] · W_out[F_X, D]`: B=384,
# D=4096, F=73728 on a ring of 8 v4p chips, in bfloat16. How long do the two products take, one
# after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: each product takes the longer of arithmetic and communication; on a ring an all-gather
# takes V / W, W both directions.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
reduce_last_total = None  # TODO: your answer
