"""# I1 A pipeline of micro-batches

P devices in a row hold the layers of a model, L/P layers each. If a whole batch went from device to device, all
devices but one would wait. So the batch is cut into M *micro-batches*. In every *tick* each device works on a
different micro-batch, and sends its result to the next device.

```
   tick     0   1   2   3   4   5   6   7      P = 4, M = 5
   pp=0    F0  F1  F2  F3  F4   .   .   .
   pp=1     .  F0  F1  F2  F3  F4   .   .      device s has micro-batch
   pp=2     .   .  F0  F1  F2  F3  F4   .      t - s in tick t
   pp=3     .   .   .  F0  F1  F2  F3  F4
```

The dots are the *bubble*. All devices run one program, so in the bubble they compute on junk.

**Write** the body `gpipe_forward(ws, x)`. `stage(ws, a)`, the layers of one device, is given.

| | shape on one device | layout |
|---|---|---|
| `ws` | float32[L/P, D, D] | `P("pp")`: the device's layers |
| `x` | float32[M, b, D] | whole: all micro-batches |
| returns | float32[1, M, b, D] | `P("pp")`: outputs on the last device, zeros on the other devices |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| outputs | the last device has the outputs, the other devices have zeros | |
| gradients | JAX's gradients of `ws` and `x` through your ticks equal those of one device | |
| collectives | permutes and no other collective | |
| ticks | M + P − 1 ticks; each computes one stage and sends at most one micro-batch; checked with M=12 on 2 and 4 devices | 8 ticks |

Beware of junk. A device that is not a target of a `ppermute` receives zeros, and `stage` divides each row by its length
(its norm). For a row of zeros this is 0/0, which is NaN. The output can still be right, but gradients are not. The
gradient of an unused value is 0, and 0 · NaN is NaN.

**Symbols.** P stages, M micro-batches of b rows, L layers, D width.

**Small case.** P=4, M=5: 8 ticks. Each device does useful work in 5 of these ticks, so the bubble is 3/8 of the time.
With M=27 the bubble is 3/30 of the time.

## Going further

**In time.** The grader's clock computes the times of this picture for unrolled ticks on 2x2 v5e chips: P = 4, M = 5,
two layers of float32[4096, 4096] on each device, and micro-batches of 4096 tokens. It uses the profile *ideal*: every
collective can run beside the core. In the picture `D` is a matmul, `k` is other work of the core and `P` is a hop;
times are in us.

```
24,302.753 us, 7 permutes, 0% of their time overlapped
         │0            │5,000        │10,000      │15,000       │20,000
compute  k═k═    kD═k═    k═kD═    k═k═    kD═k═    k═kD     k═k═    kD═k═k─
link pp+     P···     P···     P···    P···     P···    P····    P···
```

A matmul waits for the hop before it, and the hop waits for the matmul before it. If a stage takes the time d and a hop
takes the time h, the forward pass takes (M + P − 1) · d + (M + P − 2) · h. In v5e's own profile permutes also run
beside the core.

**In real systems.** Stages are on different hosts or pods, because activations between stages have few bytes, compared
with weights and gradients.

**Read on.** *GPipe: Easy Scaling with Micro-Batch Pipeline Parallelism*; CS336, lecture 8.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, axis, normal
from grader.hardware import CHIPS, matmul_time

exercise = Exercise(meshes=[{"pp": 4}, {"pp": 3, "dp": 2}], stars=3)


@exercise.given
def stage(ws, a):
    """Apply the layers of one device: each scales the rows of a[b, D] to length 1, multiplies by its w, and applies
    tanh."""
    for w in ws:
        a = jnp.tanh(a / jnp.linalg.norm(a, axis=-1, keepdims=True) @ w)
    return a


@exercise.body(
    out_specs=P("pp"),
    check_vma=False,
    hints=[
        "In tick t, which micro-batch does device s have? What is the input of device 0, and what is the input of the other devices? In which tick is the first output ready?",
        "In each tick device 0 takes x[t], and the other devices take the array that they received. Compute the stage, and send the result to s + 1. In tick "
        "t the last device computes the output of micro-batch t - (P - 1). Let devices begin with an array of ones: its rows have a norm above 0.",
        "made = stage(ws, jnp.where(me == 0, x[tick], held)); out = out.at[tick - (n - 1)].set(made); held = jax.lax.ppermute(made, 'pp', [(s, s + 1) for s in range(n - 1)])",
    ],
)
def gpipe_forward(ws, x):
    """Send all micro-batches through all layers.

    Args: ws float32[L/P, D, D], the device's layers; x float32[M, b, D], all micro-batches, on every device.
    Returns: float32[1, M, b, D], the outputs on the last device and zeros on the other devices.
    """
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]

    def one_tick(tick, carry):
        held, out = carry
        made = stage(ws, jnp.where(me == 0, x[tick], held))  # for a tick above M - 1, JAX reads the last entry of x
        # A negative index counts from the end of out. Later ticks overwrite the junk there.
        out = out.at[tick - (n - 1)].set(made)
        return jax.lax.ppermute(made, "pp", [(s, s + 1) for s in range(n - 1)]), out

    _, out = jax.lax.fori_loop(0, m + n - 1, one_tick, (jnp.ones(x.shape[1:]), jnp.zeros_like(x)))
    return jnp.where(me == n - 1, out, 0)[None]


arrays = {"ws": normal("L", "D", "D", spec=P("pp")), "x": normal("M", "B", "D")}
DIMS = {"P": axis("pp"), "L": 2 * axis("pp"), "M": 5, "B": 3, "D": 20}
HIDDEN = {"P": axis("pp"), "L": 3 * axis("pp"), "M": 2, "B": 5, "D": 21}
there = exercise.call(gpipe_forward, **arrays, dims=DIMS, hidden_dims=HIDDEN)
learns = exercise.call(
    gpipe_forward, **arrays, wrt=("ws", "x"), cotangent=normal("P", "M", "B", "D", spec=P("pp")),
    dims=DIMS, hidden_dims=HIDDEN,
)  # fmt: skip


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "P": [4, 8], "M": [6, 8], "T": [2048, 4096], "D": [2048, 3584]},
    model="All devices begin each tick together. In a tick a device computes its stage at the peak rate, and then sends the output one hop at W1, the bandwidth of one direction of a link",
    hints=[
        "How many ticks does it take until the last stage has computed the last micro-batch?",
        "There are M + P − 1 ticks of arithmetic. Between two ticks there is one hop, and no hop follows the last tick.",
        "(M + P − 1) · 2 layers · 2 · T · D² FLOPs / C + (M + P − 2) · 2 bytes · T · D / W1",
    ],
)
def pipeline_time(chip, P, M, T, D):
    """{{ M }} micro-batches of {{ T }} tokens go through {{ P }} {{ chip }} chips in a row. Each chip has two layers whose `w` is
    bfloat16[{{ D }}, {{ D }}]. How long does the forward pass take, until the last chip has computed the last output?"""
    return (M + P - 1) * matmul_time(2 * 2 * T * D**2, chip) + (M + P - 2) * 2 * T * D / CHIPS[chip].ici


@exercise.number(
    points=0.5,
    unit="TFLOP",
    params={"P": [4, 6, 8], "M": [5, 12, 24], "T": [1024, 3072], "D": [6144, 8192]},
    model="All devices run one program and compute in every tick. Only matmuls count. 1 TFLOP is 10^12 FLOPs",
    hints=[
        "In how many ticks does one device compute junk?",
        "Each of the P devices computes in M + P − 1 ticks, and M of these ticks are useful.",
        "P devices · (P − 1) ticks · 3 layers · 2 · T · D² FLOPs",
    ],
)
def bubble_flops(P, M, T, D):
    """{{ P }} devices have three layers each (`w` is bfloat16[{{ D }}, {{ D }}]). {{ M }} micro-batches of {{ T }} tokens go through all devices. How many
    TFLOP do all devices together spend on junk?"""
    return P * (P - 1) * 3 * 2 * T * D**2
