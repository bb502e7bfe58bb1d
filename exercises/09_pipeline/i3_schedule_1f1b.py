"""# I3 One forward, one backward

GPipe sends all micro-batches there before the first comes back, so its first device keeps the inputs of M of them.
But the last device can start back with a micro-batch as soon as it has it. Who then alternates, one forward, one
backward (1F1B), takes just as long and keeps fewer.

**Task.** Write `schedule_1f1b(P, M)`: a grid of P rows, one for each device, and one cell for each tick: `"F2"`
(forward with micro-batch 2), `"B2"` (backward) or `""` (idle).

- A device does one thing in a tick. Each device has F and B of every micro-batch once.
- What is made in a tick can be used from the next one on. `F2` on device s needs `F2` of device s − 1; `B2` needs
  `B2` of device s + 1, and on the last device its own `F2`.

**Budget.** 2 (M + P − 1) ticks, idle ones at the end included. On device s no more than P − s micro-batches are *in flight*: forward has begun and
backward is not yet done.

```
   GPipe       0   1   2   3   4   5   6   7   8   9  10  11    in flight
     pp=0     F0  F1  F2  F3   .   .   .   .  B0  B1  B2  B3        4
     pp=1      .  F0  F1  F2  F3   .   .  B0  B1  B2  B3   .        4
     pp=2      .   .  F0  F1  F2  F3  B0  B1  B2  B3   .   .        4

   1F1B        0   1   2   3   4   5   6   7   8   9  10  11    in flight
     pp=0     F0  F1  F2   .   .  B0  F3  B1   .  B2   .  B3        3
     pp=1      .  F0  F1   .  B0  F2  B1  F3  B2   .  B3   .        2
     pp=2      .   .  F0  B0  F1  B1  F2  B2  F3  B3   .   .        1
```

**Small case.** P = 4, M = 8: 22 ticks. The last device cannot begin before tick 3, then has 16 things to do, and
after the last of them B7 still has three devices to pass: 3 + 16 + 3. No schedule is shorter. Of its 22 ticks a
device is idle in 6, a part of (P − 1) / (M + P − 1) = 3/11, as in GPipe.

M may be smaller than P. Where something is idle, and which of two things comes first, is up to you.

**In real systems** a backward takes about twice as long as a forward, (M + P − 1) · (f + b) in all. 1F1B is what
Megatron and DeepSpeed run; I5 runs it, too.

**Read on.** *PipeDream: Generalized Pipeline Parallelism for DNN Training*; *Memory-Efficient Pipeline-Parallel DNN
Training*.

Check your work: shardlings check i3_schedule_1f1b
For all exercises of this module: README.md, or shardlings show 09_pipeline
"""

import math


def schedule_1f1b(P, M):
    """The schedule of a pipeline step.

    Args: P devices, M micro-batches.
    Returns: a list of P lists of "F0", "B0", "F1", ... or "", one entry for each tick.
    """
    # TODO: write this function
    raise NotImplementedError("schedule_1f1b")


# Question in_flight_memory [MiB]
# 12 devices run 1F1B with only 6 micro-batches of 2048 tokens; bfloat16[2048, 7168] goes from one
# device to the next. How many MiB of inputs do all devices keep, each at its worst moment, added
# up?
#
# Answer in MiB (a bare number), or with a unit.
# Model: bfloat16; one input of its stage for each micro-batch in flight, at the worst moment; 1
# MiB is 2^20 bytes.
in_flight_memory = None  # TODO: your answer


# Question time_of_1f1b [ms]
# 1F1B on 8 v4p chips: 40 micro-batches of 4096 tokens, each stage four products with a
# bfloat16[8192, 8192]. How long does a step take?
#
# Answer in ms (a bare number), or with a unit.
# Model: arithmetic at the peak rate, devices with programs of their own; b = 2 f, nothing is
# computed again.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
time_of_1f1b = None  # TODO: your answer
