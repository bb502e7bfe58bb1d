"""# G1 What check_vma says, and what it saves

Inside `jax.shard_map` every array has a type that says over which mesh axes its values *vary*: `f32[6]{V:x}` may differ
along x, `f32[6]` is the same on all devices. What is cut over x varies over x; what combines a varying array with
anything varies; `psum` over x makes it the same everywhere. JAX refuses a program in which the types do not fit.

**Task.** It refuses the three functions below, each for another reason. Repair each with as little as possible; leave
`check_vma` on. Their docstrings say what they are to return.

| function | repair |
|---|---|
| `broken_squares` | an `out_specs` that promises what is not so |
| `broken_decay` | a loop that starts with one type and goes on with another: a *cast*, which changes no number |
| `broken_means` | a sum over devices that nobody made |

**Budget.** One all-reduce in each function, and none in its backward pass: `x` is cut, so each device has the whole
gradient of its own rows. This is where `check_vma=False` shows even when all values are right. Without types JAX must
take the result of a psum for N different ones, and adds up N cotangents that are one and the same.

```
   broken_decay   start    zeros        f32[6]        the same everywhere
                  round 1  c / 2 + ...  f32[6]{V:x}   varies: refused
   cast           start    zeros        f32[6]{V:x}   the same numbers
```

**Small case.** Squares of float32[24, 6] on x=4: the all-reduce of 6 numbers sends 2 · 3/4 · 24 = 36 bytes. With
`check_vma=False` the backward pass sends 36 more, and more again for each axis that x is not cut over.

**In real systems**: the error message itself offers `check_vma=False`. It also silences the message about a missing
psum, and then one device's share is taken for the whole.

**Read on.** The JAX documentation on `shard_map`, "Tracking how values vary over manual mesh axes".

Check your work: shardlings check g1_repair
For all exercises of this module: README.md, or shardlings show 07_autodiff
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
    """x float32[B, D] sharded P('x') -> (float32[B] sharded P('x'), the sum of squares of each row;
    float32[D], whole on every device, that of each column)."""
    # TODO: write this function
    raise NotImplementedError("squares")


def decay(x, *, mesh):
    """x float32[T, B, D] sharded P(None, 'x') -> float32[D], whole on every device: the sum over t and all rows b of
    x[t, b] / 2**(T - 1 - t)."""
    # TODO: write this function
    raise NotImplementedError("decay")


def means(x, *, mesh):
    """x float32[B, D] sharded P('x') -> float32[D], whole on every device: the mean of each column."""
    # TODO: write this function
    raise NotImplementedError("means")


# Question loop_time [us]
# Somebody repairs `broken_decay` by a psum *in* the loop, `c / 2 + psum(x[t].sum(0), "x")`, and
# none after it: the types fit, and the values are right. It runs twice on a ring of 16 v5p chips,
# for 16384 and for 1572864 columns of float32, 64 rounds each. How long do the all-reduces take,
# all one after the other?
#
# Answer in us (a bare number), or with a unit.
# Model: an all-reduce on a ring takes its hops of 1 us, X/2 for each of its two phases, or 2 V /
# W, W both directions of a link, whichever is longer.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
loop_time = None  # TODO: your answer
