"""# I2 The backward pass of a pipeline

Here the pipeline of exercise I1 gets a backward pass. When the last device has all outputs, gradients run in the other
direction. In a tick a device receives the gradient of its output and sends the gradient of its input to the previous
device. To compute a gradient, the device needs the input of its stage again. So in the forward pass each device keeps a
*stash* of these inputs.

```
   tick     0   1   2   3   4   5   6   7   8   9  10  11     P = 3, M = 4
   pp=0    F0  F1  F2  F3   .   .   .   .  B0  B1  B2  B3
   pp=1     .  F0  F1  F2  F3   .   .  B0  B1  B2  B3   .
   pp=2     .   .  F0  F1  F2  F3  B0  B1  B2  B3   .   .
```

In ticks with a dot, a device computes on junk. Mask a gradient of junk with `jnp.where`, not by a factor 0: 0 · NaN is
NaN.

**Write** the body `gpipe_step(ws, x, y, *, rate)`, one training step (`check_vma=False`). `stage` is given. The
loss is the mean of `(output − y)²` over all M micro-batches together.

| | shape on one device | layout |
|---|---|---|
| `ws` | float32[L/P, D, D] | `P("pp")` |
| `x`, `y` | float32[M, b, D] | whole |
| returns: loss | float32[] | whole |
| w − rate · gradient | as `ws` | `P("pp")` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| loss, layers | in each of three steps, equal to the results of one device; all micro-batches see the same weights | |
| ticks | M + P − 1 ticks in each pass, and no more FLOPs than these ticks need; permutes, and one all-reduce of the loss | 2 · 6 ticks |
| memory | on pp=2 a device holds its arguments, one stash of M inputs, one sum of gradients and one tick's arrays; ticks as above | |

Keeping the inputs of every layer, or a gradient for each micro-batch, takes too much memory. Write the ticks as loops:
the grader cannot follow the memory of a program with more than 5,000 operations.

**Symbols.** P stages, M micro-batches of b rows, L layers (in question `gpipe_stash`, layers of a stage), D width.

**Small case.** P=3, M=4: 6 ticks in each pass. `jax.vjp(stage, ws, a)` computes the stage again. The call returns the
output and a function. This function maps the output's gradient to the gradients of `ws` and `a`. So a backward tick
costs as much as three forward ticks: one to compute the stage again, and one for each gradient.

## Going further

**In real systems.** This is GPipe with rematerialization. Devices that keep the values inside their layers need not
compute the stage again, but need more memory.

**Read on.** *GPipe: Easy Scaling with Micro-Batch Pipeline Parallelism*.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, axis, like, normal
from grader.hardware import matmul_time

exercise = Exercise(meshes=[{"pp": 4}, {"pp": 3, "dp": 2}], stars=3, extension=True)


@exercise.given
def stage(ws, a):
    """Apply the layers of one device: each scales the rows of a[b, D] to length 1, multiplies by its w, and applies
    tanh."""
    for w in ws:
        a = jnp.tanh(a / jnp.linalg.norm(a, axis=-1, keepdims=True) @ w)
    return a


@exercise.body(
    out_specs=(P(), P("pp")),
    check_vma=False,
    hints=[
        "Which micro-batch does each device have in tick t, in the forward and in the backward pass? What must a device keep between the two passes?",
        "Forward: device s has micro-batch t - s, and keeps the input of its stage. Backward: the last device begins. Device s has "
        "micro-batch t - (P - 1 - s), takes this micro-batch's input from the stash, and adds the gradient of ws to one sum.",
        "out, pull = jax.vjp(stage, ws, stash[mine]); dws, da = pull(jnp.where(me == n - 1, 2 * (out - y[mine]) / y.size, came))",
    ],
)
def gpipe_step(ws, x, y, *, rate):
    """Make one step of gradient descent.

    Args: ws float32[L/P, D, D], the device's layers; x and y float32[M, b, D], all micro-batches; rate a number.
    Returns: (loss, ws after the step).
    """
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]

    def there(tick, carry):
        held, stash = carry
        a = jnp.where(me == 0, x[tick], held)
        # A negative index counts from the end, where later ticks overwrite the junk. JAX drops an index above M - 1.
        stash = stash.at[tick - me].set(a)
        return jax.lax.ppermute(stage(ws, a), "pp", [(s, s + 1) for s in range(n - 1)]), stash

    def back(tick, carry):
        came, loss, grads = carry
        mine = tick - (n - 1 - me)
        useful = (mine >= 0) & (mine < m)
        out, pull = jax.vjp(stage, ws, stash[mine])
        error = out - y[mine]
        dws, da = pull(jnp.where(me == n - 1, 2 * error / y.size, came))
        loss += jnp.where(useful & (me == n - 1), jnp.sum(error**2) / y.size, 0)
        came = jax.lax.ppermute(da, "pp", [(s + 1, s) for s in range(n - 1)])
        return came, loss, grads + jnp.where(useful, dws, 0)

    junk, ticks = jnp.ones(x.shape[1:]), m + n - 1
    _, stash = jax.lax.fori_loop(0, ticks, there, (junk, jnp.zeros_like(x)))
    _, loss, grads = jax.lax.fori_loop(0, ticks, back, (junk, 0.0, jnp.zeros_like(ws)))
    return jax.lax.psum(loss, "pp"), ws - rate * grads


call = exercise.call(
    gpipe_step,
    ws=normal("L", "D", "D", spec=P("pp")),
    x=normal("M", "B", "D"),
    y=normal("M", "B", "D"),
    static={"rate": 0.5},
    hidden_static={"rate": 0.7},
    returns=("loss", like("ws")),
    steps=3,
    dims={"L": 2 * axis("pp"), "M": 5, "B": 4, "D": 12},
    hidden_dims={"L": 3 * axis("pp"), "M": 7, "B": 3, "D": 10},
)


@exercise.number(
    points=0.5,
    unit="MiB",
    params={"M": [12, 24, 32], "P": [4, 8], "L": [3, 5], "T": [2048, 3072], "D": [5120, 8192]},
    model="The stash holds only inputs of stages. 1 MiB is 2^20 bytes",
    hints=[
        "How many micro-batches wait on one device when the forward pass is done?",
        "All M micro-batches wait. Each has one input of the stage in the stash, however many layers the stage has.",
        "M · 2 bytes · T · D",
    ],
)
def gpipe_stash(M, P, L, T, D):
    """A pipeline has {{ P }} stages of {{ L }} layers each, {{ M }} micro-batches of {{ T }} tokens, and sends bfloat16[{{ T }}, {{ D }}] between
    stages. How many MiB is the stash of one device at the end of the forward pass?"""
    return M * 2 * T * D


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "M": [12, 16, 32], "P": [4, 8], "T": [2048, 4096], "D": [6144, 8192]},
    model="Only arithmetic counts, at the peak rate. The backward pass computes each stage again",
    hints=[
        "How often is each stage computed, forward and backward?",
        "The forward pass computes each stage once. The backward pass computes each stage again, and then two gradients. Each gradient has as many FLOPs as the stage. Both passes together have 4 times the FLOPs of the forward pass.",
        "(M + P − 1) · 4 · (3 layers · 2 · T · D² FLOPs) / C",
    ],
)
def gpipe_step_time(chip, M, P, T, D):
    """`gpipe_step` runs on {{ P }} {{ chip }} chips with {{ M }} micro-batches of {{ T }} tokens. Each stage has three layers whose `w` is
    bfloat16[{{ D }}, {{ D }}]. How long does a step take?"""
    return (M + P - 1) * 4 * matmul_time(3 * 2 * T * D**2, chip)
