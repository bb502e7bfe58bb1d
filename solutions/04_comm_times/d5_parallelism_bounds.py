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
"""

import math

from grader.exercise import Exercise
from grader.hardware import CHIPS, link_intensity

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "Three products: FLOPs of a chip, bytes over x, bytes over y. Which of B, D, F is cut by what?",
        "Forward: 4·B·D·F/(X·Y) FLOPs; 4·D·F/Y bytes of weights over MX axes; 4·B·D/X bytes of activations over MY axes.",
        "weights = (2 if backward else 1 if fsdp else 0) * 4 * D * F / Y / (MX * bandwidth) if X > 1 else 0.0",
    ]
)
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
    arithmetic = (2 if backward else 1) * 4 * B * D * F / (X * Y * flops)
    rounds = 2 if backward else 1 if fsdp else 0
    weights = rounds * 4 * D * F / Y / (MX * bandwidth) if X > 1 else 0.0
    activations = 4 * B * D / X / (MY * bandwidth) if Y > 1 else 0.0
    return arithmetic, weights, activations


@exercise.function(
    hints=[
        "Try every X. What do the weights cost, what the activations, up to common factors?",
        "Forward, without 4·D/W: F / (Y·MX) for the weights and B / (X·MY) for the activations. The longer one counts.",
        "min(powers_of_two, key=lambda X: max(F * X / N / MX, B / X / MY))",
    ]
)
def best_split(B, F, N, MX, MY):
    """The (X, Y) whose slower forward communication, weights (FSDP) or activations, is the fastest.

    Args: as for mlp_times; N chips, a power of two, as are X and Y; X·Y = N, from (1, N) to (N, 1).
    """
    X = min((2**k for k in range(N.bit_length())), key=lambda X: max(F * X / N / MX, B / X / MY))
    return X, N // X


# -- questions ---------------------------------------------------------------------------------

BOOK = "arithmetic and communication overlap; on a ring an all-gather takes V / (M·W), M torus axes, W both directions"


@exercise.number(
    points=0.4,
    unit="token",
    params={"chip": ["v4p", "v5p"], "N": [384, 768, 1152, 1536, 3072], "T": [4096, 8192]},
    model=BOOK,
)
def fsdp_least_batch(chip, N, T):
    """A model trains with pure FSDP over all three axes of {{ N }} {{ chip }} chips, on sequences of {{ T }} tokens. From which
    *global* batch on, in tokens, does the communication hide?"""
    return N * link_intensity(chip) / 3


@exercise.number(
    points=0.4,
    unit="chip",
    params={"chip": ["v4p", "v5p"], "D": [4096, 5120, 8192], "F": [14336, 18432, 20480, 28672, 53248]},
    model=BOOK + "; M = 1",
)
def tensor_most_chips(chip, D, F):
    """`In[B, D] · W_in[D, F] · W_out[F, D]` with D={{ D }}, F={{ F }} on {{ chip }}, y a ring of one torus axis: up to how many tensor-parallel chips
    (not rounded) does the communication hide?"""
    return F / link_intensity(chip)


@exercise.number(
    points=0.4,
    unit="token",
    params={"chip": ["v4p", "v5p"], "N": [1024, 4096], "F": [11264, 14336, 17408, 20480, 24576, 28672]},
    model=BOOK + "; weights and activations travel on different axes and overlap with each other too",
)
def mixed_least_batch(chip, N, F):
    """FSDP over two torus axes and tensor parallelism over the third, {{ N }} {{ chip }} chips in all, F={{ F }}, X and Y at their best:
    from how many tokens *per chip* on does the communication hide?"""
    return link_intensity(chip) ** 2 / (2 * 1 * F)


@exercise.number(
    points=0.4,
    unit="chip",
    params={"B": [48_000, 600_000, 2_400_000], "F": [14336, 28672, 32768], "N": [128, 1024, 4096]},
    where=lambda B, F, N: 4 < math.sqrt(2 * B * N / F) < N / 3,
    model=BOOK + "; the best X makes weights and activations take equally long",
)
def best_fsdp_chips(B, F, N):
    """FSDP over two torus axes and tensor parallelism over the third, {{ N }} chips in all, F={{ F }}, {{ B }} tokens in the global
    batch: which X (chips along the FSDP axis, not rounded) is best?"""
    return math.sqrt(B * N * 2 / F)


@exercise.number(
    points=0.4,
    unit="token",
    params={"chip": ["v5p", "v5e", "v6e"], "dcn": [6.25, 3.125, 12.5], "P": [3, 4, 5, 6, 8], "n": [256, 128]},
    where=lambda chip, dcn, P, n: CHIPS[chip].dcn == dcn * 1e9,
    model="data parallelism between slices; the all-reduce as a reduce-scatter and an all-gather of V / W each, W the slice's DCN bandwidth",
)
def dcn_least_batch(chip, dcn, P, n):
    """{{ P }} slices of {{ n }} {{ chip }} chips train one model, each chip with {{ dcn }} GB/s of data-centre network; between slices only
    gradients are all-reduced. From which global batch of *all slices* on, in tokens, does that hide?"""
    return P * CHIPS[chip].bf16 / (dcn * 1e9)
