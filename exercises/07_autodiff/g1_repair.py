"""# G1 Which mistakes check_vma finds, and which bytes it saves

Inside `jax.shard_map` the type of an array lists the mesh axes along which its values *vary*. `f32[6]{V:x}` may differ
from device to device along x; `f32[6]` is equal on all devices. A cut input varies. The result of an operation varies
if an operand varies. The result of `psum` over x does not vary along x. JAX refuses a program whose types do not fit.

```
   broken_decay   start    zeros        f32[6]        equal on all devices
                  round 1  c / 2 + ...  f32[6]{V:x}   varies: refused
   with a cast    start    zeros        f32[6]{V:x}   the same numbers
```

**Write** `squares`, `decay` and `means`. Each of them repairs one of the functions below, which JAX refuses. Change as
little as you can.

| | the fault of its broken version | argument | returns |
|---|---|---|---|
| `squares` | `out_specs` say that a varying result is equal on all devices | float32[B, D] `P("x")` | float32[B] `P("x")`; float32[D] whole |
| `decay` | the type of a loop's carry changes | float32[T, B, D] `P(None, "x")` | float32[D] whole |
| `means` | a sum over devices is missing | float32[B, D] `P("x")` | float32[D] whole |

A *cast* makes a type varying, and changes no number.

**What is checked**

| check | rule | small case |
|---|---|---|
| `squares`: value | the sums of rows are cut over x, and the sums of columns are whole | |
| `decay`, `means`: value | the result is whole on every device; the result and its gradient are right | |
| each: what is sent | one all-reduce over x of D numbers, none in the backward pass | 36 bytes |

Leave `check_vma` on. With `check_vma=False`, `decay` has the right values but fails a check. Without `check_vma` JAX
does not know that the result of a `psum` is equal on all devices. So the backward pass adds N equal cotangents with a
second all-reduce.

**Symbols.** T rounds, B rows, D columns. N (in the question X) devices along x.

**Small case.** x is float32[24, 6] on x=4. The all-reduce of 6 numbers (24 bytes) sends 2 · 3/4 · 24 = 36 bytes.

Check your work: shardlings check g1_repair
Notes on all exercises of this module: see README.md, or run shardlings show 07_autodiff
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def broken_squares(x, *, mesh):
    def local(x):
        return (x**2).sum(1), jax.lax.psum((x**2).sum(0), "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def broken_decay(x, *, mesh):
    def local(x):
        start = jnp.zeros(x.shape[2])
        c = jax.lax.fori_loop(0, len(x), lambda t, c: c / 2 + x[t].sum(0), start)
        return jax.lax.psum(c, "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x)


def broken_means(x, *, mesh):
    return jax.shard_map(lambda x: x.mean(0), mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def squares(x, *, mesh):
    """Return the sum of squares of each row, and of each column.

    Args: x is float32[B, D] sharded P('x').
    Returns: (float32[B] sharded P('x'), one sum for each row; float32[D], whole on every device, one for each column).
    """
    # TODO: write this function
    raise NotImplementedError("squares")


def decay(x, *, mesh):
    """Return the sum over t and all rows b of x[t, b] / 2**(T - 1 - t).

    Args: x is float32[T, B, D] sharded P(None, 'x').
    Returns: float32[D], whole on every device.
    """
    # TODO: write this function
    raise NotImplementedError("decay")


def means(x, *, mesh):
    """Return the mean of each column.

    Args: x is float32[B, D] sharded P('x').
    Returns: float32[D], whole on every device.
    """
    # TODO: write this function
    raise NotImplementedError("means")


# Question loop_time [us]
# A student repairs `broken_decay` with a psum *in* the loop, `c / 2 + psum(x[t].sum(0), "x")`,
# and no psum after the loop. The types fit, and the values are right. The program runs twice on a
# ring of 8 v5p chips, for 5120 and for 262144 columns of float32, 48 rounds each. How long do the
# all-reduces of both runs take together, one after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: an all-reduce on a ring takes the longer of two times: X hops of 1 us (X/2 hops in each
# of two phases), and 2 V / W, with W the both-way bandwidth of a link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; hop 1 us; table 2026-11,
# from How To Scale Your Model of 2025-02-04.
loop_time = None  # TODO: your answer


# ## Going further
#
# **Without types.** With `check_vma=False` the backward pass of the small case sends 36 bytes more. The backward pass
# sends still more for each mesh axis that does not cut the array `x`.
#
# **In real systems.** JAX's error message itself offers `check_vma=False`. This setting also silences the message about a
# missing psum. JAX then takes one device's share of the sum for the whole sum.
#
# **Read on.** The JAX documentation on `shard_map`, "Tracking how values vary over manual mesh axes".
