"""# C5 Gather first or reduce last?

A ring of X chips computes `In[B, D] · W[D_X, F] → Out[B, F]` in bfloat16. Every chip holds all of `In` and needs all of
`Out`. Either the weights move (strategy 1) or the partial sums move (strategy 2). The sizes decide which strategy is
faster.

```
   1   W[D_X, F] --all-gather--> W[D, F],  In[B, D] · W[D, F] = Out[B, F]
   2   In[B, D_X] · W[D_X, F] = Out[B, F]{U_X} --all-reduce--> Out[B, F]
```

**Write** `choose(B, D, F, X, flops, bandwidth)`. It returns the number of the faster strategy.

| | type | meaning |
|---|---|---|
| `B`, `D`, `F` | int | dimensions of `In` and `W` |
| `X` | int | chips on the ring |
| `flops` | float | FLOP/s of one chip |
| `bandwidth` | float | W, both-way bandwidth of a link, bytes/s |
| returns | int | 1 or 2 |

**Model.** Arithmetic and communication overlap, so a strategy takes the longer of the two times.

| | arithmetic on each chip | communication |
|---|---|---|
| strategy 1 | 2·B·D·F FLOPs | all-gather of `W`, V = 2·D·F bytes: takes V / `bandwidth` |
| strategy 2 | 2·B·D·F / X FLOPs | all-reduce of `Out`, V = 2·B·F bytes: takes 2·V / `bandwidth` |

**What is checked**

| check | small case |
|---|---|
| batches smaller than `flops` / `bandwidth` | B=512 < 2550: strategy 2 |
| batches larger than `flops` / `bandwidth` | |

In every case the times of the two strategies differ by more than 5 %.

**Symbols.** V: bytes of the array that is gathered or reduced. `{U_X}`: partial sums. L: size of a second batch, in a
question. C: `flops`.

**Small case.** B=512, D=4096, F=16384, X=4; a chip has 4.59e14 FLOP/s, and `bandwidth` = 1.8e11 bytes/s. In strategy 1
the arithmetic takes 150 µs and the all-gather of 134 MB takes 746 µs. In strategy 2 the arithmetic takes 37 µs and the
all-reduce of 16.8 MB takes 186 µs. So strategy 2 is faster.

## Going further

**In real systems.** Do you move the weights or the activations? Training with large batches moves weights. Decoding
moves activations.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", problem 4.
"""

import itertools

from grader.exercise import Exercise
from grader.expect import expect_outcomes
from grader.hardware import CHIPS, all_gather_time, all_reduce_time, matmul_time

exercise = Exercise(stars=2, extension=True)


@exercise.function(
    hints=[
        "Write down the arithmetic time and the communication time of each strategy. Which array does each strategy send, and how large is this array?",
        "Strategy 1 moves 2·D·F bytes once. Strategy 2 moves 2·B·F bytes twice, but has 1/X of the arithmetic.",
        "first = max(2*B*D*F / flops, 2*D*F / bandwidth); second = the same formula for strategy 2. Compare the two times.",
    ]
)
def choose(B, D, F, X, flops, bandwidth):
    """Return the faster strategy, 1 or 2.

    Args:
        B, D, F: dimensions of In[B, D] and W[D, F].
        X: chips on the ring.
        flops: FLOP/s of one chip.
        bandwidth: bytes/s of one link, both directions.
    """
    matmuls = 2 * B * D * F / flops
    gather_first = max(matmuls, 2 * D * F / bandwidth)
    reduce_last = max(matmuls / X, 2 * (2 * B * F) / bandwidth)
    return 1 if gather_first < reduce_last else 2


def drawn(rng, batches):
    chips = ["v4p", "v5p", "v5e"]
    sizes = itertools.product(chips, batches, [1536, 4096, 8192, 65536], [1024, 16384], [2, 16])
    for chip, B, D, F, X in sizes:
        B, F = (n // 8 * int(rng.integers(8, 12)) for n in (B, F))
        yield {"B": B, "D": D, "F": F, "X": X, "flops": CHIPS[chip].bf16, "bandwidth": CHIPS[chip].ici_both}


v5p = {"flops": 4.59e14, "bandwidth": 1.8e11}
small = exercise.cases(
    choose,
    public=[
        {"B": 384, "D": 4096, "F": 16384, "X": 4, **v5p},
        {"B": 1024, "D": 1536, "F": 2048, "X": 8, **v5p},
        {"B": 2048, "D": 1536, "F": 4096, "X": 4, **v5p},
    ],
    hidden=lambda rng: drawn(rng, [256, 1024]),
)
large = exercise.cases(
    choose,
    public=[{"B": 8192, "D": 8192, "F": 16384, "X": 8, **v5p}, {"B": 16384, "D": 4096, "F": 1024, "X": 4, **v5p}],
    hidden=lambda rng: drawn(rng, [8192, 32768]),
)


@exercise.check(small, points=2, public=True)
def choose_small_batch(seen):
    """choose: batches smaller than flops / bandwidth"""
    expect_outcomes(seen)


@exercise.check(large, points=3)
def choose_large_batch(seen):
    """choose: batches larger than flops / bandwidth"""
    expect_outcomes(seen)


MODEL = "each matmul takes the longer of its arithmetic and its communication; on a ring an all-gather takes V / W, and W counts both directions of a link"


@exercise.number(
    points=1.5, unit="us", model=MODEL,
    params={"chip": ["v4p", "v5p"], "B": [384, 640], "L": [6144, 10240], "D": [4096, 7168], "F": [16384, 28672], "X": [4, 8]},
    hints=[
        "For each batch: does arithmetic or communication take longer?",
        "The gather of `W` takes the same time for both batches. The matmul of whole arrays grows with the batch: 2 · B · D · F FLOPs.",
        "time = for each batch the longer of (FLOPs / peak rate) and (2 · D · F bytes / W). Add the times of the two batches.",
    ],
)  # fmt: skip
def gather_first_total(chip, B, L, D, F, X):
    """A ring of {{ X }} {{ chip }} chips uses strategy 1 in bfloat16, with D={{ D }}, F={{ F }}. It serves a batch of B={{ B }}, then
    a batch of B={{ L }}, and gathers `W` for each batch. How long do the two matmuls take, one after the other?"""
    return sum(max(matmul_time(2 * b * D * F, chip), all_gather_time(2 * D * F, X, chip)) for b in (B, L))


@exercise.number(
    points=1.5, unit="us", model=MODEL, where=lambda chip, B, D, F, X: F > 7000 * X,
    params={"chip": ["v4p", "v5p"], "B": [384, 640], "D": [4096, 8192], "F": [32768, 73728], "X": [4, 8]},
    hints=[
        "For each layer: which array is all-reduced, and how wide is it?",
        "The first layer all-reduces an array [B, F], the second an array [B, D]. Each device computes 1 / X of both matmuls.",
        "time = for each layer the longer of (2 · B · D · F / X FLOPs) / (peak rate) and 2 · (2 · B · width bytes) / W. Add the times of the two layers.",
    ],
)  # fmt: skip
def reduce_last_total(chip, B, D, F, X):
    """Strategy 2 computes two layers, `In[B, D] · W_in[D_X, F]`, then `H[B, F] · W_out[F_X, D]`: B={{ B }}, D={{ D }}, F={{ F }} on a ring of
    {{ X }} {{ chip }} chips, in bfloat16. How long do the two matmuls take, one after the other?"""
    return sum(max(matmul_time(2 * B * D * F / X, chip), all_reduce_time(2 * B * n, X, chip)) for n in (F, D))
