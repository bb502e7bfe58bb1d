"""# G4 Many micro-batches, one all-reduce

**Task.** A step's rows come as M micro-batches, so that the activations of one of them are all that a device holds.
The gradient of the step is the sum of theirs, and of all devices'. Write `accumulate`: `ws` is whole on every device,
the rows of each micro-batch are cut over dp, and `loss`, which is given, is already a sum over rows.

The mesh has Explicit axes. There are two ways, and both are right:

- **types**: `reshard(ws, P(reduced={"dp"}))` costs nothing forwards and says that its gradient may stay *unreduced*, a
  different part of the sum on each device. What is accumulated has the type `P(unreduced={"dp"})`, and one `reshard`
  to `P()` after the loop adds the parts.
- **`jax.shard_map`**: add up what is local, by `check_vma=False` or with weights cast to varying, and `psum` at the end.

**Budget.** Each device sends what one all-reduce of the gradient takes, however many micro-batches and layers there
are. What the layers made of a micro-batch is gone before the next one.

```
   all-reduce where it arises            all-reduce where it is needed
   micro 1  layer 3 R  2 R  1 R          micro 1  layer 3   2   1
   micro 2  layer 3 R  2 R  1 R          micro 2  layer 3   2   1
   micro 3  layer 3 R  2 R  1 R          micro 3  layer 3   2   1
            +  9 small ones, M times the bytes            +  R   once
```

**Small case.** Three layers of float32[6, 6] are 432 bytes. On dp=4 one all-reduce sends 2 · 3/4 · 432 = 648 bytes per
device; one per layer and micro-batch sends 2592 for four micro-batches.

**In real systems**: `no_sync` of PyTorch's DDP, and the accumulation loops of training frameworks in JAX, where a
constraint on the accumulated gradients that asks for whole arrays puts the all-reduce back into the loop.

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
    """Half the sum of squares of what the layers ws[L, D, D] make of rows[b, D]: of all rows, or of a device's own."""
    made, _ = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), rows, ws)
    return jnp.sum(made**2) / 2


@exercise.task(
    axis_types="explicit",
    hints=[
        "Where does the all-reduce arise? In the backward pass of the product that uses whole weights with cut rows.",
        "Say before the loop that the weights' gradient may stay unreduced, and after the loop that it is to be whole.",
        "zero = reshard(jnp.zeros_like(ws), P(unreduced={'dp'})) starts the sum; gradients are of reshard(ws, P(reduced={'dp'})).",
    ],
)
def accumulate(ws, xs, *, mesh):
    """The gradient with respect to ws of the sum of loss(ws, x) over the micro-batches x of xs.

    Args: ws is float32[L, D, D], whole on every device; xs is float32[M, B, D] sharded P(None, 'dp'), M micro-batches.
    Returns: float32[L, D, D], whole on every device.
    """
    weights = reshard(ws, P(reduced={"dp"}))

    def add(total, x):
        return total + jax.grad(loss)(weights, x), None

    total, _ = jax.lax.scan(add, reshard(jnp.zeros_like(ws), P(unreduced={"dp"})), xs)
    return reshard(total, P())


RING = "a ring; an all-reduce takes 2 V / W, W both directions of a link; nothing runs beside it"


@exercise.number(
    points=0.75,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "G": [600, 900, 1400], "X": [4, 8, 16], "M": [6, 10, 16]},
    model=RING,
    hints=[
        "How many all-reduces of the whole gradient does each way send in a step?",
        "M against 1, and each has 4 bytes for every parameter.",
        "(M - 1) * 2 * 4 * G * 1e6 / W",
    ],
)
def accumulated_saving(chip, G, X, M):
    """Data parallelism over a ring of {{ X }} {{ chip }} chips: {{ G }} million parameters, gradients in float32, {{ M }}
    micro-batches per step. How many ms of communication does a step save when the gradient is all-reduced once instead of
    in each micro-batch?"""
    return (M - 1) * all_reduce_time(4 * G * 1e6, X, chip)


@exercise.number(
    points=0.75,
    unit="token",
    params={"chip": ["v4p", "v5p"], "percent": [4, 8, 15, 25], "X": [4, 8, 16], "width": [2, 4]},
    model="6 FLOPs per parameter and token at the chip's bfloat16 peak; " + RING,
    hints=[
        "A step is arithmetic, then the all-reduce. Both grow with the number of parameters: it cancels.",
        "If the all-reduce is p of the step, arithmetic is 1 - p of it: arithmetic = all-reduce * (1 - p) / p.",
        "tokens * 6 / C = (1 - p) / p * 2 * width / W",
    ],
)
def accumulated_tokens(chip, percent, X, width):
    """Data parallelism over a ring of {{ X }} {{ chip }} chips; gradients have {{ width }} bytes per parameter, and their one
    all-reduce follows the last micro-batch. How many tokens must each chip process per step, over all its micro-batches,
    for the all-reduce to take {{ percent }} % of the step?"""
    share = percent / 100
    return (1 - share) / share * all_reduce_time(width, X, chip) * CHIPS[chip].bf16 / 6
