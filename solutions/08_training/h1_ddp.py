"""# H1 Data parallelism with padding and dropout

Every device holds all weights and its own rows of the batch. An all-reduce adds the devices' gradients, and all devices
make the same update. The step must give the result that one device computes from the whole batch. Two parts
are easy to get wrong, and no error occurs:

- **Padding.** Devices have different numbers of *real* rows, and some may have none. The mean of the devices' means is not the
  mean over all real rows.
- **Dropout.** If all devices draw from the same key, all of them drop the same places in their rows.

```
   device   real rows   sum of losses   its own mean
     0          3             6              2
     1          1             8              8        mean of 2, 8: 5
     2          0             0             0/0       right: 14 / 4 = 3.5
```

**Write** `ddp_step(params, x, y, real, key, *, mesh)`, one step of gradient descent.

    hidden = dropout(tanh(x·a))     out = hidden·b
    loss   = Σ (out − y)² / n, over real rows and all columns
    p      ← p − 0.1 · gradient of the loss for p

Dropout keeps each number with probability 3/4 and divides it by 3/4. Dropout sets the other numbers to 0.

| | shape | layout |
|---|---|---|
| `params` a, b | float32[D, F], float32[F, K] | whole on every device |
| `x`, `y`, `real` | float32[B, D], float32[B, K], bool[B] | `P("dp")` |
| `key` | uint32[2], new in each step | whole |
| returns: `params` | as the argument `params` | whole |
| `kept`: what dropout kept | bool[B, F] | `P("dp")` |
| loss before the step | float32[] | whole |

**What is checked**

| check | rule | small case |
|---|---|---|
| value | each of five steps equals the step of one device with all rows and the same `kept` | |
| dropout | 3/4 of the numbers are kept; masks differ between devices (even with equal rows), steps, rows and columns | |
| what is sent | at most 2 (N−1)/N · 4 bytes per parameter, plus 32 bytes for single numbers; results have the layouts above | 864 + 12 bytes |

**Symbols.** B rows, D, F, K widths, n real rows in the batch, N devices along dp.

**Small case.** a[6, 16] and b[16, 3] have 144 parameters, which take 576 bytes. On dp=4 a device sends 3/2 · 576 = 864
bytes for their gradients. Loss and n are two numbers, which take 3/2 · 8 = 12 bytes.

## Going further

**In real systems.** PyTorch calls this kind of training `DistributedDataParallel`. In some training programs for
language models, each device or micro-batch divided its loss by its own number of tokens. The loss looked right, but
short sequences counted too much.

**Read on.** Stanford CS336, lecture 8 (data parallelism) and assignment 2.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import all_reduce_time, matmul_time

exercise = Exercise(meshes=[{"dp": 4, "tp": 2}, {"dp": 3}], stars=2)


@exercise.task(
    hints=[
        "By which number would a single device divide the sum of the losses? Which devices know this number, and when?",
        "First sum the number of real rows over all devices. Divide by this total, and sum losses and gradients over all devices. Fold the device's index along dp into the key.",
        "n = psum(real.sum(), 'dp'); loss_of = lambda params: sum(where(real[:, None], error**2, 0)) / n; psum((loss, grads), 'dp')",
    ]
)
def ddp_step(params, x, y, real, key, *, mesh):
    """Make one step of data-parallel gradient descent and return (params, kept, loss).

    Args: params {"a": float32[D, F], "b": float32[F, K]}, whole on every device; x float32[B, D], y float32[B, K] and real bool[B]
        sharded P('dp'); key uint32[2], for jax.random.wrap_key_data, new in each step; mesh may have more axes than dp.
    Returns: params, whole on every device; kept bool[B, F] sharded P('dp'); the loss before the step.
    """

    def local(params, x, y, real, key):
        key = jax.random.fold_in(jax.random.wrap_key_data(key), jax.lax.axis_index("dp"))
        kept = jax.random.bernoulli(key, 0.75, (len(x), params["b"].shape[0]))
        n = jax.lax.psum(jnp.sum(real), "dp")

        def loss_of(params):
            hidden = jnp.where(kept, jnp.tanh(x @ params["a"]) / 0.75, 0)
            error = hidden @ params["b"] - y
            return jnp.sum(jnp.where(real[:, None], error**2, 0)) / n

        loss, grads = jax.lax.psum(jax.value_and_grad(loss_of)(params), "dp")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), kept, loss

    cut = P("dp")
    specs = {"in_specs": (P(), cut, cut, cut, P()), "out_specs": (P(), cut, P())}
    return jax.shard_map(local, mesh=mesh, **specs, check_vma=False)(params, x, y, real, key)


@exercise.number(
    points=0.5,
    unit="",
    params={"A": [160, 240, 400], "B": [30, 50, 90], "a": [1.25, 1.5, 1.75], "b": [3.5, 4.5]},
    model="the mean over all real tokens",
    hints=[
        "Does each device's mean count equally?",
        "No: each real token counts equally. Add the sums of the losses, then divide by the number of real tokens.",
        "(A · a + B · b) divided by the number of all real tokens",
    ],
)
def ddp_loss(A, B, a, b):
    """Two devices have 512 tokens each. On the first, {{ A }} tokens are real and have the mean loss {{ a }}. On the second, {{ B }} tokens are
    real and have the mean loss {{ b }}. All other tokens are padding. What is the loss of the batch?"""
    return (A * a + B * b) / (A + B)


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "M": [600, 1100, 1700], "T": [1536, 4096, 8192], "N": [8, 16]},
    model="A chip computes at the peak rate: 2 FLOPs per parameter and token in the forward pass, 4 in the backward pass. An all-reduce on a ring takes 2 V / W, where W is the both-way bandwidth of one link. Latency does not count",
    hints=[
        "Which three parts of the step run one after the other?",
        "For each parameter and token a chip computes 2 FLOPs forward and 4 backward. Then the chips all-reduce 2 bytes per parameter.",
        "6 · parameters · T / C + 2 · V / W",
    ],
)
def ddp_exposed(chip, M, T, N):
    """A model of {{ M }} million parameters trains by data parallelism on a ring of {{ N }} {{ chip }} chips, with {{ T }} tokens on each. The
    all-reduce of the bfloat16 gradients starts after the backward pass. How long do forward pass, backward pass and all-reduce take
    together?"""
    return matmul_time(6e6 * M * T, chip) + all_reduce_time(2e6 * M, N, chip)
