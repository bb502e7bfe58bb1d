"""# I5 1F1B as a program

GPipe keeps the inputs of M micro-batches. The schedule of exercise I3 keeps at most P inputs. Here you write the
program: in each tick a device does one forward (F) or one backward (B), and sends one array.

```
 tick  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15     P = 4, M = 5
 pp=0 F0  . F1  . F2  . F3 B0 F4 B1  . B2  . B3  . B4
 pp=1  . F0  . F1  . F2 B0 F3 B1 F4 B2  . B3  . B4  .
 pp=2  .  . F0  . F1 B0 F2 B1 F3 B2 F4 B3  . B4  .  .
 pp=3  .  .  . F0 B0 F1 B1 F2 B2 F3 B3 F4 B4  .  .  .
```

Device s has F of micro-batch i in tick s + 2i, and B of micro-batch i in tick 2P − 1 − s + 2i. A device has F in even
ticks and B in odd ticks, or the reverse. At a dot, i is below 0 or above M − 1, and the device computes junk.

**Write** the body `grad_1f1b(ws, x, y)` (`check_vma=False`). `stage` and the loss are those of exercise I2.

| | shape on one device | layout |
|---|---|---|
| `ws` | float32[L/P, D, D] | `P("pp")` |
| `x`, `y` | float32[M, b, D] | whole |
| returns: loss | float32[] | whole |
| gradient of `ws` | as `ws` | `P("pp")` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| value | loss and gradient are those of one device | |
| ticks | 2 (M + P − 1) ticks, each with at most two permutes; one all-reduce of the loss | 16 ticks |
| memory | on pp=4, M=63: a stash of about P inputs and one tick's arrays; a stash of 4P inputs fails; no more ticks than above, and no more FLOPs than they need | 4 inputs |

On pp=4 the grader's clock also counts ticks: with these small arrays a tick takes as long as its hop, 1 us. Write the
ticks as a loop, because the grader cannot follow unrolled ticks.

Allowed: F and B of two micro-batches in one tick, in M + 2P − 2 ticks with a stash of 2P − 1 inputs. Each tick may copy
the stash.

**Symbols.** P stages, s device, i micro-batch, M micro-batches of b rows, L layers, D width.

**Small case.** P=4, M=5: 2 · 8 = 16 ticks. In tick 6 device 0 holds inputs 0 to 3. B0 in tick 7 frees slot 0, and
F4 in tick 8 takes this slot: `i % P`. Device 3 never holds more than one input.

Check your work: shardlings check i5_1f1b_program
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


def grad_1f1b(ws, x, y):
    """Return the loss and its gradient, in the order of one forward, one backward.

    Args: ws float32[L/P, D, D], the device's layers; x and y float32[M, b, D], all micro-batches.
    Returns: (loss, gradient of ws).
    """
    # TODO: write this function
    raise NotImplementedError("grad_1f1b")


# Question stash_saved [MiB]
# A pipeline has 8 stages and 28 micro-batches of 3072 tokens. A stage's input is bfloat16[3072,
# 8192]. How many MiB smaller is your program's stash of P inputs than the stash of GPipe, on each
# device?
#
# Answer in MiB (a bare number), or with a unit.
# Model: A stash holds only inputs of stages, in bfloat16. 1 MiB is 2^20 bytes.
stash_saved = None  # TODO: your answer


# Question lock_step_time [ms]
# Your program runs on 8 v4p chips with 16 micro-batches of 2048 tokens, in the order of the grid
# above. Each stage has two layers whose `w` is bfloat16[8192, 8192]. How long does the program
# take?
#
# Answer in ms (a bare number), or with a unit.
# Model: Only arithmetic counts, at the peak rate. A tick takes as long as a B, which computes the
# stage again.
# Hardware: v4p: bf16 2.75e14 FLOP/s; table 2026-11, from How To Scale Your Model of 2025-02-04.
lock_step_time = None  # TODO: your answer


# ## Going further
#
# **In time.** All devices run one program, and each waits for its neighbours. So a tick takes as long as the longer of F
# and B. B computes the stage again, so it has three times the matmuls of F. Let a unit be the time of an F. The step
# takes 2 (M + P − 1) · 3 units, and GPipe's step takes (M + P − 1) · 4 units. The program saves memory, but takes more
# time than GPipe. If each device has its own program, 1F1B also takes (M + P − 1) · 4 units.
#
# **Both in one tick.** A program with an F and a B in each tick has M + 2P − 2 ticks of 4 units.
#
# **In real systems.** Megatron and DeepSpeed use 1F1B, with a separate program on each device.
#
# **Read on.** *PipeDream: Generalized Pipeline Parallelism for DNN Training*; *Efficient Large-Scale Language Model
# Training on GPU Clusters Using Megatron-LM*.
