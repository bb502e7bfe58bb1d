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

Check your work: shardlings check l2_predict_profile
Notes on all exercises of this module: see README.md, or run shardlings show 12_predict_profile
The text "Going further" is below the code.
"""

from statistics import median


def durations(log):
    """Return the durations of the calls that count, for each size.

    Args: log, a list of dicts with bytes, cut, called, returned and ready, one for each call.
    Returns: [(bytes, [seconds, ...]), ...], sizes ascending, the seconds of each size in the log's order. A size
    without a call that counts is left out.
    """
    # TODO: write this function
    raise NotImplementedError("durations")


def fit(measured, devices):
    """Return (alpha, beta), the seconds of a hop and the bytes/s of a link, by least squares over all sizes.

    Some calls take several times as long, because other work delayed them. Use the median or the minimum of each size.
    Both results may be up to 5 % off.

    Raises ValueError for fewer than two sizes.
    """
    # TODO: write this function
    raise NotImplementedError("fit")


# Question time_without_compiling [ms]
# A notebook times a jitted function without calling it first, in 5 runs of 4 calls, and prints
# 31.4 ms ± 45.8 ms per call (mean ± spread of 5 runs). The first call compiles. All other calls
# take the same time. How long does each of the other calls take?
#
# Answer in ms (a bare number), or with a unit.
# Model: the spread is the standard deviation of the runs' means, with divisor R, the number of
# runs (not R − 1).
time_without_compiling = None  # TODO: your answer


# Question all_reduce_predicted [us]
# All-gathers over a ring of 4 devices give α = 2.2 µs and β = 23 GB/s. How long should an all-
# reduce of 0.36 MB take on this ring?
#
# Answer in us (a bare number), or with a unit.
# Model: time: hops · α + sent bytes / β, as above; an all-reduce of V bytes is a reduce-scatter
# and an all-gather of V bytes.
all_reduce_predicted = None  # TODO: your answer


# Question latency_small_from [kB]
# An all-gather over 8 devices takes the time of the formula above, with α = 3.4 µs and β = 23
# GB/s. How large must the *whole* array be, at least, so that the α of all hops together take at
# most 5 % of this time?
#
# Answer in kB (a bare number), or with a unit.
# Model: time: hops · α + sent bytes / β, as above.
latency_small_from = None  # TODO: your answer


# ## Going further
#
# **On chips that you do not have** (never graded). `shardlings predict f1 --on v5e:2x4 step=9us` keeps your prediction
# for the time of a step of F1. Then `shardlings explain f1 --on v5e:2x4` shows the prediction of the grader's clock. If
# the course has a compiled program that equals yours, `explain` also shows the TPU compiler's prediction. You need no
# compiler for this.
#
# **On your own devices** (never graded). `shardlings predict l2` shows the programs and keeps your prediction.
# `shardlings profile l2` runs the programs on eight simulated devices or on your accelerators, and draws predicted
# against measured times. This command also writes `l2_log.json`, a log that your functions can read.
#
# **The log.** A profiler sees when a result is ready even if no code waits for it. So a log can have a `ready` time for
# every call.
#
# **In real systems.** To time a function, warm up, wait, start the clock, run, wait and stop the clock. Also record the
# compiler flags. Some predictions assume that an all-gather overlaps a matmul. Such a prediction holds only if the
# compiler makes the all-gather asynchronous (`--xla_enable_async_all_gather`). Exercise L1 shows how to find asynchronous
# collectives in a compiled program.
#
# **Read on.** JAX, "Asynchronous dispatch" and "Benchmarking JAX code"; R. Hockney, *The communication challenge for
# MPP*.
