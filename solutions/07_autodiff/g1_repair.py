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
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import all_reduce_time, latency

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 3}], stars=2)


@exercise.given
def broken_squares(x, *, mesh):
    def local(x):
        return (x**2).sum(1), jax.lax.psum((x**2).sum(0), "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


@exercise.given
def broken_decay(x, *, mesh):
    def local(x):
        start = jnp.zeros(x.shape[2])
        c = jax.lax.fori_loop(0, len(x), lambda t, c: c / 2 + x[t].sum(0), start)
        return jax.lax.psum(c, "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x)


@exercise.given
def broken_means(x, *, mesh):
    return jax.shard_map(lambda x: x.mean(0), mesh=mesh, in_specs=P("x"), out_specs=P())(x)


@exercise.task(
    hints=[
        "Which of the two results is the same on all devices?",
        "out_specs may be a tuple, a spec for each result. The first one is cut as the rows of x are.",
        "out_specs=(P('x'), P())",
    ]
)
def squares(x, *, mesh):
    """x float32[B, D] sharded P('x') -> (float32[B] sharded P('x'), the sum of squares of each row;
    float32[D], whole on every device, that of each column)."""

    def local(x):
        return (x**2).sum(1), jax.lax.psum((x**2).sum(0), "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P()))(x)


@exercise.task(
    hints=[
        "The message names the carry, its type at the start and its type after a round. Which should it be?",
        "Zeros are the same on all devices. Say that they may vary: a cast, which sends nothing.",
        "start = jax.lax.pcast(jnp.zeros(x.shape[2]), 'x', to='varying')",
    ]
)
def decay(x, *, mesh):
    """x float32[T, B, D] sharded P(None, 'x') -> float32[D], whole on every device: the sum over t and all rows b of
    x[t, b] / 2**(T - 1 - t)."""

    def local(x):
        start = jax.lax.pcast(jnp.zeros(x.shape[2]), "x", to="varying")
        c = jax.lax.fori_loop(0, len(x), lambda t, c: c / 2 + x[t].sum(0), start)
        return jax.lax.psum(c, "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x)


@exercise.task(
    hints=[
        "Whose rows are in the mean that a device has made?",
        "All devices have as many rows, so the mean of their means is that of all rows. It takes one collective.",
        "jax.lax.pmean(x.mean(0), 'x')",
    ]
)
def means(x, *, mesh):
    """x float32[B, D] sharded P('x') -> float32[D], whole on every device: the mean of each column."""
    return jax.shard_map(lambda x: jax.lax.pmean(x.mean(0), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(x)


@exercise.number(
    points=0.75,
    unit="us",
    params={"chip": ["v4p", "v5p"], "T": [24, 40, 64], "X": [8, 16], "D": [16384, 32768], "E": [786432, 1572864]},
    model="an all-reduce on a ring takes its hops of 1 us, X/2 for each of its two phases, or 2 V / W, W both directions "
    "of a link, whichever is longer",
    hints=[
        "How many all-reduces does the loop run?",
        "T for each of the two; compare hops and bytes for each size.",
        "T * (max(X * 1e-6, 8 * D / W) + max(X * 1e-6, 8 * E / W))",
    ],
)
def loop_time(chip, T, X, D, E):
    """Somebody repairs `broken_decay` by a psum *in* the loop, `c / 2 + psum(x[t].sum(0), "x")`, and none after it: the types
    fit, and the values are right. It runs twice on a ring of {{ X }} {{ chip }} chips, for {{ D }} and for {{ E }} columns of
    float32, {{ T }} rounds each. How long do the all-reduces take, all one after the other?"""
    return T * sum(max(2 * latency(X), all_reduce_time(4 * n, X, chip)) for n in (D, E))
