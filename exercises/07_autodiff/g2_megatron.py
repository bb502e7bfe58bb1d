"""# G2 Megatron's f and g

A block of two matmuls over N devices of axis tp: `w_in[D, F]` is cut by columns and `w_out[F, D]` by rows, so each device
has its own F/N hidden units, and all of x. Forwards the devices' outputs are parts of a sum. Backwards it is the
gradient of x that comes in parts: every device used x, and knows what went through its own hidden units only.

**Task.** Two operators say so, and each is the other's transpose. Write them with `jax.custom_vjp`, as bodies for
`shard_map` with `check_vma=False`, and the block with them:

| | forwards | backwards |
|---|---|---|
| `f` | does nothing | all-reduce |
| `g` | all-reduce | does nothing |

Then write the same block with `check_vma=True` and no custom_vjp: there `f` is a *cast*, from "the same on all devices"
to "varying over tp", and `g` is `jax.lax.psum`. JAX knows their transposes. `with_gradients` is given.

**Budget.** Each block: one all-reduce forwards and one backwards, of [B, D] numbers, and no other collective.

```
    x --f--> x @ w_in -- tanh --> h @ w_out --g--> y     all-reduce in g
   dx <--f-- each device's part  <------ dy  <--g-- dy    all-reduce in f
```

**Small case.** B=6, D=10, float32, tp=4: an all-reduce of 240 bytes, of which a device sends 2 · 3/4 · 240 = 360. Forwards
and backwards together 720.

**Why not psum alone?** With `check_vma=False` JAX cannot know that the cotangent of a psum's result is the same on all
devices, and adds N copies of it: `psum` transposes to `psum`, and the gradients are N times too large.

**A trap.** The cast is put in for you wherever something varying meets x. With two such places there are two casts, and
two all-reduces backwards; cast once yourself and there is one.

**In real systems**: every tensor-parallel layer of Megatron-LM and its descendants.

**Read on.** Shoeybi et al., "Megatron-LM", section 3; E. Z. Yang, "The JAX sharding type system".

Check your work: shardlings check g2_megatron
For all exercises of this module: README.md, or shardlings show 07_autodiff
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def with_gradients(block, x, w_in, w_out, dy):
    """(y, dx, dw_in, dw_out) for y = block(x, w_in, w_out), dy being the gradient that comes back to y."""
    y, back = jax.vjp(block, x, w_in, w_out)
    return (y, *back(dy))


def f(x):
    """Forwards x itself; backwards the sum over 'tp' of the devices' cotangents. One device's block in, one out."""
    # TODO: write this function
    raise NotImplementedError("f")


def g(y):
    """Forwards the sum over 'tp' of the devices' blocks; backwards the cotangent itself. One device's block in, one out."""
    # TODO: write this function
    raise NotImplementedError("g")


def block_by_hand(x, w_in, w_out, dy):
    """y = tanh(x @ w_in) @ w_out and its gradients, by f and g, with check_vma=False.

    Args: one device's x and dy float32[B, D], whole; w_in float32[D, F/tp]; w_out float32[F/tp, D].
    Returns: (y, dx, dw_in, dw_out), each as large as what it is of.
    """
    # TODO: write this function
    raise NotImplementedError("block_by_hand")


def block_by_types(x, w_in, w_out, dy):
    """The same, with check_vma=True: no custom_vjp."""
    # TODO: write this function
    raise NotImplementedError("block_by_types")


# Question gated_bytes [MB]
# A gated block, `psum((silu(x @ w_1) * (x @ w_3)) @ w_2, "tp")`, over 8 devices with
# `check_vma=True`; x is bfloat16[2048, 5120], the same on all of them, and nobody wrote a cast.
# Only its output and the gradients of x and the weights are asked. How many MB does each device
# send, forwards and backwards together?
#
# Answer in MB (a bare number), or with a unit.
# Model: an all-reduce of V bytes sends 2 (X - 1) / X V from each device; 1 MB is 10^6 bytes.
gated_bytes = None  # TODO: your answer


# Question layers_time [ms]
# 64 layers, each with an attention block and a block as above, both with f and g, on a ring of 8
# v4p chips. Activations and their gradients are bfloat16[6144, 5120]. How many ms do the all-
# reduces of a training step take?
#
# Answer in ms (a bare number), or with a unit.
# Model: a ring; an all-reduce takes 2 V / W, W both directions of a link; nothing runs beside it.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
layers_time = None  # TODO: your answer
