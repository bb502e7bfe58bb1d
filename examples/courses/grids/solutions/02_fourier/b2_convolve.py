"""# B2 A convolution, and its gradients

A convolution is a product of Fourier transforms. The transform of a grid cut by rows ends cut by columns (B1), and the way back ends
cut by rows again. The product in the middle needs no communication if the filter is cut by columns, too.

```
    z, by rows -- fft2 --> by columns -- times h -- ifft2 --> by rows
```

**Write** `convolve(z, h, *, mesh)`: transform `z`, multiply by the filter `h`, and transform back. The grader takes gradients with `jax.vjp`.

| | shape | layout |
|---|---|---|
| `z` | complex64[I, J] | `P("x", None)` |
| `h` | complex64[I, J], the filter's transform | `P(None, "x")` |
| returns | complex64[I, J] | `P("x", None)` |

**What is checked**

| check | rule |
|---|---|
| value | equal to `jnp.fft.ifft2(jnp.fft.fft2(z) * h)` |
| gradients | equal to those of the unsharded function, of `z` and of `h` |
| communication | two all-to-alls over x in the forward pass, two in the backward pass, and no other collective |

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
        "Which layout does the transform of B1 end in? Is the filter cut in that way?",
        "Transform rows, all_to_all, transform columns, multiply; then the same steps back.",
        "The way back: all_to_all with split_axis=0 and concat_axis=1, between ifft along axis 0 and ifft along axis 1.",
    ]
)
def convolve(z, h, *, mesh):
    """Z with the filter H applied: the inverse transform of fft2(Z) * H.

    Args: z is complex64[I, J] sharded P('x', None), h is complex64[I, J] sharded P(None, 'x'); mesh has an axis 'x'.
    Returns: complex64[I, J] sharded P('x', None).
    """

    def local(rows, h):
        columns = jax.lax.all_to_all(jnp.fft.fft(rows, axis=1), "x", split_axis=1, concat_axis=0, tiled=True)
        filtered = jnp.fft.ifft(jnp.fft.fft(columns, axis=0) * h, axis=0)
        return jnp.fft.ifft(jax.lax.all_to_all(filtered, "x", split_axis=0, concat_axis=1, tiled=True), axis=1)

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None))(z, h)


grids = {
    "z": normal("I", "J", spec=P("x", None), dtype="complex64"),
    "h": normal("I", "J", spec=P(None, "x"), dtype="complex64"),
}
DIMS, HIDDEN = {"I": 12, "J": 20}, {"I": 28, "J": 36}
convolved = exercise.call(convolve, **grids, dims=DIMS, hidden_dims=HIDDEN)
differentiated = exercise.call(
    convolve,
    **grids,
    wrt=("z", "h"),
    cotangent=normal("I", "J", spec=P("x", None), dtype="complex64"),
    dims=DIMS,
    hidden_dims=HIDDEN,
)


@exercise.check(convolved, points=1, public=True)
def convolve_value(seen):
    """convolve: the filter applied to Z"""
    expect_close(seen.out, np.fft.ifft2(np.fft.fft2(seen.z) * seen.h), terms=seen.dims["I"] * seen.dims["J"])


@exercise.check(convolved, points=1, after=convolve_value)
def convolve_traffic(seen):
    """convolve: cut by rows, two all-to-alls over x and no other collective"""
    expect_spec(seen.out, P("x", None))
    expect_collectives(seen, all_to_all={"x": 2})


@exercise.check(differentiated, points=1, after=convolve_value)
def convolve_gradients(seen):
    """convolve: the gradients of Z and of H"""
    terms = seen.dims["I"] * seen.dims["J"]
    expect_close(seen.grads["z"], np.fft.fft2(np.fft.ifft2(seen.cotangent) * seen.h), terms=terms)
    expect_close(seen.grads["h"], np.fft.ifft2(seen.cotangent) * np.fft.fft2(seen.z), terms=terms)


@exercise.check(differentiated, points=1, after=[convolve_gradients, convolve_traffic])
def convolve_backward_traffic(seen):
    """convolve: two all-to-alls forward and two backward"""
    expect_collectives(seen, all_to_all={"x": 4})


@exercise.misconception(fails=convolve_value, breaks="equal to `jnp.fft.ifft2(jnp.fft.fft2(z) * h)`")
def convolve_conjugated(z, h, *, mesh):
    """You multiplied by the conjugate of the filter: that is a correlation."""
    return convolve(z, jnp.conj(h), mesh=mesh)


@exercise.misconception(fails=convolve_value)
def convolve_unscaled(z, h, *, mesh):
    """You used fft for the way back: it has the other sign in the exponent and is not divided by I J."""

    def local(rows, h):
        columns = jax.lax.all_to_all(jnp.fft.fft(rows, axis=1), "x", split_axis=1, concat_axis=0, tiled=True)
        filtered = jnp.fft.fft(jnp.fft.fft(columns, axis=0) * h, axis=0)
        return jnp.fft.fft(jax.lax.all_to_all(filtered, "x", split_axis=0, concat_axis=1, tiled=True), axis=1)

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None))(z, h)


@exercise.misconception(fails=convolve_gradients, breaks="equal to those of the unsharded function")
def convolve_fixed_filter(z, h, *, mesh):
    """You stopped the gradient of the filter: it is an argument like Z."""
    return convolve(z, jax.lax.stop_gradient(h), mesh=mesh)


@exercise.misconception(fails=convolve_traffic, breaks="and no other collective")
def convolve_back_and_forth(z, h, *, mesh):
    """You brought the transform back to rows and then to columns again: the filter is cut by columns already."""

    def local(rows, h):
        columns = jax.lax.all_to_all(jnp.fft.fft(rows, axis=1), "x", split_axis=1, concat_axis=0, tiled=True)
        again = jax.lax.all_to_all(jnp.fft.fft(columns, axis=0), "x", split_axis=0, concat_axis=1, tiled=True)
        filtered = jax.lax.all_to_all(again, "x", split_axis=1, concat_axis=0, tiled=True) * h
        back = jax.lax.all_to_all(jnp.fft.ifft(filtered, axis=0), "x", split_axis=0, concat_axis=1, tiled=True)
        return jnp.fft.ifft(back, axis=1)

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None))(z, h)


@exercise.misconception(fails=convolve_backward_traffic)
def convolve_recomputed(z, h, *, mesh):
    """The backward pass transforms Z again, with an all-to-all: keep the transform from the forward pass."""
    return jax.checkpoint(lambda z, h: convolve(z, h, mesh=mesh))(z, h)
