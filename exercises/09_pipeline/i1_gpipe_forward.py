"""# I1 A pipeline of micro-batches

P devices in a row hold the layers of a model, L/P layers each. If a whole batch went from device to device, all
devices but one would wait. So the batch is cut into M *micro-batches*. In every *tick* each device works on a
different micro-batch, and sends its result to the next device.

```
   tick     0   1   2   3   4   5   6   7      P = 4, M = 5
   pp=0    F0  F1  F2  F3  F4   .   .   .
   pp=1     .  F0  F1  F2  F3  F4   .   .      device s has micro-batch
   pp=2     .   .  F0  F1  F2  F3  F4   .      t - s in tick t
   pp=3     .   .   .  F0  F1  F2  F3  F4
```

The dots are the *bubble*. All devices run one program, so in the bubble they compute on junk.

**Write** the body `gpipe_forward(ws, x)`. `stage(ws, a)`, the layers of one device, is given.

| | shape on one device | layout |
|---|---|---|
| `ws` | float32[L/P, D, D] | `P("pp")`: the device's layers |
| `x` | float32[M, b, D] | whole: all micro-batches |
| returns | float32[1, M, b, D] | `P("pp")`: outputs on the last device, zeros on the other devices |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| outputs | the last device has the outputs, the other devices have zeros | |
| gradients | JAX's gradients of `ws` and `x` through your ticks equal those of one device | |
| collectives | permutes and no other collective | |
| ticks | M + P − 1 ticks; each computes one stage and sends at most one micro-batch; checked with M=12 on 2 and 4 devices | 8 ticks |

Beware of junk. A device that is not a target of a `ppermute` receives zeros, and `stage` divides each row by its length
(its norm). For a row of zeros this is 0/0, which is NaN. The output can still be right, but gradients are not. The
gradient of an unused value is 0, and 0 · NaN is NaN.

**Symbols.** P stages, M micro-batches of b rows, L layers, D width.

**Small case.** P=4, M=5: 8 ticks. Each device does useful work in 5 of these ticks, so the bubble is 3/8 of the time.
With M=27 the bubble is 3/30 of the time.

Check your work: shardlings check i1_gpipe_forward
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


def gpipe_forward(ws, x):
    """Send all micro-batches through all layers.

    Args: ws float32[L/P, D, D], the device's layers; x float32[M, b, D], all micro-batches, on every device.
    Returns: float32[1, M, b, D], the outputs on the last device and zeros on the other devices.
    """
    # TODO: write this function
    raise NotImplementedError("gpipe_forward")


# Question pipeline_time [ms]
# 6 micro-batches of 2048 tokens go through 4 v5p chips in a row. Each chip has two layers whose
# `w` is bfloat16[3584, 3584]. How long does the forward pass take, until the last chip has
# computed the last output?
#
# Answer in ms (a bare number), or with a unit.
# Model: All devices begin each tick together. In a tick a device computes its stage at the peak
# rate, and then sends the output one hop at W1, the bandwidth of one direction of a link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
pipeline_time = None  # TODO: your answer


# Question bubble_flops [TFLOP]
# 4 devices have three layers each (`w` is bfloat16[8192, 8192]). 24 micro-batches of 1024 tokens
# go through all devices. How many TFLOP do all devices together spend on junk?
#
# Answer in TFLOP (a bare number), or with a unit.
# Model: All devices run one program and compute in every tick. Only matmuls count. 1 TFLOP is
# 10^12 FLOPs.
bubble_flops = None  # TODO: your answer


# ## Going further
#
# **In time.** The grader's clock computes the times of this picture for unrolled ticks on 2x2 v5e chips: P = 4, M = 5,
# two layers of float32[4096, 4096] on each device, and micro-batches of 4096 tokens. It uses the profile *ideal*: every
# collective can run beside the core. In the picture `D` is a matmul, `k` is other work of the core and `P` is a hop;
# times are in us.
#
# ```
# 24,302.753 us, 7 permutes, 0% of their time overlapped
#          │0            │5,000        │10,000      │15,000       │20,000
# compute  k═k═    kD═k═    k═kD═    k═k═    kD═k═    k═kD     k═k═    kD═k═k─
# link pp+     P···     P···     P···    P···     P···    P····    P···
# ```
#
# A matmul waits for the hop before it, and the hop waits for the matmul before it. If a stage takes the time d and a hop
# takes the time h, the forward pass takes (M + P − 1) · d + (M + P − 2) · h. In v5e's own profile permutes also run
# beside the core.
#
# **In real systems.** Stages are on different hosts or pods, because activations between stages have few bytes, compared
# with weights and gradients.
#
# **Read on.** *GPipe: Easy Scaling with Micro-Batch Pipeline Parallelism*; CS336, lecture 8.
