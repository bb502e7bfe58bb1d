"""# L2 Predict, then measure

Write a program, predict how long it takes, measure it: whoever predicts first learns from every difference. This is the part that can
be judged: what a stopwatch says, and what follows from it. The rest is for your own devices, below.

```
         called  returned                             ready
host     |---f(x)---|      ...block_until_ready()...  |
device             |== earlier call ==|=== f(x) ======|
```

A jitted call **returns** as soon as its work is queued. The result is **ready** later; `block_until_ready()` waits for that.

**Tasks.** `durations(log)`: the seconds that calls took, for each size. `fit(measured, devices)`: what a message costs. A log has a dict for
each call, in order: `bytes` of the whole array, `cut` (False: every device had the whole array before), and the seconds on one clock
at which it was `called`, had `returned`, and its result was `ready` (a profiler sees that also where nobody waited).

- A call takes from `called` to `ready`.
- The first call with a new size, or with a new layout (`cut`), compiles. It does not count.
- A device runs its calls one after the other. A call that was made before the one before it was ready waited for that. It does not count.
- Gathering what is whole already moves nothing. It does not count.

`fit` gets what `durations` returns, of an all-gather over a ring of `devices` N, one way round. Its time is a line,
**(N−1)·α + (N−1)/N · V/β**: N−1 hops, each α seconds; V is the whole array, of which (N−1)/N crosses each link at β bytes/s.

**Small case.** Calls of 4 MB, all cut, take 312 ms, 1.2 ms and 1.1 ms: `[(4000000, [0.0012, 0.0011])]`. If 4 MB take 1.3 ms over 4 devices
and 8 MB take 2.3 ms: 3 MB more cross a link in 1 ms, β = 3 GB/s; 0.3 ms are left for 3 hops, α = 100 µs.

**On chips that you do not have** (never graded): `shardlings predict f1 --on v5e:2x4 step=9us` keeps your prediction of a step of
F1, and `shardlings explain f1 --on v5e:2x4` then shows the clock's and, once your program is the one that the course had compiled, the
TPU compiler's, without that compiler.

**On your own devices** (never graded): `shardlings predict l2` shows the programs and keeps your prediction, `shardlings profile l2` runs
them, here on eight simulated devices or on the accelerators that are there, and draws predicted against measured. It leaves
`l2_log.json`, a log that your functions can read.

**In real systems**: warm up, wait, start the clock, run, wait, stop. And note the flags: a prediction that hides an all-gather
under a product holds where the compiler makes it asynchronous (`--xla_enable_async_all_gather`); L1 shows how to see that.

**Read on.** JAX, "Asynchronous dispatch" and "Benchmarking JAX code"; R. Hockney, *The communication challenge for MPP*.
"""

from math import fsum
from statistics import median

from grader.exercise import Exercise

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "Go through the log in order. What must you remember of the calls before this one?",
        "Remember which (bytes, cut) were called before, and when the last call was ready. Three conditions decide whether a call counts.",
        'if call["cut"] and key in compiled and call["called"] >= free: found.setdefault(call["bytes"], []).append(call["ready"] - call["called"])',
    ]
)
def durations(log):
    """[(bytes, [seconds, ...]), ...]: sizes ascending, the seconds of each in the log's order; sizes of which no call counts are left out."""
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
        "What is on the line's x axis, so that its slope is the time of a byte on a link?",
        "x = (N-1)/N · V, y = a typical time of that size. Slope 1/β, start (N-1)·α. Now and then something else on the machine holds a call up.",
        "slope, start = np.polyfit([V * (devices - 1) / devices for V, _ in measured], [median(s) for _, s in measured], 1)",
    ]
)
def fit(measured, devices):
    """(alpha, beta), seconds of a hop and bytes/s of a link, by least squares over all sizes; ValueError for fewer than two sizes.

    Some calls are held up by something else and take several times as long: take what resists that, such as the median or the least.
    Up to 5 % off is right.
    """
    if len(measured) < 2:
        raise ValueError("one size says nothing of a slope")
    hops = devices - 1
    crossed = [size * hops / devices for size, _ in measured]
    took = [median(seconds) for _, seconds in measured]
    x, y = fsum(crossed) / len(crossed), fsum(took) / len(took)  # exact sums: the same bits on every machine
    slope = fsum((a - x) * b for a, b in zip(crossed, took, strict=True)) / fsum((a - x) * a for a in crossed)
    return (y - slope * x) / hops, 1 / slope


# -- questions ---------------------------------------------------------------------------------


@exercise.number(
    points=0.5, unit="ms", model="the spread is the standard deviation of the runs' means, divided by the number of runs (not by one less)",
    params={"R": [5, 10], "L": [4, 6, 20], "mean": [31.4, 38.6, 52.7], "std": [45.8, 58.2, 66.3, 88.4]},
    where=lambda R, L, mean, std: 0.12 < 1 - std / mean / (R - 1) ** 0.5 < 0.6,
)  # fmt: skip
def time_without_compiling(R, L, mean, std):
    """A notebook times a jitted function without calling it first, in {{ R }} runs of {{ L }} calls, and prints {{ mean }} ms ± {{ std }} ms per call (mean ± spread
    of {{ R }} runs). Every call but the first, which compiles, takes equally long. How long?"""
    return (mean - std / (R - 1) ** 0.5) * 1e-3


@exercise.number(
    points=0.5, unit="us", model="hops and bytes add up as in the line above; an all-reduce of V is a reduce-scatter and an all-gather of V",
    params={"N": [3, 4, 6, 8], "a": [2.2, 3.4, 5.2], "b": [14, 23, 38], "V": [0.36, 0.52, 0.88]},
    where=lambda N, a, b, V: 0.5 < V / N / b / (a * 1e-3) < 0.85 or 1.2 < V / N / b / (a * 1e-3) < 4,
)  # fmt: skip
def all_reduce_predicted(N, a, b, V):
    """All-gathers over a ring of {{ N }} devices give α = {{ a }} µs and β = {{ b }} GB/s. How long should an all-reduce of {{ V }} MB take there?"""
    return 2 * (N - 1) * (a * 1e-6 + V * 1e6 / N / (b * 1e9))


@exercise.number(
    points=0.5, unit="kB", model="the line above: hops and bytes add up",
    params={"N": [3, 4, 6, 8], "a": [2.2, 3.4, 5.2], "b": [14, 23, 38], "p": [5, 10, 15]},
)  # fmt: skip
def latency_small_from(N, a, b, p):
    """The same line, with α = {{ a }} µs and β = {{ b }} GB/s, for an all-gather over {{ N }} devices: from which size of the *whole* array on are its hops {{ p }} %
    of its time or less?"""
    return N * a * 1e-6 * b * 1e9 * (100 - p) / p
