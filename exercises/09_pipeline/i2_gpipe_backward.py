"""# I2 The way back through a pipeline

I1's pipeline learns. When the last device has all outputs, gradients run the other way: in a tick every device takes
the gradient that arrives for what it made, and passes the gradient of what it was given to the device before. For
that it needs the inputs of its stage again, so on the way there each device keeps a *stash* of them.

**Task.** Write one training step as a body for `shard_map` (wrapped for you, with `check_vma=False`). `stage` is
given, as in I1. The loss is the mean of `(output − y)²` over all M micro-batches together. Return the loss, and the
device's layers after `w − rate · gradient`. All micro-batches see the same weights.

**Budget.** M + P − 1 ticks there and as many back. Permutes only, and one all-reduce of one number, the loss. In
memory, beside the arguments: one stash of the stages' inputs, one sum of gradients and what a single tick takes. The
inputs of every layer are too much, and so is a gradient for each micro-batch. Write the ticks as loops: the memory of a
program of more than 5,000 operations cannot be followed.

```
   tick     0   1   2   3   4   5   6   7   8   9  10  11     P = 3, M = 4
   pp=0    F0  F1  F2  F3   .   .   .   .  B0  B1  B2  B3
   pp=1     .  F0  F1  F2  F3   .   .  B0  B1  B2  B3   .
   pp=2     .   .  F0  F1  F2  F3  B0  B1  B2  B3   .   .
```

In the dots a device computes, too, on junk. A gradient of junk is masked with `jnp.where`: 0 · NaN is NaN.

**Small case.** `jax.vjp(stage, ws, a)` computes the stage again and returns its output and a function from the
gradient of the output to those of `ws` and `a`. So a tick of the way back costs three ticks of the way there: again,
and once for each of the two gradients.

**In real systems** this is GPipe with rematerialization. Devices that keep what is inside their layers skip the
"again" and pay in memory.

**Read on.** *GPipe: Easy Scaling with Micro-Batch Pipeline Parallelism*.

Check your work: shardlings check i2_gpipe_backward
For all exercises of this module: README.md, or shardlings show 09_pipeline
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def stage(ws, a):
    """The layers of one device: each brings the rows of a[b, D] to length 1, multiplies by its w, and takes tanh."""
    for w in ws:
        a = jnp.tanh(a / jnp.linalg.norm(a, axis=-1, keepdims=True) @ w)
    return a


def gpipe_step(ws, x, y, *, rate):
    """One step of gradient descent.

    Args: ws float32[L/P, D, D], the device's layers; x and y float32[M, b, D], all micro-batches; rate a number.
    Returns: (loss, ws after the step).
    """
    # TODO: write this function
    raise NotImplementedError("gpipe_step")


# Question gpipe_stash [MiB]
# 4 stages of 5 layers each, 32 micro-batches of 3072 tokens, bfloat16[3072, 8192] between stages.
# How many MiB is the stash of one device when the way there is done?
#
# Answer in MiB (a bare number), or with a unit.
# Model: a stash of inputs of stages and nothing else; 1 MiB is 2^20 bytes.
gpipe_stash = None  # TODO: your answer


# Question gpipe_step_time [ms]
# `gpipe_step` on 8 v5p chips: 12 micro-batches of 4096 tokens, each stage three layers whose `w`
# is bfloat16[6144, 6144]. How long does a step take?
#
# Answer in ms (a bare number), or with a unit.
# Model: arithmetic at the peak rate and nothing else; the way back computes each stage again.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
gpipe_step_time = None  # TODO: your answer
