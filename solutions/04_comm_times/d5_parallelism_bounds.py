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

## Going further

**Where the table comes from.** A matmul takes 2 FLOPs per multiply-add, and the layer has two matmuls. The backward
pass has twice the arithmetic: gradients of inputs *and* weights. FSDP gathers both weights in the forward pass. In the
backward pass it gathers them again and reduce-scatters gradients. DP all-reduces gradients. Tensor parallelism
all-gathers activations before the layer and reduce-scatters them after it.

**Read on.** *How To Scale Your Model*, "How to Parallelize a Transformer for Training". An earlier edition adds the
times of the two communications, so it asks for four times the batch.
"""

import math

from grader.exercise import Exercise
from grader.hardware import CHIPS, link_intensity

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "For one chip, compute the time of the FLOPs, the time of the bytes over x, and the time of the bytes over y. Which axis cuts B, and which cuts F?",
        "Forward pass: a chip computes 4·B·D·F/(X·Y) FLOPs. 4·D·F/Y bytes of weights go over MX axes, and 4·B·D/X bytes of activations go over MY axes.",
        "weights = (2 if backward else 1 if fsdp else 0) * 4 * D * F / Y / (MX * bandwidth) if X > 1 else 0.0",
    ]
)
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
    arithmetic = (2 if backward else 1) * 4 * B * D * F / (X * Y * flops)
    rounds = 2 if backward else 1 if fsdp else 0
    weights = rounds * 4 * D * F / Y / (MX * bandwidth) if X > 1 else 0.0
    activations = 4 * B * D / X / (MY * bandwidth) if Y > 1 else 0.0
    return arithmetic, weights, activations


@exercise.function(
    hints=[
        "Try every X. How long does it take to send the weights, and how long to send the activations? Leave out common factors.",
        "The forward times without the common factor 4·D/W: F / (Y·MX) for the weights and B / (X·MY) for the activations. The longer time counts.",
        "min(powers_of_two, key=lambda X: max(F * X / N / MX, B / X / MY))",
    ]
)
def best_split(B, F, N, MX, MY):
    """Return the (X, Y) that minimizes the longer of two forward times: of weights (FSDP) and of activations.

    Args: as for mlp_times; N is the number of chips, a power of two.
    Returns: (X, Y), powers of two with X·Y = N, from (1, N) to (N, 1).
    """
    X = min((2**k for k in range(N.bit_length())), key=lambda X: max(F * X / N / MX, B / X / MY))
    return X, N // X


# -- questions ---------------------------------------------------------------------------------

BOOK = "arithmetic and communication overlap; on a ring an all-gather takes V / (M·W) over M torus axes, and W counts both directions of a link"


@exercise.number(
    points=0.4,
    unit="token",
    params={"chip": ["v4p", "v5p"], "N": [384, 768, 1152, 1536, 3072], "T": [4096, 8192]},
    model=BOOK,
    hints=[
        "What grows with the batch: arithmetic or communication?",
        "Only arithmetic grows. At the smallest batch with full overlap a chip's matmul of its own tokens takes as long as the gather over three axes.",
        "tokens in the batch = N · C / (3 · W)",
    ],
)
def fsdp_least_batch(chip, N, T):
    """A model trains with pure FSDP over all three axes of {{ N }} {{ chip }} chips, on sequences of {{ T }} tokens. What is the
    least *global* batch, in tokens, at which the communication is fully overlapped?"""
    return N * link_intensity(chip) / 3


@exercise.number(
    points=0.4,
    unit="chip",
    params={"chip": ["v4p", "v5p"], "D": [4096, 5120, 8192], "F": [14336, 18432, 21504, 28672, 53248]},
    model=BOOK + "; M = 1",
    hints=[
        "Which time shrinks with more tensor-parallel chips, and which does not?",
        "Arithmetic shrinks, but the gather and the reduce-scatter of [B, D] do not. Set 4 · B · D · F / (Y · C) equal to 2 · 2 · B · D / W.",
        "Y is F divided by (C / W)",
    ],
)
def tensor_most_chips(chip, D, F):
    """{{ chip }} chips compute `In[B, D] · W_in[D, F] · W_out[F, D]` with D={{ D }}, F={{ F }}, and y is a ring of one torus axis. Up to how many tensor-parallel
    chips (not rounded) is the communication fully overlapped?"""
    return F / link_intensity(chip)


@exercise.number(
    points=0.4,
    unit="token",
    params={"chip": ["v4p", "v5p"], "N": [1024, 4096], "F": [11264, 14336, 17408, 20480, 24576, 28672]},
    model=BOOK + "; weights and activations travel on different axes and overlap with each other too",
    hints=[
        "At the best X and Y both collectives take equally long. How long does each take, per token?",
        "Two times equal the arithmetic time: the time of the weights over two axes, and the time of the activations over one axis. Multiply the two equations.",
        "tokens per chip = (C / W)² / (2 · F)",
    ],
)
def mixed_least_batch(chip, N, F):
    """A model with F={{ F }} trains on {{ N }} {{ chip }} chips, with FSDP over two torus axes and tensor parallelism over the third. X and Y are
    always the best for the batch. What is the least number of tokens *per chip* at which the communication is fully overlapped?"""
    return link_intensity(chip) ** 2 / (2 * 1 * F)


@exercise.number(
    points=0.4,
    unit="chip",
    params={"B": [48_000, 500_000, 2_600_000], "F": [14336, 28672, 32768], "N": [128, 1024, 4096]},
    where=lambda B, F, N: 4 < math.sqrt(2 * B * N / F) < N / 3,
    model=BOOK + "; the best X makes weights and activations take equally long",
    hints=[
        "Which two times are equal at the best X?",
        "The weights go over two axes and are cut by Y = N / X. The activations go over one axis and are cut by X.",
        "X² = 2 · N · (tokens in the batch) / F",
    ],
)
def best_fsdp_chips(B, F, N):
    """A model with F={{ F }} trains on {{ N }} chips, with FSDP over two torus axes and tensor parallelism over the third. The global batch has {{ B }}
    tokens. Which X (chips along the FSDP axis, not rounded) is best?"""
    return math.sqrt(B * N * 2 / F)


@exercise.number(
    points=0.4,
    unit="token",
    params={"chip": ["v5p", "v5e", "v6e"], "dcn": [6.25, 3.125, 12.5], "P": [3, 4, 5, 6, 8], "n": [256, 128]},
    where=lambda chip, dcn, P, n: CHIPS[chip].dcn == dcn * 1e9,
    model="data parallelism between slices; the all-reduce is a reduce-scatter and an all-gather, and each of the two takes V / (a slice's one-way bandwidth into the data-centre network)",
    hints=[
        "How many FLOPs does one slice compute, and how many bytes does it send over the data-centre network?",
        "For each weight, the backward pass of a slice computes 4 FLOPs per token, and its all-reduce takes 4 bytes. The slice's chips divide these FLOPs and bytes among themselves.",
        "tokens in the batch = (number of slices) · (peak FLOP/s of a chip) / (network bandwidth of a chip)",
    ],
)
def dcn_least_batch(chip, dcn, P, n):
    """{{ P }} slices of {{ n }} {{ chip }} chips train one model. Each chip can send {{ dcn }} GB/s, one way, into the data-centre network. Between
    slices only an all-reduce of gradients runs. What is the least global batch of *all slices*, in tokens, at which this all-reduce is fully overlapped?"""
    return P * CHIPS[chip].bf16 / (dcn * 1e9)
