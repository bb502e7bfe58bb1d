"""# L1 Read a compiled program

The compiler decides what a program sends. You see this in the text of the compiled program:
`jax.jit(f).lower(...).compile().as_text()`. This text is the program of one device, so all shapes in it are local.
Below is a part of such a text from a TPU: a loop over seven layers, which runs inside a loop of three rounds.

```
%cond (p: (s32[], bf16[768,1024])) -> pred[] {
  %seven = s32[] constant(7)
  ...
  ROOT %lt = pred[] compare(%i, %seven), direction=LT
}
%body (...) -> (...) {
  %w = bf16[1,512,256]{2,1,0:T(8,128)} fusion(%ws, %i), kind=kLoop, ...
  %g = bf16[1,1024,256] all-gather(%w), replica_groups={{0,4},{1,5},...
```

**Write** two functions. `computations`, `size`, `ITEMSIZE` and `KINDS` are given.

| | given | return |
|---|---|---|
| `device_groups(text)` | `{{0,4},{1,5}}` or `[4,2]<=[2,4]T(1,0)` | groups: lists of devices |
| `collectives(hlo)` | a program's text | sorted list of (kind, bytes, groups, trips), one for each line that sends |

| | meaning |
|---|---|
| groups | `[4,2]<=[2,4]T(1,0)`: number 8 devices as an array [2,4], transpose it, read 4 groups of 2 by rows |
| | for a `collective-permute`: the pairs [from, to] |
| kind | the opcode, whatever the line's name. `all-to-all-start` and `all-to-all-done` are one `all-to-all` |
| bytes | of all operands of one device, for one run of the line |
| trips | how often the line runs: a loop counts from 0 by 1 to the constant in its condition; the rounds of nested loops multiply |

**What is checked**

| check | texts |
|---|---|
| `device_groups` | lists, and grids that are transposed and cut |
| `collectives`: straight | CPU, no loops, several operands; equal lines count twice |
| `collectives`: loops | nested loops, CPU and TPU (only CPU prints `known_trip_count`) |
| `collectives`: transfers | one line starts the transfer, and another line completes it |
| `collectives`: fusions | computations that a `fusion` calls (`calls=%...`) |

The TPU compiler writes an overlapped gather, marked by a `chain_id`, into several fusions. Count it once, in the fusion
with `AsyncCollectiveStart`.

**Symbols.** M and L rounds of loops, G groups of N devices, A × B numbers of one device.

**Small case.** `%g` gathers 512 · 256 bfloat16 numbers, 262,144 bytes, and runs 7 · 3 = 21 times. This line gives
`("all-gather", 262144, [[0, 4], [1, 5], [2, 6], [3, 7]], 21)`.

Check your work: shardlings check l1_collectives
Notes on all exercises of this module: see README.md, or run shardlings show 12_predict_profile
The text "Going further" is below the code.
"""

import re
from math import prod


ITEMSIZE = {"pred": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4}


KINDS = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")


def computations(hlo):
    """Return the computations by name, and the name of the computation that runs first.

    Each computation is a list of its lines. A line is (result, shape, opcode, operands, attributes), such as
    ("g.1", "f32[8,4]{1,0}", "all-gather", ["w.2"], "channel_id=1, replica_groups={{0,1},{2,3}}, dimensions={0}")
    or ("c.3", "s32[]", "constant", ["7"], "").
    """
    found, entry = {}, ""
    for line in hlo.splitlines():
        if head := re.match(r"(ENTRY )?%(\S+) \(.*\{$", line):
            current = found[head[2]] = []
            entry = head[2] if head[1] else entry
        elif part := re.match(r"  (?:ROOT )?%(\S+) = (.*?) ([a-z][a-z-]*)\((.*?)\)(?:, (.*))?$", line):
            result, shape, opcode, inside, attributes = part.groups(default="")
            operands = [o.strip().lstrip("%") for o in re.sub(r"/\*.*?\*/", "", inside).split(",")]
            current.append((result, shape, opcode, operands, attributes))
    return found, entry


def size(shape):
    """Return the bytes of a shape such as bf16[8,4]{1,0}, or of all shapes in a tuple."""
    arrays = re.findall(r"(\w+)\[([\d,]*)\]", shape)
    return sum(ITEMSIZE[dtype] * prod(int(n) for n in dims.split(",") if n) for dtype, dims in arrays)


def device_groups(text):
    """Return the groups of ``{{0,4},{1,5}}`` or ``[4,2]<=[2,4]T(1,0)``, as lists of devices in the order of the text."""
    # TODO: write this function
    raise NotImplementedError("device_groups")


def collectives(hlo):
    """Return every collective that the program runs, as (kind, bytes, groups, trips), sorted; two equal lines give two entries."""
    # TODO: write this function
    raise NotImplementedError("collectives")


# Question sent_by_loops [MB]
# The body of a loop of 12 rounds, inside a loop of 2 rounds, has the line `%all-gather-start.1 =
# (bf16[384,1024], bf16[3072,1024]) all-gather-start(%w), replica_groups=[4,8]<=[8,4]T(1,0),
# dimensions={0}`, and a later line has its `all-gather-done`. How many MB does one device send
# for this gather while the program runs?
#
# Answer in MB (a bare number), or with a unit.
# Model: each device passes chunks on until all devices have them; count the bytes that one device
# sends; 1 MB is 10^6 bytes.
sent_by_loops = None  # TODO: your answer


# ## Going further
#
# **The texts** are real programs for eight devices, from JAX 0.10 and 0.12, for CPU and TPU v5e. Source lines are left
# out. `_public/l1_collectives.py` has the texts of the checks that you can run. The texts for grading differ from these:
# some have new names, devices, types and rounds, or repeat a line. To make your own texts, compile a program.
#
# **In real systems.** If a step is slow, first look for collectives that you did not write, because the compiler may add
# some. The newest JAX also prints groups by axis, `mesh['x'=2,'y'=4] {'y'}`. No text of this exercise has that form.
#
# **Read on.** *How To Scale Your Model*, "Profiling TPU Programs"; OpenXLA, "Operation Semantics" and "Asynchronous
# HLO instructions".
