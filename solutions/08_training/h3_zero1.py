"""# H3 AdamW with its state cut (ZeRO-1)

Adam keeps two float32 moments for each parameter. In plain data parallelism every device keeps all moments. With
ZeRO's first stage a device keeps the moments of 1/N of the *elements* and updates only these elements. Then all devices
gather the new weights. ZeRO-1 sends no more bytes than an all-reduce.

```
       whole on each device                     a quarter on each of four
   g   [-------------]  of the device's rows
                        -- reduce-scatter -->   [---]  g of all rows
                                                [---]  m, v: updated by g
                                                [===]  p: updated by m, v
   p   [=============]  <----- all-gather ---
```

**Write** `zero1_step(params, opt, x, y, *, mesh)`. The loss is the mean of `(tanh(x·a + c)·b − y)²` over all rows and
columns. Let g be the gradient of all parameters together, and t = `opt["t"]` + 1. Step t is

    g ← g / max(1, ‖g‖)     m ← 0.9 m + 0.1 g     v ← 0.99 v + 0.01 g²
    u = m / (1 − 0.9^t) / (√(v / (1 − 0.99^t)) + 0.01)
    p ← p − 0.05 (u + 0.1 p)

| | shape | layout |
|---|---|---|
| `params` a, c, b | float32[D, F], float32[F], float32[F, K] | whole on every device |
| `opt` m, v | float32[S], zeros at first | `P("dp")` |
| `opt` t | int32[]: steps done | whole |
| `x`, `y` | float32[B, D], float32[B, K] | `P("dp")` |
| returns | (params, opt, loss before the step) | layouts as above; the loss is whole |

S is a multiple of N and at least the number of parameters. You choose the order of the parameters in m and v.

**What is checked**

| check | rule | small case |
|---|---|---|
| loss | each of five steps returns the loss before the step | |
| direction | the first step changes the parameters in about AdamW's direction: the cosine of the two changes is at least 0.5 | |
| value | after each of five steps, parameters and t are those of AdamW on one device | |
| layout | a device holds 1/N of the moments, and all parameters | 264 bytes of moments |
| what is sent | a device sends at most 2 (N−1)/N · 4S bytes, and 32 bytes for single numbers | 792 bytes |

**Symbols.** B rows, D, F and K widths, N devices along dp, ‖g‖ the norm over all parameters.

**Small case.** a[7, 9], c[9], b[9, 5] have 117 parameters. S = 132, so 15 elements belong to no parameter. On dp=4 a
device has 33 elements of m and 33 of v, 264 bytes. The reduce-scatter and the all-gather send 3/4 · 528 = 396 bytes
each.

## Going further

**In real systems.** DeepSpeed's stage 1 and Megatron's distributed optimizer work like this. They gather bfloat16
weights.

**Read on.** Rajbhandari et al., *ZeRO: Memory Optimizations Toward Training Trillion Parameter Models*, section 5;
Stanford CS336, assignment 2, the sharded optimizer.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise

exercise = Exercise(meshes=[{"dp": 4, "tp": 2}, {"dp": 3}], stars=3)

OPT = exercise.given({"m": P("dp"), "v": P("dp"), "t": P()})


@exercise.task(
    hints=[
        "A device updates 1/N of the elements. Which numbers of the summed gradient does it need? Which devices hold the other terms of the norm?",
        "Ravel gradients and parameters, and pad both to S numbers. psum_scatter the gradients. Slice the device's part of the parameters, update this part, and all_gather the parts.",
        "g = psum_scatter(pad(ravel_pytree(grads)[0]), 'dp', tiled=True); g /= maximum(1, sqrt(psum(sum(g**2), 'dp')))",
    ]
)
def zero1_step(params, opt, x, y, *, mesh):
    """Make one step of AdamW with its moments cut over dp, and return (params, opt, loss).

    Args: params {"a": float32[D, F], "c": float32[F], "b": float32[F, K]}, whole on every device; opt {"m": float32[S], "v":
        float32[S], "t": int32[]} sharded as OPT says; x float32[B, D], y float32[B, K] sharded P('dp').
    Returns: params and opt in the layouts of the arguments, and the loss before the step.
    """

    def local(params, opt, x, y):
        n, me = jax.lax.axis_size("dp"), jax.lax.axis_index("dp")

        def loss_of(params):
            out = jnp.tanh(x @ params["a"] + params["c"]) @ params["b"]
            return jnp.sum((out - y) ** 2) / (n * y.size)

        loss, grads = jax.value_and_grad(loss_of)(params)
        flat, unravel = ravel_pytree(params)
        room = n * len(opt["m"]) - len(flat)

        g = jax.lax.psum_scatter(jnp.pad(ravel_pytree(grads)[0], (0, room)), "dp", tiled=True)
        g = g / jnp.maximum(1, jnp.sqrt(jax.lax.psum(jnp.sum(g**2), "dp")))
        t, m, v = opt["t"] + 1, 0.9 * opt["m"] + 0.1 * g, 0.99 * opt["v"] + 0.01 * g**2
        p = jax.lax.dynamic_slice_in_dim(jnp.pad(flat, (0, room)), me * len(m), len(m))
        p = p - 0.05 * (m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.99**t)) + 0.01) + 0.1 * p)
        flat = jax.lax.all_gather(p, "dp", tiled=True)[: len(flat)]
        return unravel(flat), {"m": m, "v": v, "t": t}, jax.lax.psum(loss, "dp")

    specs = (P(), OPT, P("dp"), P("dp"))
    step = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=(P(), OPT, P()), check_vma=False)
    return step(params, opt, x, y)


@exercise.number(
    points=1,
    unit="GB",
    params={"V": [120_000, 190_000, 250_000], "D": [2048, 3072], "L": [10, 12, 14], "N": [8, 16]},
    model="Weights are bfloat16, and each chip holds all weights. The two moments are float32 and cut over the chips. Gradients and activations do not count. 1 GB is 10^9 bytes",
    hints=[
        "Which of the arrays does ZeRO-1 cut?",
        "ZeRO-1 cuts only the two moments. Weights are whole on each chip. The model has V · D + L · 12 · D² parameters.",
        "2 bytes · parameters + 2 · 4 bytes · parameters / N",
    ],
)
def zero1_held(V, D, L, N):
    """A model has an embedding of {{ V }} × {{ D }} and {{ L }} layers of 12 · {{ D }}² parameters each. It trains with ZeRO-1 on {{ N }} chips. How
    much memory do weights and moments take on each chip?"""
    parameters = V * D + L * 12 * D**2
    return 2 * parameters + 2 * 4 * parameters / N
