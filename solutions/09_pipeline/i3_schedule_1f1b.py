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
"""

from grader.exercise import Exercise
from grader.hardware import matmul_time

exercise = Exercise(stars=3)


@exercise.function(
    hints=[
        "How many forwards does device s do before its first backward comes in? And from then on?",
        "Each device has its list: min(P - s, M) forwards, then a backward and a forward in turn while there are any, then the "
        "backwards that are left. Let the ticks run: whose next thing has what it needs does it.",
        "Or find the ticks: F of micro-batch i on device s at s + 2 * i, B at 2 * P - 1 - s + 2 * i. They never meet. Why?",
    ]
)
def schedule_1f1b(P, M):
    """The schedule of a pipeline step.

    Args: P devices, M micro-batches.
    Returns: a list of P lists of "F0", "B0", "F1", ... or "", one entry for each tick.
    """
    todo = []
    for s in range(P):
        ahead = min(P - s, M)
        order = [f"F{i}" for i in range(ahead)]
        for i in range(M):
            order.append(f"B{i}")
            if ahead + i < M:
                order.append(f"F{ahead + i}")
        todo.append(order)
    grid, done = [[] for _ in range(P)], set()
    while any(todo):
        made = []
        for s in range(P):
            cell = todo[s][0] if todo[s] else ""
            kind, before = cell[:1], s - 1 if cell[:1] == "F" else s + 1
            ready = not 0 <= before < P or (before, cell) in done
            if (kind == "F" and ready) or (kind == "B" and ready and (s, "F" + cell[1:]) in done):
                made.append((s, todo[s].pop(0)))
            else:
                cell = ""
            grid[s].append(cell)
        done.update(made)
    return grid


@exercise.number(
    points=0.5,
    unit="MiB",
    params={"P": [8, 12, 16], "M": [3, 5, 6], "T": [2048, 3072], "D": [5120, 7168]},
    model="bfloat16; one input of its stage for each micro-batch in flight, at the worst moment; 1 MiB is 2^20 bytes",
)
def in_flight_memory(P, M, T, D):
    """{{ P }} devices run 1F1B with only {{ M }} micro-batches of {{ T }} tokens; bfloat16[{{ T }}, {{ D }}] goes from one device to the
    next. How many MiB of inputs do all devices keep, each at its worst moment, added up?"""
    return sum(min(P - s, M) for s in range(P)) * 2 * T * D


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "P": [4, 8], "M": [8, 24, 40], "T": [2048, 4096], "D": [6144, 8192]},
    model="arithmetic at the peak rate, devices with programs of their own; b = 2 f, nothing is computed again",
)
def time_of_1f1b(chip, P, M, T, D):
    """1F1B on {{ P }} {{ chip }} chips: {{ M }} micro-batches of {{ T }} tokens, each stage four products with a bfloat16[{{ D }}, {{ D }}].
    How long does a step take?"""
    return (M + P - 1) * 3 * matmul_time(4 * 2 * T * D**2, chip)
