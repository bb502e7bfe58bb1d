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

Check your work: shardlings check h6_sequence_parallel
Notes on all exercises of this module: see README.md, or run shardlings show 08_training
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


ROWS = P("tp")


LAYER = {"scale": P(), "w1": P(None, "tp"), "w2": P("tp"), "bias": P()}


def norm(x, scale):
    """Return each row of x divided by its root mean square, times scale."""
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True)) * scale


def norm_back(x, scale, dn):
    """Return the gradients of x and scale that these rows give, from dn, the gradient of norm(x, scale)."""
    over = jax.lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True))
    unit, du = x * over, dn * scale
    return (du - unit * jnp.mean(du * unit, axis=1, keepdims=True)) * over, jnp.sum(dn * unit, axis=0)


def train(x, layers, dy):
    """Return the last x, and the gradients of sum(y * dy) for the first x and for all layers.

    Args: x, dy float32[S/N, D], a device's rows; layers, a list of {"scale": float32[D], "w1": float32[D, F/N],
    "w2": float32[F/N, D], "bias": float32[D]}; the mesh axis is 'tp'.
    Returns: (y, dx, grads): y and dx shaped as x, grads as layers.
    """
    # TODO: write this function
    raise NotImplementedError("train")


def drop(x, seed, *, rate):
    """Return a device's rows with some numbers set to 0, and the other numbers divided by 1 - rate.

    Args: x float32[S/N, D], a device's rows; seed, an int32, equal on all devices; rate, the probability of a 0.
    Returns: float32[S/N, D].
    """
    # TODO: write this function
    raise NotImplementedError("drop")


# Question block_bytes [MB]
# One layer of `train` has S=8192 rows and D=5120. It runs in bfloat16 on tp=8. How many MB does
# each device send, in the forward and backward pass together?
#
# Answer in MB (a bare number), or with a unit.
# Model: A device sends (N - 1)/N of the array in an all-gather or a reduce-scatter. The gradients
# of scale and bias do not count. 1 MB is 10^6 bytes.
block_bytes = None  # TODO: your answer


# Question kept_bytes [GB]
# A model has 40 layers with S=8192, D=5120, F=24576 on tp=4. How many GB does a device keep from
# the forward pass for the backward pass?
#
# Answer in GB (a bare number), or with a unit.
# Model: Arrays are bfloat16. For each layer a device keeps its own rows of `x` and its `hidden`,
# but no gathered rows. 1 GB is 10^9 bytes.
kept_bytes = None  # TODO: your answer


# ## Going further
#
# **Parts and copies.** A scale multiplies only the rows of its device, so each device has a *part* of the scale's
# gradient. Devices must sum such parts. The gradients of `w1` and `w2` need no sum, because the gathers brought all rows.
#
# **Gathering again.** A device does not keep the gathered rows of the forward pass, which have [S, D] numbers for each
# layer. So the backward pass gathers norm(x) again. A compiler may merge two equal gathers of one program and keep the
# result of the first gather. `jax.checkpoint` puts a barrier between them. The grader judges the program as you write it.
#
# **In real systems.** Megatron's sequence parallelism works like this. Some released frameworks did not sum the norms'
# gradients. The loss still goes down, but the devices' scales drift apart.
#
# **Read on.** Korthikanti et al., *Reducing Activation Recomputation in Large Transformer Models*, section 4.
