"""# D5 When does communication stop hiding?

Arithmetic and communication of a training step overlap; what is longer shows. Dividing one by the other gives the
*bounds* that decide how a model is split: how small a batch, how many tensor-parallel chips, before links set the pace.

**The layer**: `In[B, D] · W_in[D, F] · W_out[F, D] → Out[B, D]` in bfloat16, B in tokens, on N = X·Y chips. The batch is
cut over x, the weights' F over y. Per layer, with α = C/W (FLOP/s over the bytes/s of one link, both directions):

```
             y=0            y=1         FSDP moves weights along x:
   x=0   batch 0, F 0   batch 0, F 1      AllGather_X(W_in[D_X, F_Y])
   x=1   batch 1, F 0   batch 1, F 1    tensor parallelism moves activations
                                        along y: AllGather_Y(In[B_X, D_Y])
```

| | forward | backward |
|---|---|---|
| arithmetic (2 FLOPs a term, two matmuls; backward twice that: gradients of inputs *and* weights) | 4BDF / (XY·C) | 8BDF / (XY·C) |
| weights over x, if they are cut (FSDP): gather both; backward gather again, reduce-scatter gradients | 4DF / (Y·M_X·W) | 8DF / (Y·M_X·W) |
| weights over x, if they are whole (DP): all-reduce gradients | 0 | 8DF / (Y·M_X·W) |
| activations over y: all-gather in, reduce-scatter out | 4BD / (X·M_Y·W) | 4BD / (X·M_Y·W) |

M_X, M_Y are the torus axes that x and y use (each brings its links). Setting arithmetic equal to communication:

- DP or FSDP alone: hidden if B/X > α / M_X. TP alone: if Y < M_Y · F/α.
- FSDP and TP together, each hidden on its own axes: at best B/N > α² / (M_X·M_Y·F), with X = √(B·N·M_X / (F·M_Y)).
- DP between slices over the data-centre network: B per *slice* > C / W_dcn, both per chip.

**Tasks.** Write `mlp_times`, which returns the three times of a pass, and `best_split`, which finds X and Y.

**Small case.** v5p, α = 2550, F = 32768. FSDP alone on one axis: 2550 tokens per chip; on three, 850. TP alone on one
axis: Y < 12.8. Together on two and one: 99 tokens per chip.

**Read on.** *How To Scale Your Model*, "How to Parallelize a Transformer for Training". An earlier edition adds the two
communications instead of overlapping them, which asks for four times the batch.

Check your work: shardlings check d5_parallelism_bounds
"""

import math


def mlp_times(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth):
    """Seconds of arithmetic, weight traffic and activation traffic of one layer's pass.

    Args:
        backward: False for the forward pass. fsdp: False when weights are whole over x (plain data parallelism).
        B, D, F: tokens in the *global* batch, model and hidden dimension. X, Y: chips along x and y; along an axis of 1
            nothing moves.
        MX, MY: torus axes that x and y use. flops: C. bandwidth: W, bytes/s of one link, both directions.

    Returns:
        (arithmetic, weights, activations).
    """
    # TODO: write this function
    raise NotImplementedError("mlp_times")


def best_split(B, F, N, MX, MY):
    """The (X, Y) whose slower forward communication, weights (FSDP) or activations, is the fastest.

    Args: as for mlp_times; N chips, a power of two, as are X and Y; X·Y = N, from (1, N) to (N, 1).
    """
    # TODO: write this function
    raise NotImplementedError("best_split")


# Question fsdp_least_batch [token]
# A model trains with pure FSDP over all three axes of 384 v5p chips, on sequences of 8192 tokens.
# From which *global* batch on, in tokens, does the communication hide?
#
# Answer in token (a bare number), or with a unit.
# Model: arithmetic and communication overlap; on a ring an all-gather takes V / (M·W), M torus
# axes, W both directions.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
fsdp_least_batch = None  # TODO: your answer


# Question tensor_most_chips [chip]
# `In[B, D] · W_in[D, F] · W_out[F, D]` with D=5120, F=14336 on v4p, y a ring of one torus axis:
# up to how many tensor-parallel chips (not rounded) does the communication hide?
#
# Answer with a bare number.
# Model: arithmetic and communication overlap; on a ring an all-gather takes V / (M·W), M torus
# axes, W both directions; M = 1.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
tensor_most_chips = None  # TODO: your answer


# Question mixed_least_batch [token]
# FSDP over two torus axes and tensor parallelism over the third, 1024 v4p chips in all, F=14336,
# X and Y at their best: from how many tokens *per chip* on does the communication hide?
#
# Answer in token (a bare number), or with a unit.
# Model: arithmetic and communication overlap; on a ring an all-gather takes V / (M·W), M torus
# axes, W both directions; weights and activations travel on different axes and overlap with each
# other too.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
mixed_least_batch = None  # TODO: your answer


# Question best_fsdp_chips [chip]
# FSDP over two torus axes and tensor parallelism over the third, 4096 chips in all, F=28672,
# 600000 tokens in the global batch: which X (chips along the FSDP axis, not rounded) is best?
#
# Answer with a bare number.
# Model: arithmetic and communication overlap; on a ring an all-gather takes V / (M·W), M torus
# axes, W both directions; the best X makes weights and activations take equally long.
best_fsdp_chips = None  # TODO: your answer


# Question dcn_least_batch [token]
# 8 slices of 128 v5e chips train one model, each chip with 3.125 GB/s of data-centre network;
# between slices only gradients are all-reduced. From which global batch of *all slices* on, in
# tokens, does that hide?
#
# Answer in token (a bare number), or with a unit.
# Model: data parallelism between slices; the all-reduce as a reduce-scatter and an all-gather of
# V / W each, W the slice's DCN bandwidth.
# Hardware: v5e: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 2D torus, wraps only on
# an axis of 16; HBM 16 GB at 8.2e11 B/s; bf16 1.97e14 FLOP/s; hop 1 us; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
dcn_least_batch = None  # TODO: your answer
