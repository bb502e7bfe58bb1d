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

## Going further

**In real systems.** A backward takes about twice as long as a forward. The step then takes (M + P − 1) · (f + b).
Megatron and DeepSpeed run 1F1B. In exercise I5 you run it, too.

**Read on.** *PipeDream: Generalized Pipeline Parallelism for DNN Training*; *Memory-Efficient Pipeline-Parallel DNN
Training*.
"""

from grader.exercise import Exercise
from grader.hardware import matmul_time

exercise = Exercise(stars=3)


@exercise.function(
    hints=[
        "How many forwards does device s run before its first backward? Which cells follow?",
        "Each device has a list: min(P - s, M) forwards, then a backward and a forward in turn until no forward is left, then the "
        "other backwards. Go tick by tick: a device runs its next cell if the results that the cell needs are there.",
        "You can also compute the ticks: F of micro-batch i on device s is in tick s + 2 * i, and B in tick 2 * P - 1 - s + 2 * i. A device's F and B never fall into one tick. Why?",
    ]
)
def schedule_1f1b(P, M):
    """Return the schedule of a pipeline step.

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
    model="For each micro-batch in flight, a device keeps one input of its stage, in bfloat16. 1 MiB is 2^20 bytes",
    hints=[
        "How many micro-batches does stage s hold at most?",
        "Stage s holds P − s micro-batches, but never more than M. Add these numbers over all stages.",
        "the sum over s = 0 ... P − 1 of the smaller of P − s and M, times 2 · T · D bytes",
    ],
)
def in_flight_memory(P, M, T, D):
    """{{ P }} devices run 1F1B with only {{ M }} micro-batches of {{ T }} tokens. Each device sends bfloat16[{{ T }},
    {{ D }}] to the next. For each device, take its largest number of inputs at a time. The devices reach these numbers in different ticks. How many MiB do these inputs have, added over all devices?"""
    return sum(min(P - s, M) for s in range(P)) * 2 * T * D


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "P": [4, 8], "M": [8, 24, 40], "T": [2048, 4096], "D": [6144, 8192]},
    model="Only arithmetic counts, at the peak rate. Each device has its own program. A backward takes twice as long as a forward, b = 2 f. Nothing is computed again",
    hints=[
        "How many forwards, and how many backwards, follow one another from the start of a step to its end?",
        "M + P − 1 forwards and M + P − 1 backwards follow one another. A forward and a backward together take f + b = 3 f.",
        "(M + P − 1) · 3 · (4 matmuls · 2 · T · D² FLOPs) / C",
    ],
)
def time_of_1f1b(chip, P, M, T, D):
    """1F1B runs on {{ P }} {{ chip }} chips with {{ M }} micro-batches of {{ T }} tokens. The forward of a stage has four matmuls with a
    bfloat16[{{ D }}, {{ D }}]. How long does a step take?"""
    return (M + P - 1) * 3 * matmul_time(4 * 2 * T * D**2, chip)
