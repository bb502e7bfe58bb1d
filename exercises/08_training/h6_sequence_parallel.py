"""# H6 Tensor parallelism with the sequence cut between

In H5 every device holds all of `x` between two blocks, and norms all of it, N times the same. Cut its rows instead, over
the same axis tp: `x[S_tp, D]`. A block then gathers the rows just before its first product, and what was an all-reduce
behind its second becomes a reduce-scatter: the same bytes. Norm, bias, residual and dropout work on a device's own rows.

**Task.** For `layers`, a list of dicts, `x = x + tanh(norm(x, scale) @ w1) @ w2 + bias`, layer after layer. Write

- `train(x, layers, dy)`, a body for `shard_map` (around it already, with `check_vma=False`): the last `x`, and the gradients
  of sum(y · dy) for the first `x` and for all layers. `norm` and `norm_back` are given: they work on whole rows.
- `drop(x, seed, *, rate)`, a body, too: dropout on a device's rows. A number is kept with probability 1 − `rate`, and divided
  by that; the others become 0. The mask depends on the seed and the place of a number, not on its value. Another seed is
  another mask, and so is another row; but copies are dropped alike.

**Budget.** Per layer, over tp: forward one all-gather and one reduce-scatter of [S, D]; backward one reduce-scatter and two
all-gathers, because what was gathered forward is not kept: that would be [S, D] for each layer on each device. The gradients
of `scale` and `bias` take all-reduces of D numbers, one by one or all together.

```
                rows          whole          whole           rows
    forward    x --norm--> ──AG──> · w1, tanh, · w2 ──RS──> + bias + x
    backward   dscale <──RS── · w1ᵀ, tanh', · w2ᵀ <──AG── dy --> dbias
               norm(x) ──AG──> for the gradient of w1
```

A scale meets the rows of one device only, so each device has a *piece* of its gradient: pieces are added. (Copies would be
averaged; there are none here.) The gradients of `w1` and `w2` are whole where they are needed: all rows have come by.

**Small case.** S=60, D=90 on tp=4: 15 rows on a device, 5.4 kB of float32. A gather sends 3 · 5400 = 16,200 bytes from each
device, 5 such make 81,000 per layer, and the gradients of `scale` and `bias` 2 · 3/4 · 2 · 360 = 1080.

**In real systems**: Megatron's sequence parallelism. Frameworks have come without the sum of the norms' gradients: the loss goes
down all the same, and the devices' scales drift apart. Gathered twice in one program, as here, a compiler may notice and keep the
first after all: `jax.checkpoint` puts a barrier between. What is judged is the program as you write it.

**Read on.** Korthikanti et al., *Reducing Activation Recomputation in Large Transformer Models*, section 4.

Check your work: shardlings check h6_sequence_parallel
For all exercises of this module: README.md, or shardlings show 08_training
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


ROWS = P("tp")


LAYER = {"scale": P(), "w1": P(None, "tp"), "w2": P("tp"), "bias": P()}


def norm(x, scale):
    """Each row of x divided by its root mean square, times scale."""
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True)) * scale


def norm_back(x, scale, dn):
    """The gradients for x and scale, from those for norm(x, scale): of these rows."""
    over = jax.lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True))
    unit, du = x * over, dn * scale
    return (du - unit * jnp.mean(du * unit, axis=1, keepdims=True)) * over, jnp.sum(dn * unit, axis=0)


def train(x, layers, dy):
    """The layers forward and backward.

    Args: x, dy float32[S/N, D], a device's rows; layers, a list of {"scale": float32[D], "w1": float32[D, F/N],
    "w2": float32[F/N, D], "bias": float32[D]}; the mesh axis is 'tp'.
    Returns: (y, dx, grads), as x, as x, and as layers.
    """
    # TODO: write this function
    raise NotImplementedError("train")


def drop(x, seed, *, rate):
    """float32[S/N, D], a device's rows, and an int32 -> the same rows with some numbers dropped, the others / (1 - rate)."""
    # TODO: write this function
    raise NotImplementedError("drop")


# Question block_bytes [MB]
# One layer of `train`, with S=8192 rows, D=5120, in bfloat16 on tp=8. How many MB does each
# device send, forward and backward together?
#
# Answer in MB (a bare number), or with a unit.
# Model: a device sends (N - 1)/N of an array in an all-gather or a reduce-scatter; 1 MB is 10^6
# bytes; scale and bias left out.
block_bytes = None  # TODO: your answer


# Question kept_bytes [GB]
# 40 layers with S=8192, D=5120, F=24576 on tp=4. How many GB does a device keep from the forward
# pass for the backward pass?
#
# Answer in GB (a bare number), or with a unit.
# Model: bfloat16; 1 GB is 10^9 bytes; of each layer `x` and `hidden` are kept as `train` has
# them.
kept_bytes = None  # TODO: your answer
