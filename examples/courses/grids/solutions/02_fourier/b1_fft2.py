"""# B1 A Fourier transform of a grid

A two-dimensional transform is a transform of every row, then of every column. A device that holds whole rows can transform them alone.
Before the columns, the grid has to change hands: every device sends a block to every other device.

```
    rows                    all-to-all             whole columns
    x0   a a | b b          x0 sends b             x0   a a    x1   b b
    x1   c c | d d          x1 sends c             x0   c c    x1   d d
```

**Write** `fft2(z, *, mesh)`.

| | shape | layout |
|---|---|---|
| `z` | complex64[I, J] | `P("x", None)`: each device holds I/X rows |
| returns | complex64[I, J], the transform over both dimensions | `P(None, "x")`: each device holds J/X columns |

**What is checked**

| check | rule |
|---|---|
| value | equal to `jnp.fft.fft2(z)` |
| layout | sharded `P(None, "x")` |
| communication | one all-to-all over x and no other collective |

**Symbols.** I: rows. J: columns. X: devices along x.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_spec

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}])


@exercise.task(
    hints=[
        "Which of the two dimensions can a device transform before it communicates?",
        "jax.lax.all_to_all with tiled=True cuts one dimension and joins the blocks along the other one.",
        "jax.lax.all_to_all(rows, 'x', split_axis=1, concat_axis=0, tiled=True), between two transforms.",
    ]
)
def fft2(z, *, mesh):
    """The Fourier transform of Z over both dimensions.

    Args: z is complex64[I, J] sharded P('x', None); mesh has an axis 'x'.
    Returns: complex64[I, J] sharded P(None, 'x').
    """

    def local(rows):
        columns = jax.lax.all_to_all(jnp.fft.fft(rows, axis=1), "x", split_axis=1, concat_axis=0, tiled=True)
        return jnp.fft.fft(columns, axis=0)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(z)


spectrum = exercise.call(
    fft2,
    z=normal("I", "J", spec=P("x", None), dtype="complex64"),
    dims={"I": 12, "J": 20},
    hidden_dims={"I": 28, "J": 36},
)


@exercise.check(spectrum, points=2, public=True)
def fft2_value(seen):
    """fft2: the transform over rows and columns"""
    expect_close(seen.out, np.fft.fft2(seen.z), terms=seen.dims["I"] * seen.dims["J"])


@exercise.check(spectrum, points=1, after=fft2_value)
def fft2_layout(seen):
    """fft2: each device holds whole columns"""
    expect_spec(seen.out, P(None, "x"))


@exercise.check(spectrum, points=1, after=fft2_value)
def fft2_traffic(seen):
    """fft2: one all-to-all over x and no other collective"""
    expect_collectives(seen, all_to_all={"x": 1})


@exercise.misconception(fails=fft2_value, breaks="equal to `jnp.fft.fft2(z)`")
def fft2_of_rows(z, *, mesh):
    """You transformed the rows only: the columns are still to be done."""

    def local(rows):
        return jax.lax.all_to_all(jnp.fft.fft(rows, axis=1), "x", split_axis=1, concat_axis=0, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(z)


@exercise.misconception(fails=fft2_value)
def fft2_of_blocks(z, *, mesh):
    """You transformed each device's block: a column's parts are on several devices, so bring them together first."""

    def local(block):
        return jax.lax.all_to_all(jnp.fft.fft2(block), "x", split_axis=1, concat_axis=0, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(z)


@exercise.misconception(fails=fft2_value)
def fft2_backwards(z, *, mesh):
    """You transformed back along the columns: there the sign of the exponent differs, and the result is divided by I."""

    def local(rows):
        columns = jax.lax.all_to_all(jnp.fft.fft(rows, axis=1), "x", split_axis=1, concat_axis=0, tiled=True)
        return jnp.fft.ifft(columns, axis=0)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(z)


@exercise.misconception(fails=fft2_value)
def fft2_other_sign(z, *, mesh):
    """You used exp(+2 pi i k n / N) in both directions: the forward transform has a minus in the exponent."""
    return jnp.conj(fft2(jnp.conj(z), mesh=mesh))


@exercise.misconception(
    fails=[fft2_layout, fft2_traffic],
    breaks=['sharded `P(None, "x")`', "one all-to-all over x and no other collective"],
)
def fft2_gathered(z, *, mesh):
    """You gathered the whole grid on every device: each device needs its own columns only."""

    def local(rows):
        return jnp.fft.fft2(jax.lax.all_gather(rows, "x", axis=0, tiled=True))

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(z)


@exercise.alternative()
def fft2_by_matrix(z, *, mesh):
    """The transform of the columns as a matrix: the same all-to-all, and another way to compute."""

    def local(rows):
        columns = jax.lax.all_to_all(jnp.fft.fft(rows, axis=1), "x", split_axis=1, concat_axis=0, tiled=True)
        k = jnp.arange(len(columns))
        turns = jnp.exp(-2j * jnp.pi * (k[:, None] * k % len(columns)) / len(columns))
        return jnp.matmul(turns.astype(z.dtype), columns, precision="highest")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(z)
