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

Check your work: shardlings check g4_accumulation
Notes on all exercises of this module: see README.md, or run shardlings show 07_autodiff
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def loss(ws, rows):
    """Return half the sum of squares of the layers' output for some rows.

    Args: ws is float32[L, D, D], one matrix per layer; rows is float32[b, D], all rows or one device's rows.
    """
    made, _ = jax.lax.scan(lambda h, w: (jax.nn.sigmoid(h @ w), None), rows, ws)
    return jnp.sum(made**2) / 2


def accumulate(ws, xs, *, mesh):
    """Return the gradient, with respect to ws, of loss(ws, x) summed over the micro-batches x of xs.

    Args: ws is float32[L, D, D], whole on every device; xs is float32[M, B, D] sharded P(None, 'dp'), M micro-batches.
    Returns: float32[L, D, D], whole on every device.
    """
    # TODO: write this function
    raise NotImplementedError("accumulate")


# Question accumulated_saving [ms]
# A model of 900 million parameters trains by data parallelism on a ring of 16 v5p chips, with
# float32 gradients and 6 micro-batches per step. How many ms of communication does a step save if
# it all-reduces the gradient once instead of in each micro-batch?
#
# Answer in ms (a bare number), or with a unit.
# Model: on a ring an all-reduce takes 2 V / W, with W the both-way bandwidth of a link; nothing
# runs beside an all-reduce.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
accumulated_saving = None  # TODO: your answer


# Question accumulated_tokens [token]
# A model trains by data parallelism on a ring of 4 v5p chips. Gradients have 4 bytes per
# parameter, and their one all-reduce follows the last micro-batch. How many tokens must each chip
# process per step, in all its micro-batches, so that the all-reduce takes 8 % of the step?
#
# Answer in token (a bare number), or with a unit.
# Model: arithmetic takes 6 FLOPs per parameter and token, at the chip's bfloat16 peak;  on a ring
# an all-reduce takes 2 V / W, with W the both-way bandwidth of a link; nothing runs beside an
# all-reduce.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
accumulated_tokens = None  # TODO: your answer


# ## Going further
#
# **In real systems.** `no_sync` of PyTorch's DDP and the accumulation loops of JAX training frameworks work like this. If
# such a loop constrains its accumulated gradients to be whole, the all-reduce returns to the loop.
#
# **Read on.** E. Z. Yang, "The JAX sharding type system"; the JAX documentation on explicit sharding.
