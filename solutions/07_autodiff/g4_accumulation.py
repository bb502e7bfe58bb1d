"""# G4 Many micro-batches, one all-reduce

A step's rows come as M micro-batches, so a device holds the activations of only one micro-batch at a time. The step's
gradient is the sum over micro-batches and devices. One sum over devices, after the loop, is enough.

```
   all-reduces (R) in each micro-batch   one all-reduce (R) after the loop
   micro 1  layer 3 R  2 R  1 R          micro 1  layer 3   2   1
   micro 2  layer 3 R  2 R  1 R          micro 2  layer 3   2   1
   micro 3  layer 3 R  2 R  1 R          micro 3  layer 3   2   1
            9 R, with M times the bytes           1 R
```

**Write** `accumulate(ws, xs, *, mesh)`. `loss` is given. It returns a sum over rows. The mesh has Explicit axes.

| | shape | layout |
|---|---|---|
| `ws` | float32[L, D, D] | whole on every device |
| `xs` | float32[M, B, D] | `P(None, "dp")`: each device holds B/N rows of each micro-batch |
| returns: gradient of `ws` | float32[L, D, D] | whole on every device |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| value | the gradient of the loss over all rows of all micro-batches | |
| layout | the result has the spec `P()` | |
| what is sent | at most the bytes of one all-reduce of the gradient, 2 (N−1)/N · 4LD² bytes, for any M | 648 bytes |
| memory | on dp=2: a device holds the activations of one micro-batch at a time, and sends no more bytes than the row above allows | |

Two ways are right:

- **Types.** `reshard(ws, P(reduced={"dp"}))` sends nothing in the forward pass. This type allows the gradient to stay
  *unreduced*: each device holds a different part of the sum. Accumulate with the type `P(unreduced={"dp"})`, and
  `reshard` to `P()` after the loop.
- **`jax.shard_map`.** Add up local gradients, with `check_vma=False` or with weights cast to varying. Call `psum` at
  the end.

**Symbols.** L layers, D width, M micro-batches, B rows of a micro-batch, N (in questions X) devices along dp.

**Small case.** Three layers of float32[6, 6] have 432 bytes. On dp=4 one all-reduce sends 2 · 3/4 · 432 = 648 bytes.
One all-reduce per layer in each of four micro-batches would send 2592 bytes.

## Going further

**In real systems.** `no_sync` of PyTorch's DDP and the accumulation loops of JAX training frameworks work like this. If
such a loop constrains its accumulated gradients to be whole, the all-reduce returns to the loop.

**Read on.** E. Z. Yang, "The JAX sharding type system"; the JAX documentation on explicit sharding.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
from jax.sharding import reshard

from grader.exercise import Exercise
from grader.hardware import CHIPS, all_reduce_time

exercise = Exercise(meshes=[{"dp": 4, "y": 2}, {"dp": 3}], stars=3, extension=True)


@exercise.given
def loss(ws, rows):
    """Return half the sum of squares of the layers' output for some rows.

    Args: ws is float32[L, D, D], one matrix per layer; rows is float32[b, D], all rows or one device's rows.
    """
    made, _ = jax.lax.scan(lambda h, w: (jax.nn.sigmoid(h @ w), None), rows, ws)
    return jnp.sum(made**2) / 2


@exercise.task(
    axis_types="explicit",
    hints=[
        "Which operation causes the all-reduce? It is the matmul of whole weights with cut rows: JAX reduces the weights' gradient in the backward pass of this matmul.",
        "Before the loop, allow the weights' gradient to stay unreduced. After the loop, make it whole.",
        "zero = reshard(jnp.zeros_like(ws), P(unreduced={'dp'})) starts the sum; differentiate with respect to reshard(ws, P(reduced={'dp'})).",
    ],
)
def accumulate(ws, xs, *, mesh):
    """Return the gradient, with respect to ws, of loss(ws, x) summed over the micro-batches x of xs.

    Args: ws is float32[L, D, D], whole on every device; xs is float32[M, B, D] sharded P(None, 'dp'), M micro-batches.
    Returns: float32[L, D, D], whole on every device.
    """
    weights = reshard(ws, P(reduced={"dp"}))

    def add(total, x):
        return total + jax.grad(loss)(weights, x), None

    total, _ = jax.lax.scan(add, reshard(jnp.zeros_like(ws), P(unreduced={"dp"})), xs)
    return reshard(total, P())


RING = (
    "on a ring an all-reduce takes 2 V / W, with W the both-way bandwidth of a link; nothing runs beside an all-reduce"
)


@exercise.number(
    points=0.75,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "G": [600, 900, 1400], "X": [4, 8, 16], "M": [6, 10, 16]},
    model=RING,
    hints=[
        "How many all-reduces of the whole gradient does each of the two programs run in a step?",
        "One program runs M all-reduces, and the other runs 1. In each all-reduce V is 4 bytes for every parameter.",
        "time saved = (M - 1) * 2 * (4 * G * 1e6 bytes) / W",
    ],
)
def accumulated_saving(chip, G, X, M):
    """A model of {{ G }} million parameters trains by data parallelism on a ring of {{ X }} {{ chip }} chips, with float32 gradients and
    {{ M }} micro-batches per step. How many ms of communication does a step save if it all-reduces the gradient once instead of in
    each micro-batch?"""
    return (M - 1) * all_reduce_time(4 * G * 1e6, X, chip)


@exercise.number(
    points=0.75,
    unit="token",
    params={"chip": ["v4p", "v5p"], "percent": [4, 8, 15, 25], "X": [4, 8, 16], "width": [2, 4]},
    model="arithmetic takes 6 FLOPs per parameter and token, at the chip's bfloat16 peak;  " + RING,
    hints=[
        "A step is arithmetic, then the all-reduce. The times of both grow with the number of parameters, so this number cancels.",
        "If the all-reduce takes a share p of the step, arithmetic takes 1 - p: arithmetic = all-reduce * (1 - p) / p.",
        "tokens * 6 / C = (1 - p) / p * 2 * width / W",
    ],
)
def accumulated_tokens(chip, percent, X, width):
    """A model trains by data parallelism on a ring of {{ X }} {{ chip }} chips. Gradients have {{ width }} bytes per parameter, and their
    one all-reduce follows the last micro-batch. How many tokens must each chip process per step, in all its micro-batches, so that the
    all-reduce takes {{ percent }} % of the step?"""
    share = percent / 100
    return (1 - share) / share * all_reduce_time(width, X, chip) * CHIPS[chip].bf16 / 6
