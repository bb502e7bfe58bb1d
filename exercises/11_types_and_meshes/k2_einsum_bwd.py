"""# K2 The einsum's gradients, and what is pending in them

An einsum on parts needed no communication (K1). Its backward pass may: where a whole operand has met parts, each device
knows only its own part's share of that operand's gradient.

**Tasks.** Placements are those of K1: `"R"`, `"S(d)"`, `"P"`, along one mesh axis. In all cases the parts fit: K1's rule has an answer.

1. `einsum_bwd(equation, placements)`: for each operand of a forward einsum, the equation of its gradient and the placement
   that this gradient has when every device runs that equation on its own parts. The gradient of an einsum is an einsum: the
   output's gradient takes the operand's place, and the operand's letters become the output. Keep the order of the others.
2. `gradient_bytes(gradients, sizes, devices)`: from such a list, the bytes that each device sends until every gradient lies as
   its operand does: what is `"P"` takes a ring all-reduce in float32, nothing else is sent.

The gradient of the *output* is there already. It lies as the output does, except where that is `"P"`: then everybody has
all of it, for a sum hands its gradient on to each summand unchanged.

```
   x[s,b,i] R, w[i,o] S(1)      "sbi,io->sbo"   y  is S(2)
   gradient of x                "sbo,io->sbi"   gx is P      all-reduce
   gradient of w                "sbi,sbo->io"   gw is S(1)   as w lies
```

**Small case.** A scale `h` on every row, `"sbh,h->sbh"` with x cut along the sequence (`S(0)`) and the scale whole. Each device
sums over its own rows: the gradient of the scale is `"P"`, that of x is `S(0)`. On 4 devices with h = 8: chunks of 2
numbers, 6 hops, 48 bytes from each device.

**In real systems** the first of these all-reduces is what Megatron's tensor parallelism pays in every backward pass; the
second is the one that is forgotten: everything runs, and each device trains a scale of its own.

**Read on.** *Megatron-LM* and *Reducing Activation Recomputation in Large Transformer Models*; E. Z. Yang, "Computing sharding
with einsum".

Check your work: shardlings check k2_einsum_bwd
"""

import math


def einsum_bwd(equation, placements):
    """The gradients of an einsum's operands.

    Args: equation such as "ij,jk->ik"; placements is a list with "R", "S(d)" or "P" for each operand.
    Returns: a list with (equation, placement) for each operand, such as [("ik,jk->ij", "R"), ("ij,ik->jk", "R")].
    """
    # TODO: write this function
    raise NotImplementedError("einsum_bwd")


def gradient_bytes(gradients, sizes, devices):
    """Bytes that each device sends until every gradient lies as its operand does.

    Args: gradients as einsum_bwd returns them; sizes such as {"i": 8, "j": 12}, of the whole arrays; devices along the axis.
    """
    # TODO: write this function
    raise NotImplementedError("gradient_bytes")


# Question columns_to_hide [a number]
# `y = einsum("sbi,io->sbo", x, w)` in bfloat16 on a ring of 12 v5p: x is whole, s=2048, b=5,
# i=8192, and w is cut along o. In the backward pass the all-reduce of x's gradient runs while
# each chip computes its part of w's. From how many output features o (of all chips together) on
# does it take no longer than that product?
#
# Answer with a bare number.
# Model: an all-reduce of V bytes on a ring takes 2·V / W, W both directions of one link; matmuls
# at the chip's bfloat16 rate.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
columns_to_hide = None  # TODO: your answer


# Question scale_gradients [KB]
# A model has 78 layers with two norms each, and each norm has a scale `g[h]`, float32[5120],
# whole on all devices. Activations `x[s, b, h]` are cut along s over 8 devices, so `"sbh,h->sbh"`
# leaves the scales' gradients pending. How many KB does each device send in one backward pass to
# complete them?
#
# Answer in KB (a bare number), or with a unit.
# Model: a ring all-reduce of N chunks: 2·(N - 1) hops of one chunk; 1 KB is 1000 bytes.
scale_gradients = None  # TODO: your answer
