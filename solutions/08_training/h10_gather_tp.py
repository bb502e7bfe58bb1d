"""# H10 Tensor parallelism that gathers after every layer

This is the simplest way to cut a stack of layers. Each device has some columns of every weight and computes
these columns of the layer's result. An all-gather makes the result whole for the next layer. Lectures show
the forward pass; here you write the backward pass, too.

```
              every device                       device d alone
   forward    h[B, D]                 --> tanh(h · w[:, d]) = h'[B, D/N]
              h'[B, D]                <── all-gather
   backward   dy[B, D], all copies    --> its own columns, cut out
              {dh}[B, D], partial     <-- (dh' · tanh') · w[:, d]ᵀ
              dh[B, D/N], own columns <── reduce-scatter;  dx: all-reduce
```

**Write** the body `gather_tp(x, ws, dy)`. Start with h = x and compute h ← tanh(h @ w) for each layer. Return the
last h, and the gradients of Σ(y · dy).

| | shape on one device | layout |
|---|---|---|
| `x`, `dy` | float32[B, D] | whole |
| `ws` | float32[L, D, D/N] | `COLUMNS`: columns over tp |
| returns: y, dx | float32[B, D] | whole |
| dws | float32[L, D, D/N] | as `ws` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| y, dws, dx | y and gradients are those of one device | |
| what is sent | over tp at most the bytes of L all-gathers, of L − 1 reduce-scatters and of one all-reduce, each of [B, D] | L=3: 7 · 216 = 1512 bytes |

Allowed: a reduce-scatter and an all-gather in place of the all-reduce; one gather for y and dx together. You may keep
activations. dy is *equal* on all devices, so a sum over devices would count it N times.

**Symbols.** B rows, D width, L layers, N devices along tp; {dh}: partial sums of dh, one on each device.

**Small case.** B=6, D=12, L=3, tp=4, float32. [B, D] has 288 bytes, and a gather or scatter sends 216 bytes per device.
The forward pass sends 3 · 216 = 648 bytes. The backward pass sends 2 · 216 bytes in the scatters and 2 · 216 bytes in
the all-reduce, 864 bytes in all. The check has two layers.

## Going further

**Why fewer bytes are not enough.** Suppose that weights stay on their devices. In the backward pass device d needs only
its own columns of dh. From these columns and from h, which is whole on every device, d computes its columns of the
gradient of w and its part of the next {dh}. Every device has a part of each number of {dh}. Each device's columns
therefore need parts from all N − 1 other devices, and a reduce-scatter brings these. Only dx must be whole, so only dx
also needs a gather. dy needs no communication. The transpose of an all-gather is a reduce-scatter, which sums partial
cotangents. But dy is not partial: every device has the whole dy and cuts out its own columns.

**In real systems.** Weights are cut by columns and by rows in turn (exercise H5). Such a stack waits for half as many
collectives as the stack of this exercise.

**Read on.** Stanford CS336, lecture 8, on tensor parallelism; exercise B3, on transposes.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import reduce_scatter_time

exercise = Exercise(meshes=[{"dp": 2, "tp": 4}, {"tp": 3}], stars=3)
COLUMNS = exercise.given(P(None, None, "tp"))


@exercise.body(
    out_specs=(P(), P(), COLUMNS),
    check_vma=False,
    hints=[
        "Which numbers of dh does a device need for the backward pass of a layer, and which devices have parts of these numbers?",
        "Cut your columns out of dy. For each layer, from the last to the first, compute the gradient of w and your part of dh, and reduce-scatter the parts. All-reduce the parts of dx.",
        "back = mine(dh) * (1 - mine(h)**2); dw = before.T @ back; dh = psum_scatter(back @ w.T, 'tp', scatter_dimension=1, tiled=True)",
    ],
)
def gather_tp(x, ws, dy):
    """Return the last h, and the gradients of sum(y * dy) for x and ws.

    Args: x, dy float32[B, D], whole on each device; ws float32[L, D, D/N], a device's columns; the mesh axis is 'tp'.
    Returns: (y, dx, dws): y and dx float32[B, D], whole on each device, and dws shaped as ws.
    """
    width = ws.shape[2]

    def mine(whole):
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("tp") * width, width, axis=1)

    def scatter(parts):
        return jax.lax.psum_scatter(parts, "tp", scatter_dimension=1, tiled=True)

    held = [x]
    for w in ws:
        held.append(jax.lax.all_gather(jnp.tanh(held[-1] @ w), "tp", axis=1, tiled=True))
    dh, dws = mine(dy), []
    for layer in reversed(range(len(ws))):
        back = dh * (1 - mine(held[layer + 1]) ** 2)
        dws.insert(0, held[layer].T @ back)
        parts = back @ ws[layer].T
        dh = scatter(parts) if layer else jax.lax.psum(parts, "tp")
    return held[-1], dh, jnp.stack(dws)


@exercise.number(
    points=1,
    unit="us",
    params={"chip": ["v4p", "v5p"], "B": [2048, 4096], "D": [5120, 8192], "L": [3, 6, 9], "N": [4, 8]},
    model="A reduce-scatter on a ring takes V / W, where W is the both-way bandwidth of a link. Latency does not count",
    hints=[
        "Which second step does an all-reduce have after its reduce-scatter?",
        "An all-reduce also gathers, so it takes V / W more than a reduce-scatter. The first layer needs its all-reduce, because this all-reduce gives dx, which is whole on every device.",
        "(L − 1) · V / W with V = 2 · B · D bytes",
    ],
)
def slicing_costs(chip, B, D, L, N):
    """A program all-reduces every {dh} of [{{ B }}, {{ D }}] in bfloat16, and each device then cuts out its own columns. The program has {{ L }} layers
    on a ring of {{ N }} {{ chip }} chips. How much longer than necessary does the communication of its backward pass take?"""
    return (L - 1) * reduce_scatter_time(2 * B * D, N, chip)
