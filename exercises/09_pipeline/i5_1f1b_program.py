"""# I5 1F1B as a program

GPipe keeps the inputs of M micro-batches. I3's schedule keeps P at most, since each goes back as soon as it can. Here
it runs.

**Task.** Write the gradient of a pipeline as a body for `shard_map` (wrapped for you, with `check_vma=False`), in the
order of this grid. In each tick a device goes there with one micro-batch (F) or back with one (B), and hands on one
array:

```
 tick  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15     P = 4, M = 5
 pp=0 F0  . F1  . F2  . F3 B0 F4 B1  . B2  . B3  . B4
 pp=1  . F0  . F1  . F2 B0 F3 B1 F4 B2  . B3  . B4  .
 pp=2  .  . F0  . F1 B0 F2 B1 F3 B2 F4 B3  . B4  .  .
 pp=3  .  .  . F0 B0 F1 B1 F2 B2 F3 B3 F4 B4  .  .  .
```

Device s has F of micro-batch i in tick s + 2i, and B of it in tick 2P − 1 − s + 2i: one of them in even ticks, the
other in odd ones. In the dots there is such an i as well, below 0 or above M − 1; what is computed then is junk.

`stage`, the loss and the devices' layers are those of I2. Return the loss and the gradient of the device's layers.

**Budget.** 2 (M + P − 1) ticks, as a loop: a program that writes out every tick is too long to be followed. Permutes
only, two in a tick at most, and one all-reduce of the loss. The stash does not grow with M: P inputs are enough. M is
63 where memory is checked, and a stash of M inputs fails. The arrays that are checked are so small that on P = 4 chips a tick takes the 1 us of its hop, by the course's
clock: it counts your ticks.

**Small case.** On P = 4, device 0 holds the inputs of micro-batches 0 to 3 in tick 6, and B0 lets go of the first
before F4 comes: slot `i % P` of the stash is free when it is needed. Device 3 never holds more than one.

**In time.** All devices run one program, and each waits for its neighbours: a tick is as long as the longer of F and
B. B computes the stage again, three times the arithmetic of F. So the step takes 2 (M + P − 1) · 3 units, GPipe's (M
+ P − 1) · 4: here memory is paid for with time. Devices with programs of their own need (M + P − 1) · 4 for 1F1B,
too.

**Beyond.** F and B in one tick, each of another micro-batch: M + 2P − 2 ticks of 4 units, and a stash of 2P − 1
inputs. That is allowed, and so is a copy of such a stash in each tick.

**In real systems** 1F1B is Megatron's and DeepSpeed's schedule, each device with a program of its own.

**Read on.** *PipeDream: Generalized Pipeline Parallelism for DNN Training*; *Efficient Large-Scale Language Model
Training on GPU Clusters Using Megatron-LM*.

Check your work: shardlings check i5_1f1b_program
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


def grad_1f1b(ws, x, y):
    """The loss and its gradient, one forward, one backward.

    Args: ws float32[L/P, D, D], the device's layers; x and y float32[M, b, D], all micro-batches.
    Returns: (loss, gradient of ws).
    """
    # TODO: write this function
    raise NotImplementedError("grad_1f1b")


# Question stash_saved [MiB]
# 8 stages, 28 micro-batches of 3072 tokens, a stage's input is bfloat16[3072, 8192]. How many MiB
# smaller than the stash of GPipe is that of your program, on each device?
#
# Answer in MiB (a bare number), or with a unit.
# Model: bfloat16; a stash holds the inputs of stages and nothing else; 1 MiB is 2^20 bytes.
stash_saved = None  # TODO: your answer


# Question lock_step_time [ms]
# Your program on 8 v4p chips: 12 micro-batches of 2048 tokens, each stage two layers whose `w` is
# bfloat16[8192, 8192]. How long does it take?
#
# Answer in ms (a bare number), or with a unit.
# Model: arithmetic at the peak rate and nothing else; a tick is as long as a B, which computes
# the stage again.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
lock_step_time = None  # TODO: your answer
