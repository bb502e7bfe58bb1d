"""# H1 Data parallelism, with padding and dropout

Every device holds all weights and its own rows of the batch. It computes the gradient of its rows; an all-reduce adds these up, and
all devices make the same update, so that the weights stay equal without being sent. The step must be the one that a
single device with the whole batch would make. Two things break that in silence:

- **padding.** The loss is the mean over *real* rows, and devices have unequally many of them. The mean of their means is
  another number; and a device whose rows are all padding has no mean at all.
- **dropout.** Devices that draw from the same key drop the same places of different rows.

**Task.** `ddp_step(params, x, y, real, key)` makes one step of gradient descent for `hidden = dropout(tanh(x·a))`, `out = hidden·b`:
with n real rows in the whole batch, the loss is Σ (out − y)² / n over the real rows, and p ← p − 0.1 · (its gradient).
Dropout keeps a number with probability 3/4, divided by 3/4, and makes the others zero. Return (params, kept, loss): `kept` says
which numbers of `hidden` were kept, and the step is repeated on one device with it. No key is used twice.

**Budget.** What one all-reduce of the gradient sends, 2 (N−1)/N · 4 bytes for each parameter, and 32 more for single numbers.

```
   device   real rows   sum of losses   its own mean
     0          3             6              2
     1          1             8              8        mean of means  5
     2          0             0             0/0       14 / 4       = 3.5
```

**Small case.** a[6, 16] and b[16, 3] are 144 parameters. On dp=4 each device sends 3/2 · 576 = 864 bytes for them, and
12 more for loss and number of rows.

**In real systems**: `DistributedDataParallel`. Trainers of language models have divided by each device's own number of tokens, and by
that of each micro-batch: the loss looked right and short sequences counted too much.

**Read on.** Stanford CS336, lecture 8 (data parallelism) and assignment 2.

Check your work: shardlings check h1_ddp
For all exercises of this module: README.md, or shardlings show 08_training
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def ddp_step(params, x, y, real, key, *, mesh):
    """One step of data-parallel gradient descent: (params, kept, loss).

    Args: params {"a": float32[D, F], "b": float32[F, K]}, whole on every device; x float32[B, D], y float32[B, K] and real bool[B]
        sharded P('dp'); key uint32[2], for jax.random.wrap_key_data, another in each step; mesh may have more axes than dp.
    Returns: params, whole on every device; kept bool[B, F] sharded P('dp'); the loss before the step.
    """
    # TODO: write this function
    raise NotImplementedError("ddp_step")


# Question ddp_loss [x]
# Two devices have 512 tokens each. On one 400 are real and have the mean loss 1.25, on the other
# 50 are, with the mean loss 4.5; the rest is padding. What is the loss of the batch?
#
# Answer with a bare number.
# Model: the mean over all real tokens; a bare number.
ddp_loss = None  # TODO: your answer


# Question ddp_unhidden [ms]
# 600 million parameters are trained by data parallelism on a ring of 8 v4p chips, 8192 tokens on
# each. The bfloat16 gradients are all-reduced when the backward pass is over. How long do
# forward, backward and all-reduce take together?
#
# Answer in ms (a bare number), or with a unit.
# Model: 2 FLOPs per parameter and token forward, 4 backward, at the peak rate; ring, bandwidth
# only: an all-reduce takes 2 V / W, W both directions of one link.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
ddp_unhidden = None  # TODO: your answer
