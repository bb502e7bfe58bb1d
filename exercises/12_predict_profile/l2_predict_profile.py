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

Check your work: shardlings check l2_predict_profile
"""

from statistics import median


def durations(log):
    """[(bytes, [seconds, ...]), ...]: sizes ascending, the seconds of each in the log's order; sizes of which no call counts are left out."""
    # TODO: write this function
    raise NotImplementedError("durations")


def fit(measured, devices):
    """(alpha, beta), seconds of a hop and bytes/s of a link, by least squares over all sizes; ValueError for fewer than two sizes.

    Some calls are held up by something else and take several times as long: take what resists that, such as the median or the least.
    Up to 5 % off is right.
    """
    # TODO: write this function
    raise NotImplementedError("fit")


# Question time_without_compiling [ms]
# A notebook times a jitted function without calling it first, in 5 runs of 4 calls, and prints
# 31.4 ms ± 45.8 ms per call (mean ± spread of 5 runs). Every call but the first, which compiles,
# takes equally long. How long?
#
# Answer in ms (a bare number), or with a unit.
# Model: the spread is the standard deviation of the runs' means, divided by the number of runs
# (not by one less).
time_without_compiling = None  # TODO: your answer


# Question all_reduce_predicted [us]
# All-gathers over a ring of 6 devices give α = 3.4 µs and β = 14 GB/s. How long should an all-
# reduce of 0.36 MB take there?
#
# Answer in us (a bare number), or with a unit.
# Model: hops and bytes add up as in the line above; an all-reduce of V is a reduce-scatter and an
# all-gather of V.
all_reduce_predicted = None  # TODO: your answer


# Question latency_small_from [kB]
# The same line, with α = 3.4 µs and β = 23 GB/s, for an all-gather over 8 devices: from which
# size of the *whole* array on are its hops 5 % of its time or less?
#
# Answer in kB (a bare number), or with a unit.
# Model: the line above: hops and bytes add up.
latency_small_from = None  # TODO: your answer
