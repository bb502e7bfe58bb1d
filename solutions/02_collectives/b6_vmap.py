"""# B6 vmap over a sharded batch

The given `centre` subtracts the mean of each column from one matrix `A[I_X, J]`. x cuts the rows, so `centre` needs one
small all-reduce. Now there is a batch of matrices, and a second axis, y, cuts the batch. `jax.vmap` adds a dimension to
the specs of the `shard_map` in `centre`. The specs treat this dimension as whole, unless you name the mesh axis that
cuts it.

```
   A[B_Y, I_X, J], B=4, on x0 and x1

                        spmd_axis_name="y"     without it
   y0: examples 0 1     psum over x of 0 1     y0 and y1 swap all they have,
   y1: examples 2 3     psum over x of 2 3     then both psum 0 1 2 3
```

**Write** `centre_batch(a, *, mesh)`. It centres every matrix of the batch.

| | shape | layout |
|---|---|---|
| `a` | float32[B, I, J] | `P("y", "x")`: a block is [B/Y, I/X, J] |
| returns | float32[B, I, J] | `P("y", "x")` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| in each matrix the mean of each column is subtracted | | |
| y still cuts the batch, and x still cuts the rows of its matrices | `P("y", "x")` | |
| one all-reduce over x for the B/Y examples of a device; the batch is not gathered | no other collective; a device sends at most 2·(X − 1)/X · 4·B·J/Y bytes | 360 bytes |

The grader refuses one all-reduce per example, although these all-reduces together send no more bytes than one
all-reduce of all means.

**Symbols.** B: examples. I, J: rows and columns of a matrix. X, Y: sizes of the mesh axes. V: bytes of the whole array
that a ring gathers. W: both-way bandwidth of a link.

**Small case.** float32[12, 8, 10] on x=4, y=2: a device holds [6, 2, 10]. The means of its 6 examples have 6 · 10 · 4 =
240 bytes. The all-reduce sends 2 · 3/4 · 240 = 360 bytes. Without `spmd_axis_name`, each device first sends its 480
bytes along y. Then it sends 720 bytes along x, for the means of all 12 examples.

## Going further

`jax.vmap(f, spmd_axis_name="y")` names the axis that cuts the batch. Without this argument the spec says that the batch
is whole, although y cuts it. The compiler then makes the batch whole: it gathers the batch, and all devices along y do
the same work.

**In real systems.** MaxText's pipeline maps one layer over its stages with `spmd_axis_name`: each stage is one example.

**Read on.** JAX's notebook "Manual parallelism with shard_map".
"""

from functools import partial

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_spec, expect_traffic, needed
from grader.hardware import all_gather_time, latency

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 2, "y": 3}], stars=2, extension=True)


@exercise.given
def centre(a, *, mesh):
    """Return one matrix A[I_X, J] minus the means of its columns."""

    def centred(a):
        return a - jax.lax.pmean(a.mean(0), "x")

    return jax.shard_map(centred, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


@exercise.task(
    hints=[
        "Which transformation makes a function of one example a function of a batch?",
        "Bind mesh with functools.partial, apply jax.vmap to the bound `centre`, and tell vmap which mesh axis cuts the batch.",
        "jax.vmap(partial(centre, mesh=mesh), spmd_axis_name='y')(a)",
    ]
)
def centre_batch(a, *, mesh):
    """Centre every matrix of A[B_Y, I_X, J].

    Args: a is float32[B, I, J] sharded P('y', 'x'); mesh has the axes 'x' and 'y'.
    Returns: float32[B, I, J] sharded P('y', 'x').
    """
    return jax.vmap(partial(centre, mesh=mesh), spmd_axis_name="y")(a)


call = exercise.call(
    centre_batch,
    a=normal("B", "I", "J", spec=P("y", "x")),
    dims={"B": 12, "I": 8, "J": 10},
    hidden_dims={"B": 36, "I": 12, "J": 7},
)


@exercise.check(call, points=1, public=True)
def centre_batch_value(seen):
    """centre_batch: in each matrix the mean of each column is subtracted"""
    expect_close(seen.out, seen.a - seen.a.mean(1, keepdims=True))


@exercise.check(call, points=0.5, public=True, after=centre_batch_value)
def centre_batch_layout(seen):
    """centre_batch: y still cuts the batch, and x still cuts the rows of its matrices"""
    expect_spec(seen.out, P("y", "x"))


@exercise.check(call, points=0.5, after=centre_batch_value)
def centre_batch_traffic(seen):
    """centre_batch: one all-reduce over x for the B/Y examples of a device; the batch is not gathered"""
    expect_collectives(seen, all_reduce={"x": 1})
    B, _, J = seen.a.shape
    X, Y = seen.mesh["x"], seen.mesh["y"]
    right = 2 * (X - 1) * (4 * B * J // Y) / X
    wrong = Y * right + (Y - 1) * 4 * seen.a.size / (X * Y)  # a wrong program gathers the whole batch
    expect_traffic(seen, at_most=needed(right, wrong))


@exercise.number(
    points=0.5,
    unit="us",
    params={
        "chip": ["v4p", "v5p"],
        "B": [384, 768],
        "I": [2048, 4096],
        "J": [3072, 5120],
        "X": [8, 16],
        "Y": [4, 12],
    },
    model="ring (the axis wraps around), bandwidth only: an all-gather takes V / W, where W is the bandwidth of a link in both directions",
    hints=[
        "Along which axis is the batch gathered, and which part of the array does each ring hold?",
        "The gather goes over y. Each ring along y holds one block of rows, so V is not the whole array.",
        "time = V / W with V = (bytes of the whole array) / X",
    ],
)
def batch_gather_time(chip, B, I, J, X, Y):
    """`A[B_Y, I_X, J]` is bfloat16[{{ B }}, {{ I }}, {{ J }}] on {{ chip }} chips, x={{ X }}, y={{ Y }}. Without `spmd_axis_name`,
    `vmap` makes the compiler all-gather the batch over y. How long does this all-gather take?"""
    return all_gather_time(2 * B * I * J / X, Y, chip)


@exercise.number(
    points=0.5,
    unit="us",
    params={"B": [96, 240], "X": [4, 8, 16], "Y": [2, 6, 12]},
    model="latency only: 1 us per hop; an all-reduce on a ring of N takes 2 ⌊N/2⌋ hops, and the all-reduces run one after the other",
    hints=[
        "How many examples does one device have, and over which axis does each all-reduce run?",
        "y cuts the batch, so a device has B / Y examples. Each all-reduce goes round the ring of x.",
        "(B / Y) all-reduces · 2 · ⌊X / 2⌋ hops · 1 us",
    ],
)
def looped_latency(B, X, Y):
    """A mesh has rings of x={{ X }} and y={{ Y }}, and y cuts a batch of B={{ B }} examples. Each device loops over its own
    examples and runs a tiny all-reduce over x for each example. How long do the all-reduces of one device take?"""
    return B / Y * 2 * latency(X)
