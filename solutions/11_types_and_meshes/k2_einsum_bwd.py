"""# K2 The gradients of an einsum, and which of them are pending

An einsum of parts needs no communication (exercise K1), but its backward pass may need communication. Often, each
device multiplies a whole operand by a different part of another operand. Then each device has only a share of the whole
operand's gradient, and the sum over devices is *pending*.

```
   x[s,b,i] R, w[i,o] S(1)      "sbi,io->sbo"   y  is S(2)
   gradient of x                "sbo,io->sbi"   gx is P      all-reduce
   gradient of w                "sbi,sbo->io"   gw is S(1)   like w
```

**Write** two functions. Placements are those of exercise K1, along one mesh axis. In all cases the arguments' placements
fit each other, so K1's rule returns a placement and raises no error.

| | returns |
|---|---|
| `einsum_bwd(equation, placements)` | a list with one pair (equation, placement) for each operand: how to compute the operand's gradient, and its placement |
| `gradient_bytes(gradients, sizes, devices)` | bytes that each device sends to complete every pending gradient |

In a gradient's equation the output's gradient replaces the operand, and the operand's letters become the output. The
other operands keep their order. The gradient's placement is the placement of the result when every device runs this
equation on its own parts.

The given gradient of the output has the output's placement. But for output `"P"` it is `"R"`, because a sum passes its
gradient unchanged to each summand. Each `"P"` gradient takes a ring all-reduce in float32; nothing else is sent.

**What is checked**

| check | rule |
|---|---|
| `einsum_bwd`: equations | the equation of each gradient |
| `einsum_bwd`: placements | the placement of each gradient: the placement of its operand, or pending |
| `einsum_bwd`: sums | gradients, if the output or an operand is a partial sum |
| `gradient_bytes` | the all-reduces of pending gradients, 2 (N−1)/N · 4 bytes per number |

**Symbols.** N (in questions X) devices, L layers, H numbers of a scale.

**Small case.** `"sbh,h->sbh"` multiplies every row by a scale. x is `S(0)` (cut along the sequence), and the scale is
`R`. Each device sums over its own rows, so the scale's gradient is `"P"`. The gradient of x is `S(0)`. With h=8 on 4
devices a chunk has 2 numbers: an all-reduce makes 2 · 3 hops of 8 bytes and sends 48 bytes.

## Going further

**In real systems.** Megatron's tensor parallelism pays the all-reduce of gx in every backward pass. Programs often
forget the all-reduce of a scale's gradient. Such programs still run, but each device trains a different scale.

**Read on.** *Megatron-LM* and *Reducing Activation Recomputation in Large Transformer Models*; E. Z. Yang,
"Computing sharding with einsum".
"""

import math

from grader.exercise import Exercise
from grader.hardware import CHIPS

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "A gradient has the letters of its operand. From which arrays is the gradient computed?",
        "Each device computes the gradient's einsum from its own parts, so K1's rule gives the gradient's placement. Is the cut letter in the gradient, or does the einsum sum over it?",
        "turned = [*terms[:i], out, *terms[i + 1:]]; S if the operand has the cut letter, R if all operands are whole, else ...",
    ]
)
def einsum_bwd(equation, placements):
    """Return the equation and the placement of each operand's gradient.

    Args: equation such as "ij,jk->ik"; placements is a list with "R", "S(d)" or "P" for each operand.
    Returns: a list with (equation, placement) for each operand, such as [("ik,jk->ij", "R"), ("ij,ik->jk", "R")].
    """
    operands, out = equation.split("->")
    terms = operands.split(",")
    cut = {term[int(place[2:-1])] for term, place in zip(terms, placements, strict=True) if place[0] == "S"}
    all_whole = set(placements) == {"R"}
    gradients = []
    for i, (term, place) in enumerate(zip(terms, placements, strict=True)):
        lies = next((f"S({term.index(letter)})" for letter in cut if letter in term), "R")
        turned = ",".join([*terms[:i], out, *terms[i + 1 :]]) + "->" + term
        gradients.append((turned, lies if place != "R" or all_whole else "P"))
    return gradients


@exercise.function(
    hints=[
        "Which gradients are pending? How large is a pending gradient on each device?",
        "A pending gradient has full shape: multiply the sizes of the operand's letters, 4 bytes per number. In a ring all-reduce a device sends 2·(N - 1) chunks, each 1/N of the gradient.",
        "for each (eq, place) with place == 'P', add 2 * (devices - 1) * 4 * prod(sizes of eq's output letters) / devices",
    ]
)
def gradient_bytes(gradients, sizes, devices):
    """Return the bytes that each device sends to complete every pending gradient.

    Args: gradients as einsum_bwd returns them; sizes such as {"i": 8, "j": 12}, of the whole arrays; devices: the
    number of devices along the axis.
    """
    sent = 0
    for equation, place in gradients:
        if place == "P":
            numbers = math.prod(sizes[letter] for letter in equation.split("->")[1])
            sent += 2 * (devices - 1) * 4 * numbers // devices
    return sent


@exercise.number(
    points=0.5,
    unit="",
    params={"chip": ["v4p", "v5p"], "X": [4, 8, 12, 16], "S": [2048, 4096], "B": [3, 5], "I": [6144, 8192]},
    model="an all-reduce of V bytes on a ring takes 2·V / W, where W counts both directions of one link; matmuls run at the chip's bfloat16 rate",
    hints=[
        "Write the time of the all-reduce and the time of the matmul with s, b, i and o. What cancels?",
        "The gradient of x has V = 2 · s · b · i bytes, and its all-reduce takes 2 · V / W. The matmul has 2 · s · b · i · (o / X) FLOPs.",
        "o = 2 · X · C / W",
    ],
)
def columns_to_overlap(chip, X, S, B, I):
    """`y = einsum("sbi,io->sbo", x, w)` runs in bfloat16 on a ring of {{ X }} {{ chip }} chips: x is whole, s={{ S }}, b={{ B }}, i={{ I }}, and w is cut
    along o. In the backward pass the all-reduce of x's gradient overlaps each chip's matmul for its part of w's gradient. How large must the
    whole dimension o be, so that the all-reduce takes no longer than that matmul?"""
    return 2 * X * CHIPS[chip].bf16 / CHIPS[chip].ici_both


@exercise.number(
    points=0.5,
    unit="KB",
    params={"L": [30, 40, 48], "H": [5120, 7168, 9216], "X": [4, 8, 16]},
    model="a ring all-reduce over X devices: 2·(X - 1) hops of 1/X of the array; 1 KB is 1000 bytes",
    hints=[
        "How many bytes do all pending gradients have together?",
        "Each layer has two scales of H float32 numbers: 2 · L · 4 · H bytes. An all-reduce sends 2 · (X − 1) / X of these bytes.",
        "2 · (X − 1) / X · 2 · L scales · 4 bytes · H",
    ],
)
def scale_gradients(L, H, X):
    """A model has {{ L }} layers with two norms each, and each norm has a scale `g[h]`, float32[{{ H }}], whole on all devices. Activations
    `x[s, b, h]` are cut along s over {{ X }} devices, so `"sbh,h->sbh"` leaves the scales' gradients pending. How many KB does each
    device send in one backward pass to complete these gradients?"""
    return 2 * (X - 1) / X * 4 * H * 2 * L
