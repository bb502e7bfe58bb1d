"""# H10 Tensor parallelism that gathers after every layer

The plainest way to cut a stack of layers: each device has some columns of every weight, computes those columns of the
layer's result, and an all-gather makes the result whole for the next layer. Its forward pass is in lectures, its
backward pass often left to the reader. Here it is.

**Task.** `gather_tp(x, ws, dy)`, a body for `shard_map` (around it already, with `check_vma=False`): for L weights
`ws[L, D, D_tp]`, `h = tanh(h @ w)` layer by layer, from h = x; return y, the last h, and the gradients of sum(y · dy) for x
and ws. x, dy, y and dx are whole on every device, the gradients of ws cut as ws are.

**Budget.** Forward L all-gathers over tp of [B, D]; backward L − 1 reduce-scatters and one all-reduce of [B, D]; nothing else.

```
              every device                       device d alone
   forward    h[B, D]                 --> tanh(h · w[:, d]) = h'[B, D/N]
              h'[B, D]                <── all-gather
   backward   dy[B, D], all copies    --> its own columns, cut out
              {dh}[B, D], partial     <-- (dh' · tanh') · w[:, d]ᵀ
              dh[B, D/N], own columns <── reduce-scatter;  dx: all-reduce
```

*Why so much and no more*, where weights stay at home. Backward, device d needs dh of its own columns only: with them it has its
columns of the gradient of w, for h is whole everywhere, and its part of the next {dh}. Every device has a part of each number of
{dh}, so all N − 1 others have something to say of each device's columns: a reduce-scatter. Only dx is wanted whole, and that takes
the gather, too. dy needs nothing at all: an all-gather's transpose is a reduce-scatter, but of a cotangent that comes in parts,
and all devices have the same dy. Summed, it would count N times.

**Small case.** B=6, D=12, L=3 on tp=4, float32: [B, D] is 288 bytes, a gather sends 216 from each device. Forward 3 · 216 = 648,
backward 2 · 216 + 2 · 216 = 864.

**In real systems**: weights are cut by columns and by rows in turn (H5), which waits for half as many collectives.

**Read on.** Stanford CS336, lecture 8, on tensor parallelism; B3 on transposes.
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
        "Of dh, which numbers does a device need to go on, and who has parts of them?",
        "Cut your columns out of dy; for each layer from the last: gradient of w, your part of dh, reduce-scatter; at x all-reduce.",
        "back = mine(dh) * (1 - mine(h)**2); dw = before.T @ back; dh = psum_scatter(back @ w.T, 'tp', scatter_dimension=1, tiled=True)",
    ],
)
def gather_tp(x, ws, dy):
    """The layers forward and backward.

    Args: x, dy float32[B, D], whole on each device; ws float32[L, D, D/N], a device's columns; the mesh axis is 'tp'.
    Returns: y float32[B, D] and dx float32[B, D], whole on each device, and dws as ws.
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
    points=0.5,
    unit="MB",
    params={"B": [2048, 4096], "D": [5120, 6144, 8192], "L": [3, 6, 9], "N": [4, 8]},
    model="a device sends (N - 1)/N of an array in an all-gather or a reduce-scatter; 1 MB is 10^6 bytes",
)
def gather_tp_bytes(B, D, L, N):
    """`gather_tp` with B={{ B }}, D={{ D }}, {{ L }} layers, in bfloat16 on tp={{ N }}. How many MB does each device send, forward and
    backward together?"""
    return (2 * L + 1) * 2 * B * D * (N - 1) / N


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "B": [2048, 4096], "D": [5120, 8192], "L": [3, 6, 9], "N": [4, 8]},
    model="ring, bandwidth only: a reduce-scatter takes V / W, W both directions of a link",
)
def slicing_costs(chip, B, D, L, N):
    """Somebody all-reduces every {dh} of [{{ B }}, {{ D }}] in bfloat16 and then cuts out his own columns. With {{ L }} layers on a ring of
    {{ N }} {{ chip }} chips: how much longer does his backward pass communicate than it has to?"""
    return (L - 1) * reduce_scatter_time(2 * B * D, N, chip)
