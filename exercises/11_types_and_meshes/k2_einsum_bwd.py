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

Check your work: shardlings check k2_einsum_bwd
Notes on all exercises of this module: see README.md, or run shardlings show 11_types_and_meshes
The text "Going further" is below the code.
"""

import math


def einsum_bwd(equation, placements):
    """Return the equation and the placement of each operand's gradient.

    Args: equation such as "ij,jk->ik"; placements is a list with "R", "S(d)" or "P" for each operand.
    Returns: a list with (equation, placement) for each operand, such as [("ik,jk->ij", "R"), ("ij,ik->jk", "R")].
    """
    # TODO: write this function
    raise NotImplementedError("einsum_bwd")


def gradient_bytes(gradients, sizes, devices):
    """Return the bytes that each device sends to complete every pending gradient.

    Args: gradients as einsum_bwd returns them; sizes such as {"i": 8, "j": 12}, of the whole arrays; devices: the
    number of devices along the axis.
    """
    # TODO: write this function
    raise NotImplementedError("gradient_bytes")


# Question columns_to_overlap [a number]
# `y = einsum("sbi,io->sbo", x, w)` runs in bfloat16 on a ring of 4 v5p chips: x is whole, s=4096,
# b=5, i=8192, and w is cut along o. In the backward pass the all-reduce of x's gradient overlaps
# each chip's matmul for its part of w's gradient. How large must the whole dimension o be, so
# that the all-reduce takes no longer than that matmul?
#
# Answer with a bare number.
# Model: an all-reduce of V bytes on a ring takes 2·V / W, where W counts both directions of one
# link; matmuls run at the chip's bfloat16 rate.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
columns_to_overlap = None  # TODO: your answer


# Question scale_gradients [KB]
# A model has 48 layers with two norms each, and each norm has a scale `g[h]`, float32[5120],
# whole on all devices. Activations `x[s, b, h]` are cut along s over 8 devices, so `"sbh,h->sbh"`
# leaves the scales' gradients pending. How many KB does each device send in one backward pass to
# complete these gradients?
#
# Answer in KB (a bare number), or with a unit.
# Model: a ring all-reduce over X devices: 2·(X - 1) hops of 1/X of the array; 1 KB is 1000 bytes.
scale_gradients = None  # TODO: your answer


# ## Going further
#
# **In real systems.** Megatron's tensor parallelism pays the all-reduce of gx in every backward pass. Programs often
# forget the all-reduce of a scale's gradient. Such programs still run, but each device trains a different scale.
#
# **Read on.** *Megatron-LM* and *Reducing Activation Recomputation in Large Transformer Models*; E. Z. Yang,
# "Computing sharding with einsum".
