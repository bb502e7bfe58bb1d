"""# D7 Algorithm bandwidth and bus bandwidth

A benchmark measures bytes and seconds. Bytes / seconds is the **algorithm bandwidth**. You cannot compare it with the
bandwidth of a wire, because in an all-reduce of an array of S bytes each wire carries up to 2·S bytes. So benchmarks
also print the **bus bandwidth**: the bytes that a rank must really send, divided by the time.

```
   rank 2 of 4 in a reduce-scatter: 4 parts go in, 1 comes out
   [p0 p1 p2 p3] -> [sum of p2]     it sends 3 of its 4 parts:
                                    3/4 of its input S, 3 times its output
```

**Write** `bandwidths(kind, bytes_in, bytes_out, ranks, seconds)`. It returns `(algbw, busbw)` in bytes/s.

| | meaning |
|---|---|
| `kind` | `"all_reduce"`, `"reduce_scatter"`, `"all_gather"`, `"all_to_all"`, `"broadcast"` or `"reduce"` |
| `bytes_in` | input bytes of one rank (of the root, for a broadcast) |
| `bytes_out` | output bytes of one rank (of the root, for a reduce) |
| `ranks`, `seconds` | n, t |

**Model.** algbw = S / t, busbw = algbw · factor.

| collective | S, per rank | factor |
|---|---|---|
| all-reduce | the array; input and output are equally large | 2·(n − 1)/n |
| reduce-scatter | the input, which is n times the output | (n − 1)/n |
| all-gather | the output, which is n times the input | (n − 1)/n |
| all-to-all | the rank's buffer; input and output are equally large | (n − 1)/n |
| broadcast, reduce | the array: the input of the root, or its output | 1 |

**What is checked**

| check | small case |
|---|---|
| all-reduce | algbw 198, busbw 297 GB/s |
| reduce-scatter and all-gather | algbw 401, busbw 301 GB/s |
| all-to-all, broadcast and reduce | |

**Symbols.** n: ranks. t: seconds. S: bytes, as in the table. algbw, busbw: as above. 1 GB/s = 10^9 bytes/s.

**Small case.** 4 ranks all-reduce S = 419 MB in 2.12 ms: algbw = 198 GB/s, busbw = 198 · 3/2 = 297 GB/s. They
reduce-scatter S = 1678 MB in 4.18 ms and keep 419 MB each: algbw = 401 GB/s, busbw = 401 · 3/4 = 301 GB/s.

## Going further

**Bytes to send.** A rank must send at least the factor times S bytes. In a broadcast the root sends S bytes. In a
reduce along a chain each rank but the root sends S bytes.

**A puzzle from a lecture.** On 4 GPUs a benchmark prints a bus bandwidth of 277 GiB/s for an all-reduce of 100·2²⁰
float32 numbers, and 70 GiB/s for a reduce-scatter. Four times as many bytes go *into* the reduce-scatter as into the
all-reduce: every rank brings 4 such arrays and keeps one. A listener asks whether the benchmark counts only the bytes
that come out. The benchmark does: `out · (n−1)/n / t` has the right factor but the wrong S. With S = in = 4·out the
result is 280 GiB/s, so the wires are as busy as in the all-reduce. (1 GiB is 2³⁰ bytes: 277 and 280 GiB/s are 297 and
301 GB/s, the numbers of the small case.)

**In real systems.** nccl-tests prints algbw and busbw. Compare busbw with the bandwidth of the links. With algbw you
can estimate the time of a collective in your training step.

**Read on.** *Performance reported by NCCL tests*; Stanford CS336, the lecture on parallelism and assignment 2.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "Which of the two is the whole array that the ranks work on: the input or the output?",
        "S is the larger of input and output. The factor says how many times S a rank sends: see the table.",
        "With share = (ranks - 1) / ranks the factor is 2 * share (all-reduce), 1 (broadcast, reduce) or share (the other collectives).",
    ]
)
def bandwidths(kind, bytes_in, bytes_out, ranks, seconds):
    """Return the algorithm bandwidth and the bus bandwidth of one collective, in bytes/s.

    Args: kind: "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast" or "reduce". bytes_in:
        bytes that one rank (for a broadcast: the root) puts in. bytes_out: bytes that one rank (for a reduce:
        the root) has at the end. ranks: n. seconds: t.

    Returns:
        (algbw, busbw).
    """
    algbw = max(bytes_in, bytes_out) / seconds
    share = (ranks - 1) / ranks
    factor = {"all_reduce": 2 * share, "broadcast": 1, "reduce": 1}.get(kind, share)
    return algbw, algbw * factor


def run(kind, ranks, part, seconds):
    """Return a benchmark in which every rank's part has ``part`` bytes and the array has ``ranks`` parts."""
    cut_in, cut_out = kind == "all_gather", kind == "reduce_scatter"
    return {
        "kind": kind, "bytes_in": part if cut_in else ranks * part, "bytes_out": part if cut_out else ranks * part,
        "ranks": ranks, "seconds": seconds,
    }  # fmt: skip


def drawn(rng, kinds):
    for kind in kinds * 50:
        ranks, part = int(rng.choice([2, 3, 4, 6, 8, 16, 64])), int(rng.integers(1, 500)) * 2**20
        yield run(kind, ranks, part, ranks * part / float(rng.uniform(1e9, 9e11)))


reduced = exercise.cases(
    bandwidths, public=[run("all_reduce", 4, 104_857_600, 2.12e-3)], hidden=lambda rng: drawn(rng, ["all_reduce"])
)
cut = exercise.cases(
    bandwidths,
    public=[run("reduce_scatter", 4, 419_430_400, 4.18e-3), run("all_gather", 8, 1_048_576, 3e-5)],
    hidden=lambda rng: drawn(rng, ["reduce_scatter", "all_gather"]),
)
others = exercise.cases(
    bandwidths,
    public=[run(kind, 8, 1_048_576, 3e-5) for kind in ("all_to_all", "broadcast", "reduce")],
    hidden=lambda rng: drawn(rng, ["all_to_all", "broadcast", "reduce"]),
)


@exercise.check(reduced, points=0.5, public=True)
def bandwidths_reduced(seen):
    """bandwidths: all-reduce"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(cut, points=0.5)
def bandwidths_cut(seen):
    """bandwidths: reduce-scatter and all-gather"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(others, points=0.5, public=True)
def bandwidths_others(seen):
    """bandwidths: all-to-all, broadcast and reduce"""
    expect_outcomes(seen, rtol=1e-6)


# -- questions ---------------------------------------------------------------------------------

NCCL = "algbw = S / t and busbw = algbw · factor, as in the table; S is the whole array"


@exercise.number(
    points=0.5,
    unit="GB/s",
    params={"n": [4, 6, 8], "MB": [280, 300, 580], "ms": [2.8, 4.1, 5.2]},
    model=NCCL + "; 1 MB is 10^6 bytes",
    hints=[
        "Which factor does the statement's table give for an all-reduce?",
        "An all-reduce is a reduce-scatter and an all-gather. In each of the two a rank sends all of its n parts but one.",
        "bus bandwidth = (bytes / seconds) · 2 · (n − 1) / n",
    ],
)
def reduce_bus_bandwidth(n, MB, ms):
    """{{ n }} H100 GPUs of one node all-reduce an array of {{ MB }} MB in {{ ms }} ms. Which bus bandwidth do they reach?"""
    return MB * 1e6 / (ms * 1e-3) * 2 * (n - 1) / n


@exercise.number(
    points=0.5,
    unit="ms",
    params={"n": [4, 6, 8], "MB": [48, 80, 140], "busbw": [270, 340, 370]},
    model=NCCL,
    hints=[
        "How large is the whole array, if each GPU keeps the part that the question names?",
        "S is n times what each GPU keeps. A GPU sends all of S except its own part.",
        "t = S · (n − 1) / n / busbw",
    ],
)
def scatter_from_bus_time(n, MB, busbw):
    """A reduce-scatter over {{ n }} H100 GPUs of one node reaches a bus bandwidth of {{ busbw }} GB/s and leaves {{ MB }} MB on each GPU. How long does the reduce-scatter take?"""
    return n * MB * 1e6 * (n - 1) / n / (busbw * 1e9)


@exercise.number(
    points=0.5,
    unit="GB/s",
    params={"n": [4, 6, 8], "ar": [255, 340, 370, 410], "percent": [90, 94, 106]},
    model="bus bandwidth: the bytes that a rank must send, divided by the time",
    hints=[
        "How many bytes must a rank send, compared with the bytes that come out?",
        "The benchmark counted 1 / n of the array, the bytes that come out of a rank. A rank sends (n − 1) / n of the whole array.",
        "bus bandwidth = n · (the number printed for the reduce-scatter); the all-reduce's number does not matter",
    ],
)
def puzzle_bus_bandwidth(n, ar, percent):
    """A benchmark on {{ n }} H100 GPUs of one node prints the bus bandwidth of an all-reduce, {{ ar }} GB/s. For a reduce-scatter
    it prints {{ (ar * percent / 100 / n) | round(1) }} GB/s, computed as (bytes of a rank's *output*) · (n-1)/n / t. What is the reduce-scatter's bus bandwidth?"""
    return round(ar * percent / 100 / n, 1) * n * 1e9
