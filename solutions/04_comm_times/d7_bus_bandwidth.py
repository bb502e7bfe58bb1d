"""# D7 Algorithm bandwidth, bus bandwidth, and a benchmark that looks four times too slow

A benchmark measures bytes and seconds. Their quotient is the **algorithm bandwidth**, `algbw = S / t`. It cannot be compared
with the wires: an all-reduce of `S` bytes sends more than `S` through each of them, and how much depends on the ranks. So
benchmarks also print the **bus bandwidth**, `busbw = algbw · factor`, the bytes that a rank must really send, over time:

| collective over n ranks | S, per rank | a rank sends at least | factor |
|---|---|---|---|
| all-reduce | the array, in = out | 2·(n−1)/n · S | 2·(n−1)/n |
| reduce-scatter | the array that goes *in*, n times what comes out | (n−1)/n · S | (n−1)/n |
| all-gather | the array that comes *out*, n times what goes in | (n−1)/n · S | (n−1)/n |
| all-to-all | the rank's buffer, in = out | (n−1)/n · S | (n−1)/n |
| broadcast, reduce | the array | S (the root, or each in a chain) | 1 |

```
   reduce-scatter on 4 ranks: in 4 parts, out 1
   [p0 p1 p2 p3] -> [sum of p2]     a rank sends 3 parts: 3/4 of S = in,
                                    but 3 times out
```

**A puzzle from a lecture.** The same array and the same 4 GPUs: the all-reduce shows 277 GB/s, the reduce-scatter 70. Nobody
in the room could say why. Its formula was `out · (n−1)/n / t`: right factor, wrong S. With S = in = 4·out it reads 280 GB/s,
and the wires were as busy as ever. Nothing was slow but the formula.

**Task.** Write `bandwidths`: both numbers from what a rank puts in and what it gets out.

**Small case.** 4 ranks, float32, 100·2²⁰ elements in: S = 419 MB in either case. An all-reduce of 2.27 ms has
algbw 185 GB/s and busbw 277; a reduce-scatter of 1.12 ms has algbw 374, busbw 281, and out is 105 MB.

**In real systems** nccl-tests prints both columns; compare busbw with the links, algbw with your training step.

**Read on.** *Performance reported by NCCL tests*; Stanford CS336, the lecture on parallelism and assignment 2.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "How large is the whole array that the ranks work on: what goes in, or what comes out?",
        "S is the larger of the two. The factor says how many times S a rank sends: see the table.",
        "With share = (ranks - 1) / ranks the factor is 2 * share, 1 (broadcast, reduce) or share.",
    ]
)
def bandwidths(kind, bytes_in, bytes_out, ranks, seconds):
    """Algorithm bandwidth and bus bandwidth of one collective, in bytes/s.

    Args:
        kind: "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast" or "reduce".
        bytes_in: what one rank (for a broadcast: the root) puts in. bytes_out: what one rank (for a reduce: the root)
            has at the end.
        ranks: n. seconds: t.

    Returns:
        (algbw, busbw).
    """
    algbw = max(bytes_in, bytes_out) / seconds
    share = (ranks - 1) / ranks
    factor = {"all_reduce": 2 * share, "broadcast": 1, "reduce": 1}.get(kind, share)
    return algbw, algbw * factor


def run(kind, ranks, part, seconds):
    """A benchmark in which every rank's part is ``part`` bytes and the array ``ranks`` parts."""
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
    bandwidths, public=[run("all_reduce", 4, 104_857_600, 2.27e-3)], hidden=lambda rng: drawn(rng, ["all_reduce"])
)
cut = exercise.cases(
    bandwidths,
    public=[run("reduce_scatter", 4, 104_857_600, 1.12e-3), run("all_gather", 8, 1_048_576, 3e-5)],
    hidden=lambda rng: drawn(rng, ["reduce_scatter", "all_gather"]),
)
others = exercise.cases(
    bandwidths,
    public=[run("all_to_all", 8, 1_048_576, 3e-5), run("broadcast", 8, 1_048_576, 3e-5)],
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


@exercise.misconception(of=bandwidths, fails=bandwidths_cut)
def bandwidths_of_output(bytes_in, bytes_out, **rest):
    """You took S for what comes out of a reduce-scatter. Each rank sends n-1 times that: S is the whole array, what goes in."""
    return bandwidths(bytes_in=bytes_out, bytes_out=bytes_out, **rest)


@exercise.misconception(of=bandwidths, fails=bandwidths_cut)
def bandwidths_of_input(bytes_in, bytes_out, **rest):
    """You took S for what goes into an all-gather. Each rank's part reaches n-1 others: S is the whole array, what comes out."""
    return bandwidths(bytes_in=bytes_in, bytes_out=bytes_in, **rest)


@exercise.misconception(of=bandwidths, fails=[bandwidths_reduced, bandwidths_cut, bandwidths_others])
def bandwidths_factor_in_algbw(**call):
    """You put the factor into algbw as well. Algorithm bandwidth is plain S / t; only bus bandwidth counts what wires carry."""
    _, busbw = bandwidths(**call)
    return busbw * (call["ranks"] - 1) / call["ranks"], busbw


@exercise.misconception(of=bandwidths, fails=[bandwidths_reduced, bandwidths_cut, bandwidths_others])
def bandwidths_alike(**call):
    """Your two bandwidths are the same. busbw = algbw · factor counts what a rank sends: see the table."""
    return (bandwidths(**call)[0],) * 2


@exercise.misconception(of=bandwidths, fails=bandwidths_reduced)
def bandwidths_reduced_once(kind, **rest):
    """You counted the all-reduce once. Every part is sent to be added and sent again as a sum: 2·(n-1)/n."""
    return bandwidths(kind="all_gather" if kind == "all_reduce" else kind, **rest)


@exercise.misconception(of=bandwidths, fails=bandwidths_others)
def bandwidths_root_like_ring(kind, **rest):
    """You gave broadcast or reduce the factor (n-1)/n. The whole array has to leave the root (or reach it): factor 1."""
    return bandwidths(kind="all_gather" if kind in ("broadcast", "reduce") else kind, **rest)


# -- questions ---------------------------------------------------------------------------------

NCCL = "algbw = S / t; busbw = algbw · factor as in the table, S the whole array"


@exercise.number(
    points=0.5,
    unit="GB/s",
    params={"n": [4, 6, 8], "MB": [300, 500, 900], "ms": [2.4, 3.1, 4.2]},
    model=NCCL + "; 1 MB is 10^6 bytes",
)
def reduce_bus_bandwidth(n, MB, ms):
    """{{ n }} GPUs all-reduce an array of {{ MB }} MB in {{ ms }} ms. Which bus bandwidth is that?"""
    return MB * 1e6 / (ms * 1e-3) * 2 * (n - 1) / n


@exercise.misconception(of=reduce_bus_bandwidth)
def reduce_algorithm_bandwidth(n, MB, ms):
    """That is the algorithm bandwidth, S / t. A rank sends 2·(n-1)/n times S."""
    return MB * 1e6 / (ms * 1e-3)


@exercise.misconception(of=reduce_bus_bandwidth)
def reduce_bus_one_pass(**params):
    """You counted one pass. An all-reduce sends every part twice: to be added, and as a sum."""
    return reduce_bus_bandwidth(**params) / 2


@exercise.misconception(of=reduce_bus_bandwidth)
def reduce_bus_all_of_it(n, MB, ms):
    """You doubled algbw. A rank keeps one part of n each time: 2·(n-1)/n."""
    return 2 * MB * 1e6 / (ms * 1e-3)


@exercise.number(
    points=0.5, unit="ms", params={"n": [4, 6, 8], "MB": [48, 80, 150], "busbw": [270, 340, 370]}, model=NCCL
)
def scatter_from_bus_time(n, MB, busbw):
    """A reduce-scatter over {{ n }} GPUs reaches a bus bandwidth of {{ busbw }} GB/s and leaves {{ MB }} MB on each GPU. How long does it take?"""
    return n * MB * 1e6 * (n - 1) / n / (busbw * 1e9)


@exercise.misconception(of=scatter_from_bus_time)
def scatter_from_output(n, **rest):
    """You took S for what is left on one GPU. S is the whole array, n times that."""
    return scatter_from_bus_time(n=n, **rest) / n


@exercise.misconception(of=scatter_from_bus_time)
def scatter_from_algorithm(n, **rest):
    """You divided S by busbw. That is not how long it takes: a GPU sends (n-1)/n of S."""
    return scatter_from_bus_time(n=n, **rest) * n / (n - 1)


@exercise.misconception(of=scatter_from_bus_time)
def scatter_upside_down(n, **rest):
    """You applied the factor the wrong way round: t = S/algbw, and algbw = busbw · n/(n-1)."""
    return scatter_from_bus_time(n=n, **rest) * (n / (n - 1)) ** 2


@exercise.number(
    points=0.5,
    unit="GB/s",
    params={"n": [4, 6, 8], "ar": [277, 310, 355], "percent": [88, 94, 107]},
    model="bus bandwidth: the bytes that a rank must send, over time",
)
def puzzle_bus_bandwidth(n, ar, percent):
    """A benchmark on {{ n }} GPUs prints {{ ar }} GB/s for an all-reduce, its bus bandwidth, and {{ (ar * percent / 100 / n) | round(1) }} GB/s for a
    reduce-scatter, computed as (bytes that *come out* of a rank) · (n-1)/n / t. What is the reduce-scatter's bus bandwidth?"""
    return round(ar * percent / 100 / n, 1) * n * 1e9


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_as_printed(n, **rest):
    """You believed the benchmark. A rank sends n-1 times what comes out of it, not (n-1)/n times."""
    return puzzle_bus_bandwidth(n=n, **rest) / n


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_without_own(n, **rest):
    """You multiplied by n-1, but the printed number holds a factor (n-1)/n already."""
    return puzzle_bus_bandwidth(n=n, **rest) * (n - 1) / n


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_algorithm_bandwidth(n, **rest):
    """That is the algorithm bandwidth. On the bus each rank sends (n-1)/n of S."""
    return puzzle_bus_bandwidth(n=n, **rest) * n / (n - 1)


@exercise.misconception(of=puzzle_bus_bandwidth)
def puzzle_half_of_reduce(n, ar, percent):
    """You halved the all-reduce's number because a reduce-scatter is half of it. Half the bytes in half the time: about the same bandwidth."""
    return ar / 2 * 1e9
