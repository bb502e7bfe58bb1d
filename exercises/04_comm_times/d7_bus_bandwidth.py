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

Check your work: shardlings check d7_bus_bandwidth
Notes on all exercises of this module: see README.md, or run shardlings show 04_comm_times
The text "Going further" is below the code.
"""

import math


def bandwidths(kind, bytes_in, bytes_out, ranks, seconds):
    """Return the algorithm bandwidth and the bus bandwidth of one collective, in bytes/s.

    Args: kind: "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast" or "reduce". bytes_in:
        bytes that one rank (for a broadcast: the root) puts in. bytes_out: bytes that one rank (for a reduce:
        the root) has at the end. ranks: n. seconds: t.

    Returns:
        (algbw, busbw).
    """
    # TODO: write this function
    raise NotImplementedError("bandwidths")


# Question reduce_bus_bandwidth [GB/s]
# 4 H100 GPUs of one node all-reduce an array of 580 MB in 2.8 ms. Which bus bandwidth do they
# reach?
#
# Answer in GB/s (a bare number), or with a unit.
# Model: algbw = S / t and busbw = algbw · factor, as in the table; S is the whole array; 1 MB is
# 10^6 bytes.
reduce_bus_bandwidth = None  # TODO: your answer


# Question scatter_from_bus_time [ms]
# A reduce-scatter over 6 H100 GPUs of one node reaches a bus bandwidth of 270 GB/s and leaves 140
# MB on each GPU. How long does the reduce-scatter take?
#
# Answer in ms (a bare number), or with a unit.
# Model: algbw = S / t and busbw = algbw · factor, as in the table; S is the whole array.
scatter_from_bus_time = None  # TODO: your answer


# Question puzzle_bus_bandwidth [GB/s]
# A benchmark on 8 H100 GPUs of one node prints the bus bandwidth of an all-reduce, 255 GB/s. For
# a reduce-scatter it prints 28.7 GB/s, computed as (bytes of a rank's *output*) · (n-1)/n / t.
# What is the reduce-scatter's bus bandwidth?
#
# Answer in GB/s (a bare number), or with a unit.
# Model: bus bandwidth: the bytes that a rank must send, divided by the time.
puzzle_bus_bandwidth = None  # TODO: your answer


# ## Going further
#
# **Bytes to send.** A rank must send at least the factor times S bytes. In a broadcast the root sends S bytes. In a
# reduce along a chain each rank but the root sends S bytes.
#
# **A puzzle from a lecture.** On 4 GPUs a benchmark prints a bus bandwidth of 277 GiB/s for an all-reduce of 100·2²⁰
# float32 numbers, and 70 GiB/s for a reduce-scatter. Four times as many bytes go *into* the reduce-scatter as into the
# all-reduce: every rank brings 4 such arrays and keeps one. A listener asks whether the benchmark counts only the bytes
# that come out. The benchmark does: `out · (n−1)/n / t` has the right factor but the wrong S. With S = in = 4·out the
# result is 280 GiB/s, so the wires are as busy as in the all-reduce. (1 GiB is 2³⁰ bytes: 277 and 280 GiB/s are 297 and
# 301 GB/s, the numbers of the small case.)
#
# **In real systems.** nccl-tests prints algbw and busbw. Compare busbw with the bandwidth of the links. With algbw you
# can estimate the time of a collective in your training step.
#
# **Read on.** *Performance reported by NCCL tests*; Stanford CS336, the lecture on parallelism and assignment 2.
