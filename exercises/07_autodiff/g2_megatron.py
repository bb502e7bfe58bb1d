"""# G2 Megatron's f and g

N devices along tp compute an MLP block together. Each device holds F/N columns of `w_in` and F/N rows of `w_out`, so it
computes its own units of the MLP. In the forward pass the devices' outputs are parts of a sum. In the backward pass
each device has a part of the gradient of x, because every device used x.

```
    x --f--> x @ w_in -- tanh --> h @ w_out --g--> y     all-reduce in g
   dx <--f-- each device's part  <------ dy  <--g-- dy    all-reduce in f
```

**Write** four bodies. Use `jax.custom_vjp` in `f` and `g`. The function `with_gradients` is given.

| | forward pass | backward pass | `check_vma` |
|---|---|---|---|
| `f(x)` | return x | all-reduce the cotangent | False |
| `g(y)` | all-reduce y | return the cotangent | False |
| `block_by_hand` | `tanh(x @ w_in) @ w_out` with f and g | its gradients | False |
| `block_by_types` | the same block with a *cast* and `psum` | JAX derives the gradients | True |

| | shape on one device | layout |
|---|---|---|
| `x`, `dy`; returned `y`, `dx` | float32[B, D] | whole |
| `w_in`, returned `dw_in` | float32[D, F/N] | `P(None, "tp")` |
| `w_out`, returned `dw_out` | float32[F/N, D] | `P("tp")` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| `f`, `g`: value | results and gradients as in the first table | |
| `f`: what is sent | nothing sent in the forward pass, one all-reduce in the backward pass | |
| `g`: what is sent | one all-reduce in the forward pass, none in the backward pass | |
| each block: value | y and all three gradients equal the results of the uncut block on one device | |
| each block: what is sent | one all-reduce in each pass, and nothing else: in both passes together 4 (N−1)/N · 4BD bytes | 720 bytes |

One all-reduce of y and dx together passes, too.

**Symbols.** B rows, D model width, F units of the MLP, N (in questions X) devices along tp.

**Small case.** B=6, D=10, float32, tp=4. y has 240 bytes; its all-reduce sends 2 · 3/4 · 240 = 360 bytes. Both passes
together send 720 bytes.

Check your work: shardlings check g2_megatron
Notes on all exercises of this module: see README.md, or run shardlings show 07_autodiff
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def with_gradients(block, x, w_in, w_out, dy):
    """Return (y, dx, dw_in, dw_out) for y = block(x, w_in, w_out); dy is the gradient of y."""
    y, back = jax.vjp(block, x, w_in, w_out)
    return (y, *back(dy))


def f(x):
    """Return x. In the backward pass return the sum over 'tp' of the devices' cotangents.

    Args: x, one device's block, of any shape.
    Returns: one device's block of the same shape.
    """
    # TODO: write this function
    raise NotImplementedError("f")


def g(y):
    """Return the sum over 'tp' of the devices' blocks. In the backward pass return the cotangent.

    Args: y, one device's block, of any shape.
    Returns: one device's block of the same shape.
    """
    # TODO: write this function
    raise NotImplementedError("g")


def block_by_hand(x, w_in, w_out, dy):
    """Return y = tanh(x @ w_in) @ w_out and its gradients, by f and g, with check_vma=False.

    Args: one device's x and dy float32[B, D], whole; w_in float32[D, F/N]; w_out float32[F/N, D].
    Returns: (y, dx, dw_in, dw_out); each gradient has the shape of its array.
    """
    # TODO: write this function
    raise NotImplementedError("block_by_hand")


def block_by_types(x, w_in, w_out, dy):
    """Return the results of block_by_hand, with check_vma=True and no custom_vjp."""
    # TODO: write this function
    raise NotImplementedError("block_by_types")


# Question gated_bytes [MB]
# A gated block, `psum((silu(x @ w_1) * (x @ w_3)) @ w_2, "tp")`, runs on 8 devices with
# `check_vma=True`. x is bfloat16[2048, 5120], equal on all devices, and the program has no cast.
# The program computes the output and the gradients of x and of the weights. How many MB does each
# device send, in the forward and backward pass together?
#
# Answer in MB (a bare number), or with a unit.
# Model: each device sends 2 (X - 1) / X · V bytes in an all-reduce of V bytes; 1 MB is 10^6
# bytes.
gated_bytes = None  # TODO: your answer


# Question layers_time [ms]
# A model has 48 layers on a ring of 8 v4p chips. Each layer has an attention block and an MLP
# block as above, both with f and g. Activations and their gradients are bfloat16[6144, 5120]. How
# many ms do the all-reduces of a training step take?
#
# Answer in ms (a bare number), or with a unit.
# Model: on a ring an all-reduce takes 2 (X - 1) / X · V / W, with W the both-way bandwidth of a
# link; nothing runs beside an all-reduce.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
layers_time = None  # TODO: your answer


# ## Going further
#
# **Why not psum alone?** With `check_vma=False` JAX cannot know that the cotangent of a psum's result is equal on all
# devices. JAX adds the N equal copies of this cotangent: `psum` transposes to `psum`, and the gradients are N times too
# large.
#
# **A trap.** With `check_vma=True` JAX adds a cast wherever an operation combines x with a varying array. If the program
# has two such places, JAX makes two casts, and two all-reduces in the backward pass. If you cast once yourself, there is
# one all-reduce.
#
# **In real systems.** Every tensor-parallel layer of Megatron-LM and its descendants works like this.
#
# **Read on.** Shoeybi et al., "Megatron-LM", section 3; E. Z. Yang, "The JAX sharding type system".
