"""# I3 One forward, one backward

GPipe finishes the forward pass of all M micro-batches before the first backward. So its first device keeps M inputs.
But the last device can start the backward of a micro-batch right after the micro-batch's forward. A schedule that
alternates one forward and one backward (1F1B) takes equally long, and keeps fewer inputs.

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

**Write** `schedule_1f1b(P, M)`.

| | type | meaning |
|---|---|---|
| `P`, `M` | int | devices, micro-batches; M may be smaller than P |
| returns | P lists of str | one list per device, one entry per tick: `"F2"`, `"B2"` or `""` (idle) |

**What is checked**

| check | rule | P=4, M=8 |
|---|---|---|
| complete | every device has F and B of every micro-batch once, at most one cell in a tick | 16 cells |
| order | every cell comes in a later tick than the cell that it needs | |
| ticks | at most 2 (M + P − 1) ticks, idle ticks at the end included | 22 ticks |
| in flight | at most P − s micro-batches in flight on device s | 4, 3, 2, 1 micro-batches |

`F2` on device s needs `F2` of device s − 1. `B2` needs `B2` of device s + 1. On the last device, `B2` needs that
device's `F2`. A micro-batch is *in flight* from its F to its B, both included. Idle ticks may be anywhere. If two cells
are possible, either may come first.

**Symbols.** s device number, f and b times of a forward and a backward, D width, T tokens of a micro-batch.

**Small case.** P=4, M=8. The last device starts in tick 3 and has 16 cells. Then the three other devices run B7, one
after the other. The step has 3 + 16 + 3 = 22 ticks. No schedule is shorter. A device is idle in 6 of 22 ticks: (P − 1) /
(M + P − 1) = 3/11, as in GPipe.

Check your work: shardlings check i3_schedule_1f1b
Notes on all exercises of this module: see README.md, or run shardlings show 09_pipeline
The text "Going further" is below the code.
"""

import math


def schedule_1f1b(P, M):
    """Return the schedule of a pipeline step.

    Args: P devices, M micro-batches.
    Returns: a list of P lists of "F0", "B0", "F1", ... or "", one entry for each tick.
    """
    # TODO: write this function
    raise NotImplementedError("schedule_1f1b")


# Question in_flight_memory [MiB]
# 12 devices run 1F1B with only 6 micro-batches of 2048 tokens. Each device sends bfloat16[2048,
# 7168] to the next. For each device, take its largest number of inputs at a time. The devices
# reach these numbers in different ticks. How many MiB do these inputs have, added over all
# devices?
#
# Answer in MiB (a bare number), or with a unit.
# Model: For each micro-batch in flight, a device keeps one input of its stage, in bfloat16. 1 MiB
# is 2^20 bytes.
in_flight_memory = None  # TODO: your answer


# Question time_of_1f1b [ms]
# 1F1B runs on 8 v4p chips with 40 micro-batches of 4096 tokens. The forward of a stage has four
# matmuls with a bfloat16[8192, 8192]. How long does a step take?
#
# Answer in ms (a bare number), or with a unit.
# Model: Only arithmetic counts, at the peak rate. Each device has its own program. A backward
# takes twice as long as a forward, b = 2 f. Nothing is computed again.
# Hardware: v4p: bf16 2.75e14 FLOP/s; table 2026-11, from How To Scale Your Model of 2025-02-04.
time_of_1f1b = None  # TODO: your answer


# ## Going further
#
# **In real systems.** A backward takes about twice as long as a forward. The step then takes (M + P − 1) · (f + b).
# Megatron and DeepSpeed run 1F1B. In exercise I5 you run it, too.
#
# **Read on.** *PipeDream: Generalized Pipeline Parallelism for DNN Training*; *Memory-Efficient Pipeline-Parallel DNN
# Training*.
