"""# H5 A gated MLP, cut by columns and by rows

Most language models have this block (silu(g) = g · sigmoid(g)):

    h = silu(x @ w1) * (x @ w3)     y = h @ w2 + b

Axis tp cuts `w1` and `w3` by columns and `w2` by rows. A device computes its own units (columns of h) from the first
matmul to the last, and ends with a partial sum of y. Every device has the whole dy, so it computes the gradients of its
units without communication. The gradient of x is a sum over all devices' units.

```
    x[B, D]      w1, w3[D, F_tp]      h[B, F_tp]     w2[F_tp, D]
   +-------+     +---+---+           +---+---+       +-------+
   | whole |  ·  | 0 | 1 |  gate ->  | 0 | 1 |   ·   |   0   |  =  {y}
   +-------+     +---+---+           +---+---+       +-------+
                                                     |   1   |  {y}: partial
                                                     +-------+  sums of y
```

**Write** two bodies and a function. Docstrings give the shapes.

| | returns |
|---|---|
| `gated_mlp(x, w1, w3, w2, b, dy)` | y, and the gradients of Σ(y · dy) for x and all weights |
| `init(seed, *, D, F)` | new normal weights, all numbers independent: variance 1/D for w1 and w3, 1/F for w2 |
| `fused_columns(F, N)` | an order of the 2F columns of a checkpoint's w13, which holds w1, then w3. If N devices cut `w13[:, order]`, device d gets piece d of w1, then piece d of w3 |

Allowed: one all-reduce for the parts of y and of dx together. `init` may draw whole weights on each device and keep
a part. The weights then do not depend on N.

**What is checked**

| check | rule | small case |
|---|---|---|
| `gated_mlp`: value | y and gradients equal those of one device; the gradients of x and b are whole | |
| `gated_mlp`: what is sent | in each pass at most one all-reduce of [B, D], or a reduce-scatter and an all-gather in its place | 720 bytes |
| `init`: spread | each device returns its part: normal numbers, variance as above; nothing is sent | |
| `init`: independence | no two devices, weights or seeds get equal numbers | |
| `fused_columns` | the order; `ValueError` if N does not divide F | |

**Symbols.** B rows, D width, F units of the MLP, N devices along tp.

**Small case.** B=5, D=12, F=36, float32, tp=4: 9 units on a device. y has 240 bytes; an all-reduce sends 2 · 3/4 · 240
= 360 bytes. Both passes together send 720 bytes. `fused_columns(6, 3)` is `[0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]`.

Check your work: shardlings check h5_tensor_parallel
Notes on all exercises of this module: see README.md, or run shardlings show 08_training
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


CUT = {"w1": P(None, "tp"), "w3": P(None, "tp"), "w2": P("tp")}


def gated_mlp(x, w1, w3, w2, b, dy):
    """Return y and the gradients of sum(y * dy).

    Args: x, dy float32[B, D] and b float32[D], whole on each device; w1, w3 float32[D, F/N]; w2 float32[F/N, D]; the axis is 'tp'.
    Returns: (y, {"x", "w1", "w3", "w2", "b"}); each gradient has the shape of its array.
    """
    # TODO: write this function
    raise NotImplementedError("gated_mlp")


def init(seed, *, D, F):
    """Return a device's part of new weights.

    Args: seed, an int32, equal on all devices; D and F, the whole dimensions; the mesh axis is 'tp'.
    Returns: {"w1": float32[D, F/N], "w3": float32[D, F/N], "w2": float32[F/N, D]}.
    """
    # TODO: write this function
    raise NotImplementedError("init")


def fused_columns(F, N):
    """Return an order of the columns of w13 = [w1 | w3] in which each of N equal pieces is [piece of w1 | piece of w3].

    Returns: a list of 2F ints. Raises ValueError if N does not divide F.
    """
    # TODO: write this function
    raise NotImplementedError("fused_columns")


# Question gated_mlp_time [us]
# `gated_mlp` runs in bfloat16 on a ring of 8 v5p chips, with B=2048, D=4096, F=12288. Each all-
# reduce waits for the matmuls before it, and all later matmuls wait for the all-reduce. How long
# does the block take, forward and backward pass together?
#
# Answer in us (a bare number), or with a unit.
# Model: Matmuls run at the peak bf16 rate. An all-reduce on a ring takes 2 V / W, where W is the
# both-way bandwidth of a link. Nothing overlaps.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
gated_mlp_time = None  # TODO: your answer


# ## Going further
#
# **In real systems.** This is Megatron's block. If w13 is cut in its given order, the first devices get columns of w1 and
# the last devices get the matching columns of w3. All shapes fit and no error occurs, but the model is wrong.
#
# **Read on.** Shoeybi et al., *Megatron-LM*, section 3; *How To Scale Your Model*, "How to Parallelize a Transformer
# for Training".
