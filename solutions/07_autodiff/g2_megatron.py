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

## Going further

**Why not psum alone?** With `check_vma=False` JAX cannot know that the cotangent of a psum's result is equal on all
devices. JAX adds the N equal copies of this cotangent: `psum` transposes to `psum`, and the gradients are N times too
large.

**A trap.** With `check_vma=True` JAX adds a cast wherever an operation combines x with a varying array. If the program
has two such places, JAX makes two casts, and two all-reduces in the backward pass. If you cast once yourself, there is
one all-reduce.

**In real systems.** Every tensor-parallel layer of Megatron-LM and its descendants works like this.

**Read on.** Shoeybi et al., "Megatron-LM", section 3; E. Z. Yang, "The JAX sharding type system".
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import all_reduce_time

exercise = Exercise(meshes=[{"tp": 4, "dp": 2}, {"tp": 3}], stars=2)
OUT = (P(), P(), P(None, "tp"), P("tp"))


@exercise.given
def with_gradients(block, x, w_in, w_out, dy):
    """Return (y, dx, dw_in, dw_out) for y = block(x, w_in, w_out); dy is the gradient of y."""
    y, back = jax.vjp(block, x, w_in, w_out)
    return (y, *back(dy))


@exercise.body(
    out_specs=P("tp"),
    hints=[
        "In the forward pass f does nothing. What does JAX do in the backward pass unless you write a rule?",
        "Write a function that returns x, and give it a rule: forward (x, None), backward the psum of the cotangent.",
        "same = jax.custom_vjp(lambda x: x); same.defvjp(lambda x: (x, None), lambda _, ct: (jax.lax.psum(ct, 'tp'),))",
    ],
)
def f(x):
    """Return x. In the backward pass return the sum over 'tp' of the devices' cotangents.

    Args: x, one device's block, of any shape.
    Returns: one device's block of the same shape.
    """

    @jax.custom_vjp
    def same(x):
        return x

    same.defvjp(lambda x: (x, None), lambda _, ct: (jax.lax.psum(ct, "tp"),))
    return same(x)


@exercise.body(
    out_specs=P("tp"),
    hints=[
        "The result is equal on all devices, and so is its cotangent. Is there anything left to sum in the backward pass?",
        "Reverse the rule of f: psum in the forward pass, the unchanged cotangent in the backward pass.",
        "summed.defvjp(lambda y: (jax.lax.psum(y, 'tp'), None), lambda _, ct: (ct,))",
    ],
)
def g(y):
    """Return the sum over 'tp' of the devices' blocks. In the backward pass return the cotangent.

    Args: y, one device's block, of any shape.
    Returns: one device's block of the same shape.
    """

    @jax.custom_vjp
    def summed(y):
        return jax.lax.psum(y, "tp")

    summed.defvjp(lambda y: (jax.lax.psum(y, "tp"), None), lambda _, ct: (ct,))
    return summed(y)


@exercise.body(
    out_specs=OUT,
    check_vma=False,
    hints=[
        "In which part of the block do values differ from device to device? Where does this part begin, and where does it end?",
        "Use f where x enters the block, and g where the parts of y leave it. The function that with_gradients takes has the arguments x, w_in and w_out.",
        "with_gradients(lambda x, w_in, w_out: g(jnp.tanh(f(x) @ w_in) @ w_out), x, w_in, w_out, dy)",
    ],
)
def block_by_hand(x, w_in, w_out, dy):
    """Return y = tanh(x @ w_in) @ w_out and its gradients, by f and g, with check_vma=False.

    Args: one device's x and dy float32[B, D], whole; w_in float32[D, F/N]; w_out float32[F/N, D].
    Returns: (y, dx, dw_in, dw_out); each gradient has the shape of its array.
    """
    return with_gradients(lambda x, w_in, w_out: g(jnp.tanh(f(x) @ w_in) @ w_out), x, w_in, w_out, dy)


@exercise.body(
    out_specs=OUT,
    check_vma=True,
    hints=[
        "Which types do x and x @ w_in have: equal on all devices, or varying over tp?",
        "jax.lax.pcast(x, 'tp', to='varying') is f, and jax.lax.psum is g.",
        "y = jax.lax.psum(jnp.tanh(jax.lax.pcast(x, 'tp', to='varying') @ w_in) @ w_out, 'tp')",
    ],
)
def block_by_types(x, w_in, w_out, dy):
    """Return the results of block_by_hand, with check_vma=True and no custom_vjp."""

    def block(x, w_in, w_out):
        x = jax.lax.pcast(x, "tp", to="varying")
        return jax.lax.psum(jnp.tanh(x @ w_in) @ w_out, "tp")

    return with_gradients(block, x, w_in, w_out, dy)


@exercise.number(
    points=0.5,
    unit="MB",
    params={"T": [2048, 3072], "D": [5120, 7168], "X": [4, 8, 16]},
    model="each device sends 2 (X - 1) / X · V bytes in an all-reduce of V bytes; 1 MB is 10^6 bytes",
    hints=[
        "Which collective does JAX add for each place that uses x, and how many places use x?",
        "JAX puts one all-reduce into the forward pass and two into the backward pass.",
        "3 all-reduces of V = 2 · T · D bytes: one for the output, one for each of the two places that use x",
    ],
)
def gated_bytes(T, D, X):
    """A gated block, `psum((silu(x @ w_1) * (x @ w_3)) @ w_2, "tp")`, runs on {{ X }} devices with `check_vma=True`. x is
    bfloat16[{{ T }}, {{ D }}], equal on all devices, and the program has no cast. The program computes the output and the gradients of x and of
    the weights. How many MB does each device send, in the forward and backward pass together?"""
    return 3 * 2 * (X - 1) / X * 2 * T * D


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "L": [24, 32, 48], "T": [4096, 6144], "D": [5120, 7168], "X": [4, 8]},
    model="on a ring an all-reduce takes 2 (X - 1) / X · V / W, with W the both-way bandwidth of a link; nothing runs beside an all-reduce",
    hints=[
        "An attention block is cut like the MLP block, but by heads. How many all-reduces does each block have?",
        "A layer has two blocks, and each block has one all-reduce in each pass.",
        "L layers · 4 all-reduces · 2 · (X − 1) / X · V / W with V = 2 · T · D bytes",
    ],
)
def layers_time(chip, L, T, D, X):
    """A model has {{ L }} layers on a ring of {{ X }} {{ chip }} chips. Each layer has an attention block and an MLP block as above, both
    with f and g. Activations and their gradients are bfloat16[{{ T }}, {{ D }}]. How many ms do the all-reduces of a training step
    take?"""
    return L * 4 * all_reduce_time(2 * T * D, X, chip, model="exact")
