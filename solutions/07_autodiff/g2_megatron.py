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
    """(y, dx, dw_in, dw_out) for y = block(x, w_in, w_out), dy being the gradient that comes back to y."""
    y, back = jax.vjp(block, x, w_in, w_out)
    return (y, *back(dy))


@exercise.body(
    out_specs=P("tp"),
    hints=[
        "Forwards nothing happens. What does JAX do backwards unless you say otherwise?",
        "Give a function that returns x its own rule: forwards (x, None), backwards the psum of the cotangent.",
        "same = jax.custom_vjp(lambda x: x); same.defvjp(lambda x: (x, None), lambda _, ct: (jax.lax.psum(ct, 'tp'),))",
    ],
)
def f(x):
    """Forwards x itself; backwards the sum over 'tp' of the devices' cotangents. One device's block in, one out."""

    @jax.custom_vjp
    def same(x):
        return x

    same.defvjp(lambda x: (x, None), lambda _, ct: (jax.lax.psum(ct, "tp"),))
    return same(x)


@exercise.body(
    out_specs=P("tp"),
    hints=[
        "The result is the same on all devices, and so is its cotangent: it is whole already.",
        "The rule of f turned round: psum forwards, the cotangent as it is backwards.",
        "summed.defvjp(lambda y: (jax.lax.psum(y, 'tp'), None), lambda _, ct: (ct,))",
    ],
)
def g(y):
    """Forwards the sum over 'tp' of the devices' blocks; backwards the cotangent itself. One device's block in, one out."""

    @jax.custom_vjp
    def summed(y):
        return jax.lax.psum(y, "tp")

    summed.defvjp(lambda y: (jax.lax.psum(y, "tp"), None), lambda _, ct: (ct,))
    return summed(y)


@exercise.body(
    out_specs=OUT,
    check_vma=False,
    hints=[
        "Where does x enter the part that differs from device to device, and where does that part end?",
        "f where x enters, g where the parts of y leave; with_gradients takes a function of x, w_in and w_out.",
        "with_gradients(lambda x, w_in, w_out: g(jnp.tanh(f(x) @ w_in) @ w_out), x, w_in, w_out, dy)",
    ],
)
def block_by_hand(x, w_in, w_out, dy):
    """y = tanh(x @ w_in) @ w_out and its gradients, by f and g, with check_vma=False.

    Args: one device's x and dy float32[B, D], whole; w_in float32[D, F/tp]; w_out float32[F/tp, D].
    Returns: (y, dx, dw_in, dw_out), each as large as what it is of.
    """
    return with_gradients(lambda x, w_in, w_out: g(jnp.tanh(f(x) @ w_in) @ w_out), x, w_in, w_out, dy)


@exercise.body(
    out_specs=OUT,
    check_vma=True,
    hints=[
        "Which types have x and x @ w_in: the same everywhere, or varying over tp?",
        "jax.lax.pcast(x, 'tp', to='varying') is f, and jax.lax.psum is g.",
        "y = jax.lax.psum(jnp.tanh(jax.lax.pcast(x, 'tp', to='varying') @ w_in) @ w_out, 'tp')",
    ],
)
def block_by_types(x, w_in, w_out, dy):
    """The same, with check_vma=True: no custom_vjp."""

    def block(x, w_in, w_out):
        x = jax.lax.pcast(x, "tp", to="varying")
        return jax.lax.psum(jnp.tanh(x @ w_in) @ w_out, "tp")

    return with_gradients(block, x, w_in, w_out, dy)


@exercise.number(
    points=0.5,
    unit="MB",
    params={"T": [2048, 3072], "D": [5120, 7168], "X": [4, 8, 16]},
    model="an all-reduce of V bytes sends 2 (X - 1) / X V from each device; 1 MB is 10^6 bytes",
    hints=["Which collective does JAX put where x is used, and how often?", "One forwards, two backwards."],
)
def gated_bytes(T, D, X):
    """A gated block, `psum((silu(x @ w_1) * (x @ w_3)) @ w_2, "tp")`, over {{ X }} devices with `check_vma=True`; x is
    bfloat16[{{ T }}, {{ D }}], the same on all of them, and nobody wrote a cast. Only its output and the gradients of x and the
    weights are asked. How many MB does each device send, forwards and backwards together?"""
    return 3 * 2 * (X - 1) / X * 2 * T * D


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "L": [24, 40, 64], "T": [4096, 6144], "D": [5120, 7168], "X": [4, 8]},
    model="a ring; an all-reduce takes 2 V / W, W both directions of a link; nothing runs beside it",
    hints=[
        "An attention block is cut like this one, by heads.",
        "Two blocks a layer, one all-reduce each way in each.",
    ],
)
def layers_time(chip, L, T, D, X):
    """{{ L }} layers, each with an attention block and a block as above, both with f and g, on a ring of {{ X }} {{ chip }} chips.
    Activations and their gradients are bfloat16[{{ T }}, {{ D }}]. How many ms do the all-reduces of a training step take?"""
    return L * 4 * all_reduce_time(2 * T * D, X, chip)
