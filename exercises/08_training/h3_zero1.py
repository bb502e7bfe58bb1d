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

Check your work: shardlings check h3_zero1
Notes on all exercises of this module: see README.md, or run shardlings show 08_training
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


OPT = {"m": P("dp"), "v": P("dp"), "t": P()}


def zero1_step(params, opt, x, y, *, mesh):
    """Make one step of AdamW with its moments cut over dp, and return (params, opt, loss).

    Args: params {"a": float32[D, F], "c": float32[F], "b": float32[F, K]}, whole on every device; opt {"m": float32[S], "v":
        float32[S], "t": int32[]} sharded as OPT says; x float32[B, D], y float32[B, K] sharded P('dp').
    Returns: params and opt in the layouts of the arguments, and the loss before the step.
    """
    # TODO: write this function
    raise NotImplementedError("zero1_step")


# Question zero1_held [GB]
# A model has an embedding of 250000 × 3072 and 10 layers of 12 · 3072² parameters each. It trains
# with ZeRO-1 on 8 chips. How much memory do weights and moments take on each chip?
#
# Answer in GB (a bare number), or with a unit.
# Model: Weights are bfloat16, and each chip holds all weights. The two moments are float32 and
# cut over the chips. Gradients and activations do not count. 1 GB is 10^9 bytes.
zero1_held = None  # TODO: your answer


# ## Going further
#
# **In real systems.** DeepSpeed's stage 1 and Megatron's distributed optimizer work like this. They gather bfloat16
# weights.
#
# **Read on.** Rajbhandari et al., *ZeRO: Memory Optimizations Toward Training Trillion Parameter Models*, section 5;
# Stanford CS336, assignment 2, the sharded optimizer.
