"""# H6 Tensor parallelism, with the sequence cut between blocks

In H5 all devices hold all of `x` between blocks. Here axis tp cuts the rows: `x[S_tp, D]`. A block gathers rows before
its first matmul. The all-reduce after the second matmul becomes a reduce-scatter. A device applies norm, bias, residual
and dropout only to its own rows.

```
                rows          whole          whole           rows
    forward    x --norm--> ──AG──> · w1, tanh, · w2 ──RS──> + bias + x
    backward   dscale <──RS── · w1ᵀ, tanh', · w2ᵀ <──AG── dy --> dbias
               norm(x) ──AG──> for the gradient of w1
```

**Write** two bodies. `norm` and `norm_back` are given.

    train:  x ← x + tanh(norm(x, scale) @ w1) @ w2 + bias, layer after layer

| | shape on one device | layout |
|---|---|---|
| `train(x, layers, dy)`: x, dy, returned y, dx | float32[S/N, D] | rows over tp |
| `layers`, returned gradients of Σ(y · dy): w1, w2 | float32[D, F/N], float32[F/N, D] | cut over tp |
| scale, bias | float32[D] | whole |
| `drop(x, seed, *, rate)`: x, result | float32[S/N, D] | rows over tp |

`drop` sets a number to 0 with probability `rate` and divides the others by 1 − `rate`.

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| `train`: y and gradients | those of one device | |
| `train`: what is sent | per layer: at most 3 all-gathers and 2 reduce-scatters of [S, D] | 81,000 bytes |
| | per layer all-reduces of 2·D numbers | 1080 bytes |
| `train`: work | on tp=8: a device normalizes only its own rows; at most one matmul of a layer runs twice; *what is sent* holds too | |
| `train`: memory | on tp=8: for each layer a device keeps only its rows and its `hidden`; it holds gathered rows [S, D] of at most one layer | |
| `drop`: value | a share of about `rate` becomes 0; devices along an axis dp hold copies; copies of a row stay equal; nothing is sent | |
| `drop`: masks | masks depend on seed and place, not on values; two rows, seeds or devices along tp have independent masks (a shifted copy is not independent) | |

**Symbols.** S rows, D width, F MLP units, N devices along tp, L layers, AG all-gather, RS reduce-scatter;
`hidden` = tanh(…), float32[S, F/N].

**Small case.** S=60, D=90, tp=4: a device has 15 rows, 5400 bytes. A gather or scatter sends 3 · 5400 = 16,200 bytes,
so a layer's five collectives send 81,000 bytes. The gradients of `scale` and `bias` send 2 · 3/4 · 720 = 1080
bytes.

## Going further

**Parts and copies.** A scale multiplies only the rows of its device, so each device has a *part* of the scale's
gradient. Devices must sum such parts. The gradients of `w1` and `w2` need no sum, because the gathers brought all rows.

**Gathering again.** A device does not keep the gathered rows of the forward pass, which have [S, D] numbers for each
layer. So the backward pass gathers norm(x) again. A compiler may merge two equal gathers of one program and keep the
result of the first gather. `jax.checkpoint` puts a barrier between them. The grader judges the program as you write it.

**In real systems.** Megatron's sequence parallelism works like this. Some released frameworks did not sum the norms'
gradients. The loss still goes down, but the devices' scales drift apart.

**Read on.** Korthikanti et al., *Reducing Activation Recomputation in Large Transformer Models*, section 4.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise

exercise = Exercise(meshes=[{"dp": 2, "tp": 4}, {"tp": 5}], stars=3, extension=True)
ROWS = exercise.given(P("tp"))
LAYER = exercise.given({"scale": P(), "w1": P(None, "tp"), "w2": P("tp"), "bias": P()})
LAYERS = 6


@exercise.given
def norm(x, scale):
    """Return each row of x divided by its root mean square, times scale."""
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True)) * scale


@exercise.given
def norm_back(x, scale, dn):
    """Return the gradients of x and scale that these rows give, from dn, the gradient of norm(x, scale)."""
    over = jax.lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True))
    unit, du = x * over, dn * scale
    return (du - unit * jnp.mean(du * unit, axis=1, keepdims=True)) * over, jnp.sum(dn * unit, axis=0)


@exercise.body(
    out_specs=(ROWS, ROWS, [LAYER] * LAYERS),
    check_vma=False,
    hints=[
        "In the backward pass a gather becomes a reduce-scatter, and a reduce-scatter becomes a gather. Which arrays do the matmuls need with all rows?",
        "Keep (x, hidden) of each layer. In the backward pass gather dy, and gather norm(x) again. psum the gradients of scale and bias.",
        "whole = gather(dy); back = (whole @ w2.T) * (1 - hidden**2); dx, dscale = norm_back(x, scale, scatter(back @ w1.T))",
    ],
)
def train(x, layers, dy):
    """Return the last x, and the gradients of sum(y * dy) for the first x and for all layers.

    Args: x, dy float32[S/N, D], a device's rows; layers, a list of {"scale": float32[D], "w1": float32[D, F/N],
    "w2": float32[F/N, D], "bias": float32[D]}; the mesh axis is 'tp'.
    Returns: (y, dx, grads): y and dx shaped as x, grads as layers.
    """

    def gather(rows):
        return jax.lax.all_gather(rows, "tp", tiled=True)

    def scatter(parts):
        return jax.lax.psum_scatter(parts, "tp", tiled=True)

    kept, grads = [], []
    for layer in layers:
        hidden = jnp.tanh(gather(norm(x, layer["scale"])) @ layer["w1"])
        kept.append((x, hidden))
        x = x + scatter(hidden @ layer["w2"]) + layer["bias"]
    y = x
    for layer, (x, hidden) in zip(reversed(layers), reversed(kept), strict=True):
        whole = gather(dy)
        back = (whole @ layer["w2"].T) * (1 - hidden**2)
        dx, dscale = norm_back(x, layer["scale"], scatter(back @ layer["w1"].T))
        grad = {"w1": gather(norm(x, layer["scale"])).T @ back, "w2": hidden.T @ whole}
        grads.append(grad | jax.lax.psum({"scale": dscale, "bias": dy.sum(axis=0)}, "tp"))
        dy = dy + dx
    return y, dy, grads[::-1]


@exercise.body(
    out_specs=ROWS,
    hints=[
        "All devices get one seed. Which value must differ between rows, but be equal on copies of a row?",
        "Each device needs its own key: fold its index along tp into the key of the seed.",
        "key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index('tp')); jax.random.bernoulli(key, 1 - rate, x.shape)",
    ],
)
def drop(x, seed, *, rate):
    """Return a device's rows with some numbers set to 0, and the other numbers divided by 1 - rate.

    Args: x float32[S/N, D], a device's rows; seed, an int32, equal on all devices; rate, the probability of a 0.
    Returns: float32[S/N, D].
    """
    key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


@exercise.number(
    points=0.5,
    unit="MB",
    params={"S": [4096, 6144, 8192], "D": [5120, 7168, 12288], "N": [4, 8, 16]},
    model="A device sends (N - 1)/N of the array in an all-gather or a reduce-scatter. The gradients of scale and bias do not count. 1 MB is 10^6 bytes",
    hints=[
        "How many collectives does a layer have, forward and backward?",
        "Forward: a gather and a scatter. Backward: a gather and a scatter, and one more gather of the rows, because no device kept them.",
        "5 · (N − 1) / N · (2 · S · D bytes)",
    ],
)
def block_bytes(S, D, N):
    """One layer of `train` has S={{ S }} rows and D={{ D }}. It runs in bfloat16 on tp={{ N }}. How many MB does each device send, in the
    forward and backward pass together?"""
    return 5 * 2 * S * D * (N - 1) / N


@exercise.number(
    points=0.5,
    unit="GB",
    params={"S": [4096, 8192], "D": [5120, 7168], "F": [18432, 24576], "L": [24, 40], "N": [4, 8]},
    model="Arrays are bfloat16. For each layer a device keeps its own rows of `x` and its `hidden`, but no gathered rows. 1 GB is 10^9 bytes",
    hints=[
        "Which shapes do `x` and `hidden` have on one device?",
        "`x` is cut by rows: [S / N, D]. `hidden` is cut by columns: [S, F / N].",
        "L · 2 bytes · S · (D + F) / N",
    ],
)
def kept_bytes(S, D, F, L, N):
    """A model has {{ L }} layers with S={{ S }}, D={{ D }}, F={{ F }} on tp={{ N }}. How many GB does a device keep from the forward
    pass for the backward pass?"""
    return 2 * L * S * (D + F) / N
