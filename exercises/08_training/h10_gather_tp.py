"""# H10 Tensor parallelism that gathers after every layer

The plainest way to cut a stack of layers: each device has some columns of every weight, computes those columns of the
layer's result, and an all-gather makes the result whole for the next layer. Its forward pass is in lectures, its
backward pass often left to the reader. Here it is.

**Task.** `gather_tp(x, ws, dy)`, a body for `shard_map` (around it already, with `check_vma=False`): for L weights
`ws[L, D, D_tp]`, `h = tanh(h @ w)` layer by layer, from h = x; return y, the last h, and the gradients of sum(y · dy) for x
and ws. x, dy, y and dx are whole on every device, the gradients of ws cut as ws are.

**Budget.** Forward L all-gathers over tp of [B, D]; backward L − 1 reduce-scatters and one all-reduce of [B, D]; nothing else.

```
              every device                       device d alone
   forward    h[B, D]                 --> tanh(h · w[:, d]) = h'[B, D/N]
              h'[B, D]                <── all-gather
   backward   dy[B, D], all copies    --> its own columns, cut out
              {dh}[B, D], partial     <-- (dh' · tanh') · w[:, d]ᵀ
              dh[B, D/N], own columns <── reduce-scatter;  dx: all-reduce
```

*Why so much and no more*, where weights stay at home. Backward, device d needs dh of its own columns only: with them it has its
columns of the gradient of w, for h is whole everywhere, and its part of the next {dh}. Every device has a part of each number of
{dh}, so all N − 1 others have something to say of each device's columns: a reduce-scatter. Only dx is wanted whole, and that takes
the gather, too. dy needs nothing at all: an all-gather's transpose is a reduce-scatter, but of a cotangent that comes in parts,
and all devices have the same dy. Summed, it would count N times.

**Small case.** B=6, D=12, L=3 on tp=4, float32: [B, D] is 288 bytes, a gather sends 216 from each device. Forward 3 · 216 = 648,
backward 2 · 216 + 2 · 216 = 864.

**In real systems**: weights are cut by columns and by rows in turn (H5), which waits for half as many collectives.

**Read on.** Stanford CS336, lecture 8, on tensor parallelism; B3 on transposes.

Check your work: shardlings check h10_gather_tp
For all exercises of this module: README.md, or shardlings show 08_training
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


COLUMNS = P(None, None, "tp")


def gather_tp(x, ws, dy):
    """The layers forward and backward.

    Args: x, dy float32[B, D], whole on each device; ws float32[L, D, D/N], a device's columns; the mesh axis is 'tp'.
    Returns: y float32[B, D] and dx float32[B, D], whole on each device, and dws as ws.
    """
    # TODO: write this function
    raise NotImplementedError("gather_tp")


# Question gather_tp_bytes [MB]
# `gather_tp` with B=2048, D=8192, 6 layers, in bfloat16 on tp=8. How many MB does each device
# send, forward and backward together?
#
# Answer in MB (a bare number), or with a unit.
# Model: a device sends (N - 1)/N of an array in an all-gather or a reduce-scatter; 1 MB is 10^6
# bytes.
gather_tp_bytes = None  # TODO: your answer


# Question slicing_costs [us]
# Somebody all-reduces every {dh} of [4096, 8192] in bfloat16 and then cuts out his own columns.
# With 6 layers on a ring of 4 v4p chips: how much longer does his backward pass communicate than
# it has to?
#
# Answer in us (a bare number), or with a unit.
# Model: ring, bandwidth only: a reduce-scatter takes V / W, W both directions of a link.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
slicing_costs = None  # TODO: your answer
