"""# L2 Predict, then measure

Write a program, predict how long it takes, and measure it. If you predict first, every difference teaches you
something. Here you write the part that can be graded: you evaluate a log of calls, and fit a model of the time.

```
         called  returned                             ready
host     |---f(x)---|      ...block_until_ready()...  |
device             |== earlier call ==|=== f(x) ======|
```

A jitted call **returns** as soon as its work is queued. The result is **ready** later. `block_until_ready()` waits
until the result is ready.

**Write** two functions.

| | given | return |
|---|---|---|
| `durations(log)` | one dict per call, in order | [(bytes, [seconds, ...]), ...], sizes ascending |
| `fit(measured, devices)` | the list that `durations` returns for a log of all-gathers | (α, β); `ValueError` for fewer than two sizes |

A call's dict has `bytes` of the whole array, `cut` (False if every device already had the whole array) and three time
stamps in seconds: when it was `called`, when it `returned`, and when its result was `ready`. A call's duration is the
time from `called` to `ready`. An all-gather one way round a ring takes

    (N−1)·α + (N−1)/N · V/β

**What is checked**

| check | rule |
|---|---|
| `durations`: compiling | the first call with a new pair of `bytes` and `cut` compiles: leave it out |
| `durations`: queued calls | a device runs one call at a time: leave out a call that was made before the previous call was ready |
| `durations`: whole inputs | if an array is already whole, nothing moves: leave out calls with `cut` False |
| `fit` | least squares over all sizes, within 5 % |
| | some calls take several times as long as others of the same size: use the median or the minimum of each size's times |

**Symbols.** N devices, V bytes of the whole array, α seconds per hop, β bytes/s of a link one way.

**Small case.** Calls of 4 MB, all cut, take 312 ms, 1.2 ms and 1.1 ms: the result is `[(4000000, [0.0012, 0.0011])]`.
On N=4, 4 MB take 1.3 ms and 8 MB take 2.3 ms. With 8 MB instead of 4 MB, 3 MB more cross a link and take 1 ms more, so
β = 3 GB/s. The 4 MB call has 0.3 ms left for 3 hops, so α = 100 µs.

## Going further

**On chips that you do not have** (never graded). `shardlings predict f1 --on v5e:2x4 step=9us` keeps your prediction
for the time of a step of F1. Then `shardlings explain f1 --on v5e:2x4` shows the prediction of the grader's clock. If
the course has a compiled program that equals yours, `explain` also shows the TPU compiler's prediction. You need no
compiler for this.

**On your own devices** (never graded). `shardlings predict l2` shows the programs and keeps your prediction.
`shardlings profile l2` runs the programs on eight simulated devices or on your accelerators, and draws predicted
against measured times. This command also writes `l2_log.json`, a log that your functions can read.

**The log.** A profiler sees when a result is ready even if no code waits for it. So a log can have a `ready` time for
every call.

**In real systems.** To time a function, warm up, wait, start the clock, run, wait and stop the clock. Also record the
compiler flags. Some predictions assume that an all-gather overlaps a matmul. Such a prediction holds only if the
compiler makes the all-gather asynchronous (`--xla_enable_async_all_gather`). Exercise L1 shows how to find asynchronous
collectives in a compiled program.

**Read on.** JAX, "Asynchronous dispatch" and "Benchmarking JAX code"; R. Hockney, *The communication challenge for
MPP*.
"""

from math import fsum
from statistics import median

from grader.exercise import Exercise

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "Go through the log in order. What must you remember about earlier calls?",
        "Remember which pairs (bytes, cut) were called before, and when the last call was ready. Three conditions decide whether a call counts.",
        'if call["cut"] and key in compiled and call["called"] >= free: found.setdefault(call["bytes"], []).append(call["ready"] - call["called"])',
    ]
)
def durations(log):
    """Return the durations of the calls that count, for each size.

    Args: log, a list of dicts with bytes, cut, called, returned and ready, one for each call.
    Returns: [(bytes, [seconds, ...]), ...], sizes ascending, the seconds of each size in the log's order. A size
    without a call that counts is left out.
    """
    found, compiled, free = {}, set(), float("-inf")
    for call in log:
        key = call["bytes"], call["cut"]
        if call["cut"] and key in compiled and call["called"] >= free:
            found.setdefault(call["bytes"], []).append(call["ready"] - call["called"])
        compiled.add(key)
        free = call["ready"]
    return sorted(found.items())


@exercise.function(
    hints=[
        "Which quantity must be on the x axis, so that the slope is the time of a byte on a link?",
        "x = (N-1)/N · V, y = a typical time of a call of size V. The slope is 1/β, and the value at x = 0 is (N-1)·α. Some calls are delayed by other work.",
        "slope, start = np.polyfit([V * (devices - 1) / devices for V, _ in measured], [median(s) for _, s in measured], 1)",
    ]
)
def fit(measured, devices):
    """Return (alpha, beta), the seconds of a hop and the bytes/s of a link, by least squares over all sizes.

    Some calls take several times as long, because other work delayed them. Use the median or the minimum of each size.
    Both results may be up to 5 % off.

    Raises ValueError for fewer than two sizes.
    """
    if len(measured) < 2:
        raise ValueError("one size does not determine a slope")
    hops = devices - 1
    crossed = [size * hops / devices for size, _ in measured]
    took = [median(seconds) for _, seconds in measured]
    x, y = fsum(crossed) / len(crossed), fsum(took) / len(took)  # exact sums: the same bits on every machine
    slope = fsum((a - x) * b for a, b in zip(crossed, took, strict=True)) / fsum((a - x) * a for a in crossed)
    return (y - slope * x) / hops, 1 / slope


# -- questions ---------------------------------------------------------------------------------


@exercise.number(
    points=0.5, unit="ms", model="the spread is the standard deviation of the runs' means, with divisor R, the number of runs (not R − 1)",
    params={"R": [5, 10], "L": [4, 6, 20], "mean": [31.4, 38.6, 52.7], "std": [45.8, 58.2, 66.3, 88.4]},
    where=lambda R, L, mean, std: 0.12 < 1 - std / mean / (R - 1) ** 0.5 < 0.6,
    hints=[
        "Which run contains the slow call, and how do the R runs differ?",
        "Let t + d be the mean of the run with the slow call, and t the mean of every other run. Then mean = t + d / R, and std = d · √(R − 1) / R.",
        "t = mean − std / √(R − 1)",
    ],
)  # fmt: skip
def time_without_compiling(R, L, mean, std):
    """A notebook times a jitted function without calling it first, in {{ R }} runs of {{ L }} calls, and prints
    {{ mean }} ms ± {{ std }} ms per call (mean ± spread of {{ R }} runs). The first call compiles. All other calls take
    the same time. How long does each of the other calls take?"""
    return (mean - std / (R - 1) ** 0.5) * 1e-3


@exercise.number(
    points=0.5, unit="us", model="time: hops · α + sent bytes / β, as above; an all-reduce of V bytes is a reduce-scatter and an all-gather of V bytes",
    params={"N": [4, 6, 8], "a": [2.2, 3.4, 5.2], "b": [14, 23, 38], "V": [0.36, 0.52, 0.88]},
    where=lambda N, a, b, V: 0.5 < V / N / b / (a * 1e-3) < 0.85 or 1.2 < V / N / b / (a * 1e-3) < 4,
    hints=[
        "How many hops does an all-reduce have, and how many bytes does a device send in each hop?",
        "An all-reduce has 2 · (N − 1) hops of V / N bytes. Each hop takes α + V / (N · β).",
        "2 · (N − 1) · (α + V / N / β)",
    ],
)  # fmt: skip
def all_reduce_predicted(N, a, b, V):
    """All-gathers over a ring of {{ N }} devices give α = {{ a }} µs and β = {{ b }} GB/s. How long should an all-reduce of {{ V }} MB take on this ring?"""
    return 2 * (N - 1) * (a * 1e-6 + V * 1e6 / N / (b * 1e9))


@exercise.number(
    points=0.5, unit="kB", model="time: hops · α + sent bytes / β, as above",
    params={"N": [3, 4, 6, 8], "a": [2.2, 3.4, 5.2], "b": [14, 23, 38], "p": [5, 10, 15]},
    hints=[
        "Which share of the time of one hop is α?",
        "α / (α + V / N / β) = p / 100. Solve for V.",
        "V = N · α · β · (100 − p) / p",
    ],
)  # fmt: skip
def latency_small_from(N, a, b, p):
    """An all-gather over {{ N }} devices takes the time of the formula above, with α = {{ a }} µs and β = {{ b }} GB/s.
    How large must the *whole* array be, at least, so that the α of all hops together take at most {{ p }} % of this
    time?"""
    return N * a * 1e-6 * b * 1e9 * (100 - p) / p
