"""# H1 Data parallelism with padding and dropout

Every device holds all weights and its own rows of the batch. An all-reduce adds the devices' gradients, and all devices
make the same update. The step must give the result that one device computes from the whole batch. Two parts
are easy to get wrong, and no error occurs:

- **Padding.** Devices have different numbers of *real* rows, and some may have none. The mean of the devices' means is not the
  mean over all real rows.
- **Dropout.** If all devices draw from the same key, all of them drop the same places in their rows.

```
   device   real rows   sum of losses   its own mean
     0          3             6              2
     1          1             8              8        mean of 2, 8: 5
     2          0             0             0/0       right: 14 / 4 = 3.5
```

**Write** `ddp_step(params, x, y, real, key, *, mesh)`, one step of gradient descent.

    hidden = dropout(tanh(x·a))     out = hidden·b
    loss   = Σ (out − y)² / n, over real rows and all columns
    p      ← p − 0.1 · gradient of the loss for p

Dropout keeps each number with probability 3/4 and divides it by 3/4. Dropout sets the other numbers to 0.

| | shape | layout |
|---|---|---|
| `params` a, b | float32[D, F], float32[F, K] | whole on every device |
| `x`, `y`, `real` | float32[B, D], float32[B, K], bool[B] | `P("dp")` |
| `key` | uint32[2], new in each step | whole |
| returns: `params` | as the argument `params` | whole |
| `kept`: what dropout kept | bool[B, F] | `P("dp")` |
| loss before the step | float32[] | whole |

**What is checked**

| check | rule | small case |
|---|---|---|
| value | each of five steps equals the step of one device with all rows and the same `kept` | |
| dropout | 3/4 of the numbers are kept; masks differ between devices (even with equal rows), steps, rows and columns | |
| what is sent | at most 2 (N−1)/N · 4 bytes per parameter, plus 32 bytes for single numbers; results have the layouts above | 864 + 12 bytes |

**Symbols.** B rows, D, F, K widths, n real rows in the batch, N devices along dp.

**Small case.** a[6, 16] and b[16, 3] have 144 parameters, which take 576 bytes. On dp=4 a device sends 3/2 · 576 = 864
bytes for their gradients. Loss and n are two numbers, which take 3/2 · 8 = 12 bytes.

Check your work: shardlings check h1_ddp
Notes on all exercises of this module: see README.md, or run shardlings show 08_training
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def ddp_step(params, x, y, real, key, *, mesh):
    """Make one step of data-parallel gradient descent and return (params, kept, loss).

    Args: params {"a": float32[D, F], "b": float32[F, K]}, whole on every device; x float32[B, D], y float32[B, K] and real bool[B]
        sharded P('dp'); key uint32[2], for jax.random.wrap_key_data, new in each step; mesh may have more axes than dp.
    Returns: params, whole on every device; kept bool[B, F] sharded P('dp'); the loss before the step.
    """
    # TODO: write this function
    raise NotImplementedError("ddp_step")


# Question ddp_loss [a number]
# Two devices have 512 tokens each. On the first, 400 tokens are real and have the mean loss 1.25.
# On the second, 50 tokens are real and have the mean loss 4.5. All other tokens are padding. What
# is the loss of the batch?
#
# Answer with a bare number.
# Model: the mean over all real tokens.
ddp_loss = None  # TODO: your answer


# Question ddp_exposed [ms]
# A model of 1700 million parameters trains by data parallelism on a ring of 16 v4p chips, with
# 8192 tokens on each. The all-reduce of the bfloat16 gradients starts after the backward pass.
# How long do forward pass, backward pass and all-reduce take together?
#
# Answer in ms (a bare number), or with a unit.
# Model: A chip computes at the peak rate: 2 FLOPs per parameter and token in the forward pass, 4
# in the backward pass. An all-reduce on a ring takes 2 V / W, where W is the both-way bandwidth
# of one link. Latency does not count.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; bf16 2.75e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
ddp_exposed = None  # TODO: your answer


# ## Going further
#
# **In real systems.** PyTorch calls this kind of training `DistributedDataParallel`. In some training programs for
# language models, each device or micro-batch divided its loss by its own number of tokens. The loss looked right, but
# short sequences counted too much.
#
# **Read on.** Stanford CS336, lecture 8 (data parallelism) and assignment 2.
