"""# C5 Gather first or reduce last?

A ring of X chips computes `In[B, D] · W[D_X, F] → Out[B, F]` in bfloat16. Every chip holds all of `In` and needs all of
`Out`. Either the weights move (strategy 1) or the partial sums move (strategy 2). The sizes decide which strategy is
faster.

```
   1   W[D_X, F] --all-gather--> W[D, F],  In[B, D] · W[D, F] = Out[B, F]
   2   In[B, D_X] · W[D_X, F] = Out[B, F]{U_X} --all-reduce--> Out[B, F]
```

**Write** `choose(B, D, F, X, flops, bandwidth)`. It returns the number of the faster strategy.

| | type | meaning |
|---|---|---|
| `B`, `D`, `F` | int | dimensions of `In` and `W` |
| `X` | int | chips on the ring |
| `flops` | float | FLOP/s of one chip |
| `bandwidth` | float | W, both-way bandwidth of a link, bytes/s |
| returns | int | 1 or 2 |

**Model.** Arithmetic and communication overlap, so a strategy takes the longer of the two times.

| | arithmetic on each chip | communication |
|---|---|---|
| strategy 1 | 2·B·D·F FLOPs | all-gather of `W`, V = 2·D·F bytes: takes V / `bandwidth` |
| strategy 2 | 2·B·D·F / X FLOPs | all-reduce of `Out`, V = 2·B·F bytes: takes 2·V / `bandwidth` |

**What is checked**

| check | small case |
|---|---|
| batches smaller than `flops` / `bandwidth` | B=512 < 2550: strategy 2 |
| batches larger than `flops` / `bandwidth` | |

In every case the times of the two strategies differ by more than 5 %.

**Symbols.** V: bytes of the array that is gathered or reduced. `{U_X}`: partial sums. L: size of a second batch, in a
question. C: `flops`.

**Small case.** B=512, D=4096, F=16384, X=4; a chip has 4.59e14 FLOP/s, and `bandwidth` = 1.8e11 bytes/s. In strategy 1
the arithmetic takes 150 µs and the all-gather of 134 MB takes 746 µs. In strategy 2 the arithmetic takes 37 µs and the
all-reduce of 16.8 MB takes 186 µs. So strategy 2 is faster.

Check your work: shardlings check c5_choose
Notes on all exercises of this module: see README.md, or run shardlings show 03_matmuls
The text "Going further" is below the code.
"""

import math


def choose(B, D, F, X, flops, bandwidth):
    """Return the faster strategy, 1 or 2.

    Args:
        B, D, F: dimensions of In[B, D] and W[D, F].
        X: chips on the ring.
        flops: FLOP/s of one chip.
        bandwidth: bytes/s of one link, both directions.
    """
    # TODO: write this function
    raise NotImplementedError("choose")


# Question gather_first_total [us]
# A ring of 8 v5p chips uses strategy 1 in bfloat16, with D=7168, F=16384. It serves a batch of
# B=384, then a batch of B=10240, and gathers `W` for each batch. How long do the two matmuls
# take, one after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: each matmul takes the longer of its arithmetic and its communication; on a ring an all-
# gather takes V / W, and W counts both directions of a link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
gather_first_total = None  # TODO: your answer


# Question reduce_last_total [us]
# Strategy 2 computes two layers, `In[B, D] · W_in[D_X, F]`, then `H[B, F] · W_out[F_X, D]`:
# B=384, D=4096, F=73728 on a ring of 8 v4p chips, in bfloat16. How long do the two matmuls take,
# one after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: each matmul takes the longer of its arithmetic and its communication; on a ring an all-
# gather takes V / W, and W counts both directions of a link.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; bf16 2.75e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
reduce_last_total = None  # TODO: your answer


# ## Going further
#
# **In real systems.** Do you move the weights or the activations? Training with large batches moves weights. Decoding
# moves activations.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", problem 4.
