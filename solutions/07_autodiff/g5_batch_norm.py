"""# G5 Batch norm over all devices

Batch norm subtracts from each column the column's mean over the batch and divides the column by its standard deviation.
Under data parallelism a device has only B/N rows. The mean and variance of these rows differ from the batch's mean and
variance. The mean of the devices' variances is not the variance of the batch either: it leaves out the distances
between the devices' means.

```
   dp0 rows 0-14   sum[D]  sum of squares[D]  --+
   dp1 rows 15-29  sum[D]  sum of squares[D]  --+-- all-reduce, 2 D numbers
   ...                                          |      mean, variance
   dp3 rows 45-59  sum[D]  sum of squares[D]  --+      of all 60 rows
```

**Write** `batch_norm(x, *, mesh)` with `jax.shard_map`. Return (x − mean) / √(variance + `EPS`). Take the mean and the
variance of each column over all rows of the batch. The variance is the mean of squared deviations.

| | shape | layout |
|---|---|---|
| `x` | float32[B, D] | `P("dp")`: each device holds B/N rows |
| returns | float32[B, D] | `P("dp")` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| value | mean and variance cover all rows of the batch | mean 5, variance 10 |
| layout | the result is laid out as `P("dp")` | |
| gradient | the gradient of x goes through mean and variance, too: each row affects every other row | |
| forward pass | only all-reduces, of 2D numbers in all; no all-reduce waits for another | 72 bytes |
| backward pass | the backward pass sends no more bytes over dp than the forward pass, and the forward pass sends no additional bytes if JAX takes a gradient | 72 bytes |

You may use two all-reduces of D numbers, if neither waits for the other.

**Symbols.** B rows in the batch, D columns, N (in the question X) devices along dp, L layers.

**Small case.** Two devices hold two rows each, of one column: 1, 3 and 7, 9. Each device's variance is 1. All four rows
have the mean 5 and the mean of squares 35, so the variance is 35 − 25 = 10. With D=6 on dp=4 an all-reduce of 12
numbers, 48 bytes, sends 2 · 3/4 · 48 = 72 bytes.

## Going further

**Precision.** The variance is the mean of squares minus the square of the mean. If means are many times as large as
deviations, both terms are nearly equal, and few digits of their difference are right. A program can first subtract a
number that all devices know, such as a running mean. The data of this exercise need no such step.

**In real systems.** The sums of a layer have only a few KB, so the latency of the hops sets the time, and one
all-reduce is faster than two. PyTorch offers batch norm over all devices as `SyncBatchNorm`. Layer norm and RMS norm
use the numbers of one row only, and need no communication.

**Read on.** Ioffe and Szegedy, "Batch Normalization", section 3, for the gradients.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import latency

exercise = Exercise(meshes=[{"dp": 4, "tp": 2}, {"dp": 3}], stars=2, extension=True)
EPS = exercise.given(0.1)


@exercise.task(
    hints=[
        "Which sums over the rows of the batch give both the mean and the variance of each column?",
        "Stack the sums of x and of x**2, and add them over devices with one psum. Divide by the number of rows in the whole batch.",
        "mean, square = jax.lax.psum(jnp.stack([x.sum(0), (x**2).sum(0)]), 'dp') / rows; variance = square - mean**2",
    ]
)
def batch_norm(x, *, mesh):
    """Return (x - mean) / sqrt(variance + EPS), with mean and variance of each column over all rows.

    Args: x is float32[B, D] sharded P('dp').
    Returns: float32[B, D] sharded P('dp').
    """
    rows = x.shape[0]

    def local(x):
        mean, square = jax.lax.psum(jnp.stack([x.sum(0), (x**2).sum(0)]), "dp") / rows
        return (x - mean) * jax.lax.rsqrt(square - mean**2 + EPS)

    return jax.shard_map(local, mesh=mesh, in_specs=P("dp"), out_specs=P("dp"))(x)


@exercise.number(
    points=0.75,
    unit="us",
    params={"L": [20, 36, 48], "X": [4, 8, 16], "D": [256, 512, 1024]},
    model="rings of v5p; these all-reduces are so small that only the latency of their hops counts: 1 us per hop, X/2 hops in each of two phases",
    hints=[
        "In a layer of each program, how many all-reduces run one after the other in each pass?",
        "The second program computes the mean first, then the variance: two all-reduces one after the other in the forward pass, and two in the backward pass.",
        "In each layer the second program waits for two all-reduces more than the first program. Each all-reduce takes X us.",
    ],
)
def two_pass_cost(L, X, D):
    """A network has {{ L }} batch norm layers of {{ D }} columns, over {{ X }} devices. In a layer of the first program no
    all-reduce waits for another, so each pass takes the time of one all-reduce. A layer of the second program computes the
    mean with one all-reduce, then the variance with another. In the backward pass, too, a layer of the second program has two
    all-reduces, one after the other. By how many us is the communication of a step longer in the second program than in the first?"""
    return L * 2 * 2 * latency(X)
