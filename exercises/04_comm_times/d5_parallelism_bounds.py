"""# D5 When does communication stop being overlapped?

Arithmetic and communication of a training step overlap, so a step takes the longer of both times. The layer is
`In[B, D] · W_in[D, F] · W_out[F, D] → Out[B, D]` in bfloat16.

```
             y=0            y=1         FSDP moves weights along x:
   x=0   batch 0, F 0   batch 0, F 1      AllGather_X(W_in[D_X, F_Y])
   x=1   batch 1, F 0   batch 1, F 1    tensor parallelism moves activations
                                        along y: AllGather_Y(In[B_X, D_Y])
```

**Write** two functions. `mlp_times(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth)` returns
`(arithmetic, weights, activations)`, the seconds of one pass. `best_split(B, F, N, MX, MY)` returns ints `(X, Y)`.
`fsdp=False` means plain data parallelism (DP): weights are whole over x. *Fully overlapped*: communication takes no
longer than arithmetic.

| | forward pass | backward pass |
|---|---|---|
| arithmetic | 4BDF/(XY·C) | 8BDF/(XY·C) |
| weights over x, FSDP | 4DF/(Y·MX·W) | 8DF/(Y·MX·W) |
| weights over x, DP | 0 | 8DF/(Y·MX·W) |
| activations over y | 4BD/(X·MY·W) | 4BD/(X·MY·W) |

**What is checked**

| check | rule |
|---|---|
| the forward pass with FSDP, with tensor parallelism, and with both | the table; 0 along an axis of one chip |
| the backward pass with FSDP, with tensor parallelism, and with both | the table |
| plain data parallelism, with and without tensor parallelism | the table, row DP |
| `best_split`: X and Y for small and large batches, widths and meshes | minimize max(F/(Y·MX), B/(X·MY)). In units of 4·D/W these are the forward times of weights (FSDP) and activations. X, Y and N are powers of two, X·Y=N. No test has two best splits |

**Symbols.** B: tokens in the *global* batch. D, F: model and hidden dimension. X, Y: chips along x (cuts the batch),
y (cuts F). N = X·Y. MX, MY (M): number of torus axes that x and y use. C: FLOP/s of a chip (`flops`). W: both-way
bandwidth of a link (`bandwidth`). V: bytes gathered. α = C/W.

**Bounds** for full overlap. FSDP alone: B/X ≥ α/MX. Tensor parallelism (TP) alone: Y ≤ MY·F/α. FSDP with TP, each on
its own axes: B/N ≥ α²/(MX·MY·F) at the best X, which is √(B·N·MX/(F·MY)). DP between slices needs at least C/W_dcn
tokens per slice (W_dcn: data-centre bandwidth per chip).

**Small case** (ideal). v5p: α = 2550, F = 32768. FSDP alone needs 2550 tokens per chip on one axis, 850 on three axes.
TP alone needs Y ≤ 12.9. FSDP on two axes with TP on one needs 99 tokens per chip.

Check your work: shardlings check d5_parallelism_bounds
Notes on all exercises of this module: see README.md, or run shardlings show 04_comm_times
The text "Going further" is below the code.
"""

import math


def mlp_times(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth):
    """Return the seconds of arithmetic, weight traffic and activation traffic of one layer's pass.

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
    """Return the (X, Y) that minimizes the longer of two forward times: of weights (FSDP) and of activations.

    Args: as for mlp_times; N is the number of chips, a power of two.
    Returns: (X, Y), powers of two with X·Y = N, from (1, N) to (N, 1).
    """
    # TODO: write this function
    raise NotImplementedError("best_split")


# Question fsdp_least_batch [token]
# A model trains with pure FSDP over all three axes of 384 v5p chips, on sequences of 8192 tokens.
# What is the least *global* batch, in tokens, at which the communication is fully overlapped?
#
# Answer in token (a bare number), or with a unit.
# Model: arithmetic and communication overlap; on a ring an all-gather takes V / (M·W) over M
# torus axes, and W counts both directions of a link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
fsdp_least_batch = None  # TODO: your answer


# Question tensor_most_chips [chip]
# v4p chips compute `In[B, D] · W_in[D, F] · W_out[F, D]` with D=5120, F=14336, and y is a ring of
# one torus axis. Up to how many tensor-parallel chips (not rounded) is the communication fully
# overlapped?
#
# Answer with a bare number.
# Model: arithmetic and communication overlap; on a ring an all-gather takes V / (M·W) over M
# torus axes, and W counts both directions of a link; M = 1.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); bf16 2.75e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
tensor_most_chips = None  # TODO: your answer


# Question mixed_least_batch [token]
# A model with F=14336 trains on 1024 v4p chips, with FSDP over two torus axes and tensor
# parallelism over the third. X and Y are always the best for the batch. What is the least number
# of tokens *per chip* at which the communication is fully overlapped?
#
# Answer in token (a bare number), or with a unit.
# Model: arithmetic and communication overlap; on a ring an all-gather takes V / (M·W) over M
# torus axes, and W counts both directions of a link; weights and activations travel on different
# axes and overlap with each other too.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); bf16 2.75e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
mixed_least_batch = None  # TODO: your answer


# Question best_fsdp_chips [chip]
# A model with F=28672 trains on 4096 chips, with FSDP over two torus axes and tensor parallelism
# over the third. The global batch has 500000 tokens. Which X (chips along the FSDP axis, not
# rounded) is best?
#
# Answer with a bare number.
# Model: arithmetic and communication overlap; on a ring an all-gather takes V / (M·W) over M
# torus axes, and W counts both directions of a link; the best X makes weights and activations
# take equally long.
best_fsdp_chips = None  # TODO: your answer


# Question dcn_least_batch [token]
# 8 slices of 128 v5e chips train one model. Each chip can send 3.125 GB/s, one way, into the
# data-centre network. Between slices only an all-reduce of gradients runs. What is the least
# global batch of *all slices*, in tokens, at which this all-reduce is fully overlapped?
#
# Answer in token (a bare number), or with a unit.
# Model: data parallelism between slices; the all-reduce is a reduce-scatter and an all-gather,
# and each of the two takes V / (a slice's one-way bandwidth into the data-centre network).
# Hardware: v5e: bf16 1.97e14 FLOP/s; table 2026-11, from How To Scale Your Model of 2025-02-04.
dcn_least_batch = None  # TODO: your answer


# ## Going further
#
# **Where the table comes from.** A matmul takes 2 FLOPs per multiply-add, and the layer has two matmuls. The backward
# pass has twice the arithmetic: gradients of inputs *and* weights. FSDP gathers both weights in the forward pass. In the
# backward pass it gathers them again and reduce-scatters gradients. DP all-reduces gradients. Tensor parallelism
# all-gathers activations before the layer and reduce-scatters them after it.
#
# **Read on.** *How To Scale Your Model*, "How to Parallelize a Transformer for Training". An earlier edition adds the
# times of the two communications, so it asks for four times the batch.
