"""# I2 The backward pass of a pipeline

Here the pipeline of exercise I1 gets a backward pass. When the last device has all outputs, gradients run in the other
direction. In a tick a device receives the gradient of its output and sends the gradient of its input to the previous
device. To compute a gradient, the device needs the input of its stage again. So in the forward pass each device keeps a
*stash* of these inputs.

```
   tick     0   1   2   3   4   5   6   7   8   9  10  11     P = 3, M = 4
   pp=0    F0  F1  F2  F3   .   .   .   .  B0  B1  B2  B3
   pp=1     .  F0  F1  F2  F3   .   .  B0  B1  B2  B3   .
   pp=2     .   .  F0  F1  F2  F3  B0  B1  B2  B3   .   .
```

In ticks with a dot, a device computes on junk. Mask a gradient of junk with `jnp.where`, not by a factor 0: 0 · NaN is
NaN.

**Write** the body `gpipe_step(ws, x, y, *, rate)`, one training step (`check_vma=False`). `stage` is given. The
loss is the mean of `(output − y)²` over all M micro-batches together.

| | shape on one device | layout |
|---|---|---|
| `ws` | float32[L/P, D, D] | `P("pp")` |
| `x`, `y` | float32[M, b, D] | whole |
| returns: loss | float32[] | whole |
| w − rate · gradient | as `ws` | `P("pp")` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| loss, layers | in each of three steps, equal to the results of one device; all micro-batches see the same weights | |
| ticks | M + P − 1 ticks in each pass, and no more FLOPs than these ticks need; permutes, and one all-reduce of the loss | 2 · 6 ticks |
| memory | on pp=2 a device holds its arguments, one stash of M inputs, one sum of gradients and one tick's arrays; ticks as above | |

Keeping the inputs of every layer, or a gradient for each micro-batch, takes too much memory. Write the ticks as loops:
the grader cannot follow the memory of a program with more than 5,000 operations.

**Symbols.** P stages, M micro-batches of b rows, L layers (in question `gpipe_stash`, layers of a stage), D width.

**Small case.** P=3, M=4: 6 ticks in each pass. `jax.vjp(stage, ws, a)` computes the stage again. The call returns the
output and a function. This function maps the output's gradient to the gradients of `ws` and `a`. So a backward tick
costs as much as three forward ticks: one to compute the stage again, and one for each gradient.

Check your work: shardlings check i2_gpipe_backward
Notes on all exercises of this module: see README.md, or run shardlings show 09_pipeline
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def stage(ws, a):
    """Apply the layers of one device: each scales the rows of a[b, D] to length 1, multiplies by its w, and applies
    tanh."""
    for w in ws:
        a = jnp.tanh(a / jnp.linalg.norm(a, axis=-1, keepdims=True) @ w)
    return a


def gpipe_step(ws, x, y, *, rate):
    """Make one step of gradient descent.

    Args: ws float32[L/P, D, D], the device's layers; x and y float32[M, b, D], all micro-batches; rate a number.
    Returns: (loss, ws after the step).
    """
    # TODO: write this function
    raise NotImplementedError("gpipe_step")


# Question gpipe_stash [MiB]
# A pipeline has 4 stages of 5 layers each, 32 micro-batches of 3072 tokens, and sends
# bfloat16[3072, 8192] between stages. How many MiB is the stash of one device at the end of the
# forward pass?
#
# Answer in MiB (a bare number), or with a unit.
# Model: The stash holds only inputs of stages. 1 MiB is 2^20 bytes.
gpipe_stash = None  # TODO: your answer


# Question gpipe_step_time [ms]
# `gpipe_step` runs on 8 v5p chips with 12 micro-batches of 4096 tokens. Each stage has three
# layers whose `w` is bfloat16[6144, 6144]. How long does a step take?
#
# Answer in ms (a bare number), or with a unit.
# Model: Only arithmetic counts, at the peak rate. The backward pass computes each stage again.
# Hardware: v5p: bf16 4.59e14 FLOP/s; table 2026-11, from How To Scale Your Model of 2025-02-04.
gpipe_step_time = None  # TODO: your answer


# ## Going further
#
# **In real systems.** This is GPipe with rematerialization. Devices that keep the values inside their layers need not
# compute the stage again, but need more memory.
#
# **Read on.** *GPipe: Easy Scaling with Micro-Batch Pipeline Parallelism*.
