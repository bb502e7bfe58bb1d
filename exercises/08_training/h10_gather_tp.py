"""# H10 Tensor parallelism that gathers after every layer

This is the simplest way to cut a stack of layers. Each device has some columns of every weight and computes
these columns of the layer's result. An all-gather makes the result whole for the next layer. Lectures show
the forward pass; here you write the backward pass, too.

```
              every device                       device d alone
   forward    h[B, D]                 --> tanh(h · w[:, d]) = h'[B, D/N]
              h'[B, D]                <── all-gather
   backward   dy[B, D], all copies    --> its own columns, cut out
              {dh}[B, D], partial     <-- (dh' · tanh') · w[:, d]ᵀ
              dh[B, D/N], own columns <── reduce-scatter;  dx: all-reduce
```

**Write** the body `gather_tp(x, ws, dy)`. Start with h = x and compute h ← tanh(h @ w) for each layer. Return the
last h, and the gradients of Σ(y · dy).

| | shape on one device | layout |
|---|---|---|
| `x`, `dy` | float32[B, D] | whole |
| `ws` | float32[L, D, D/N] | `COLUMNS`: columns over tp |
| returns: y, dx | float32[B, D] | whole |
| dws | float32[L, D, D/N] | as `ws` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| y, dws, dx | y and gradients are those of one device | |
| what is sent | over tp at most the bytes of L all-gathers, of L − 1 reduce-scatters and of one all-reduce, each of [B, D] | L=3: 7 · 216 = 1512 bytes |

Allowed: a reduce-scatter and an all-gather in place of the all-reduce; one gather for y and dx together. You may keep
activations. dy is *equal* on all devices, so a sum over devices would count it N times.

**Symbols.** B rows, D width, L layers, N devices along tp; {dh}: partial sums of dh, one on each device.

**Small case.** B=6, D=12, L=3, tp=4, float32. [B, D] has 288 bytes, and a gather or scatter sends 216 bytes per device.
The forward pass sends 3 · 216 = 648 bytes. The backward pass sends 2 · 216 bytes in the scatters and 2 · 216 bytes in
the all-reduce, 864 bytes in all. The check has two layers.

Check your work: shardlings check h10_gather_tp
Notes on all exercises of this module: see README.md, or run shardlings show 08_training
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


COLUMNS = P(None, None, "tp")


def gather_tp(x, ws, dy):
    """Return the last h, and the gradients of sum(y * dy) for x and ws.

    Args: x, dy float32[B, D], whole on each device; ws float32[L, D, D/N], a device's columns; the mesh axis is 'tp'.
    Returns: (y, dx, dws): y and dx float32[B, D], whole on each device, and dws shaped as ws.
    """
    # TODO: write this function
    raise NotImplementedError("gather_tp")


# Question slicing_costs [us]
# A program all-reduces every {dh} of [4096, 8192] in bfloat16, and each device then cuts out its
# own columns. The program has 6 layers on a ring of 4 v4p chips. How much longer than necessary
# does the communication of its backward pass take?
#
# Answer in us (a bare number), or with a unit.
# Model: A reduce-scatter on a ring takes V / W, where W is the both-way bandwidth of a link.
# Latency does not count.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
slicing_costs = None  # TODO: your answer


# ## Going further
#
# **Why fewer bytes are not enough.** Suppose that weights stay on their devices. In the backward pass device d needs only
# its own columns of dh. From these columns and from h, which is whole on every device, d computes its columns of the
# gradient of w and its part of the next {dh}. Every device has a part of each number of {dh}. Each device's columns
# therefore need parts from all N − 1 other devices, and a reduce-scatter brings these. Only dx must be whole, so only dx
# also needs a gather. dy needs no communication. The transpose of an all-gather is a reduce-scatter, which sums partial
# cotangents. But dy is not partial: every device has the whole dy and cuts out its own columns.
#
# **In real systems.** Weights are cut by columns and by rows in turn (exercise H5). Such a stack waits for half as many
# collectives as the stack of this exercise.
#
# **Read on.** Stanford CS336, lecture 8, on tensor parallelism; exercise B3, on transposes.
