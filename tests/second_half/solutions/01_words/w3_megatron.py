"""# W3 A two-layer block, sharded by columns and by rows, forward and backward

`w_in[D, F]` is sharded by columns and `w_out[F, D]` by rows, so each device has F/N hidden units.

**Task.** Write `block(x, w_in, w_out, dy)`. Compute y = relu(x @ w_in) @ w_out and, by hand, the gradients of
sum(y * dy) with respect to x and both weights.

**Budget.** One all-reduce in the forward pass (of y) and one in the backward pass (of dx). The gradients of the weights
need no communication.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_spec

exercise = Exercise(meshes=[{"tp": 4}, {"tp": 2}], stars=2)
SPECS = (P(), {"x": P(), "w_in": P(None, "tp"), "w_out": P("tp")})


@exercise.task(hints=["Which of the arrays is whole on a device, and which is a part of a sum?"])
def block(x, w_in, w_out, dy, *, mesh):
    """x, dy float32[B, D] on every device, w_in float32[D, F] sharded P(None, 'tp'), w_out float32[F, D] sharded
    P('tp') -> (y, {"x", "w_in", "w_out"}). Each gradient is sharded like its argument.
    """

    def local(x, w_in, w_out, dy):
        before = x @ w_in
        hidden = jnp.maximum(before, 0)
        y = jax.lax.psum(hidden @ w_out, "tp")
        back = (dy @ w_out.T) * (before > 0)
        dx = jax.lax.psum(back @ w_in.T, "tp")
        return y, {"x": dx, "w_in": x.T @ back, "w_out": hidden.T @ dy}

    in_specs = (P(), P(None, "tp"), P("tp"), P())
    out_specs = (P(), {"x": P(), "w_in": P(None, "tp"), "w_out": P("tp")})
    return jax.shard_map(local, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)(x, w_in, w_out, dy)


call = exercise.call(
    block,
    x=normal("B", "D"),
    w_in=normal("D", "F", spec=P(None, "tp")),
    w_out=normal("F", "D", spec=P("tp")),
    dy=normal("B", "D"),
    dims={"B": 6, "D": 10, "F": 12},
    hidden_dims={"B": 5, "D": 9, "F": 20},
    returns=("y", {"x": "dx", "w_in": "dw_in", "w_out": "dw_out"}),
)


@exercise.helper
def on_one_device(x, w_in, w_out, dy):
    """Return y, float64[B, D], and the gradients of x, w_in and w_out."""
    before = x @ w_in
    hidden = np.maximum(before, 0)
    back = (dy @ w_out.T) * (before > 0)
    return hidden @ w_out, {"x": back @ w_in.T, "w_in": x.T @ back, "w_out": hidden.T @ dy}


@exercise.check(call, points=1, public=True)
def forward(seen):
    """y is that of one device"""
    expect_close(seen.out[0], on_one_device(seen.x, seen.w_in, seen.w_out, seen.dy)[0])


@exercise.check(call, points=2, after=forward)
def backward(seen):
    """the gradients are those of one device"""
    expect_close(seen.out[1], on_one_device(seen.x, seen.w_in, seen.w_out, seen.dy)[1])


@exercise.check(call, points=1, after=backward)
def layout(seen):
    """each gradient is sharded like its argument"""
    expect_spec(seen.out, SPECS)


@exercise.check(call, points=1, after=backward)
def traffic(seen):
    """one all-reduce in each pass"""
    expect_collectives(seen, all_reduce={"tp": 2})


def _block(x, w_in, w_out, dy, mesh, grads):
    def local(x, w_in, w_out, dy):
        before = x @ w_in
        hidden = jnp.maximum(before, 0)
        back = (dy @ w_out.T) * (before > 0)
        found = {"x": back @ w_in.T, "w_in": x.T @ back, "w_out": hidden.T @ dy}
        return jax.lax.psum(hidden @ w_out, "tp"), grads(found)

    in_specs = (P(), P(None, "tp"), P("tp"), P())
    out_specs = (P(), {"x": P(), "w_in": P(None, "tp"), "w_out": P("tp")})
    return jax.shard_map(local, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)(x, w_in, w_out, dy)


@exercise.misconception(fails=backward)
def gradient_left_partial(x, w_in, w_out, dy, *, mesh):
    """Each device has the part of dx from its own hidden units. Sum the parts over the devices with a psum."""
    return _block(x, w_in, w_out, dy, mesh, lambda g: g)


@exercise.misconception(fails=backward)
def gradient_summed_twice(x, w_in, w_out, dy, *, mesh):
    """You summed dx twice. After the first psum dx is whole, and the second makes it N times too large."""
    return _block(x, w_in, w_out, dy, mesh, lambda g: g | {"x": jax.lax.psum(jax.lax.psum(g["x"], "tp"), "tp")})


@exercise.misconception(fails=traffic)
def hidden_units_gathered(x, w_in, w_out, dy, *, mesh):
    """You gathered the hidden units. relu works on each unit alone, so each device can use its own units."""

    def local(x, w_in, w_out, dy):
        before = x @ w_in
        hidden = jnp.maximum(before, 0)
        whole = jax.lax.all_gather(hidden, "tp", axis=1, tiled=True)
        first = jax.lax.axis_index("tp") * hidden.shape[1]
        y = jax.lax.psum(jax.lax.dynamic_slice_in_dim(whole, first, hidden.shape[1], 1) @ w_out, "tp")
        back = (dy @ w_out.T) * (before > 0)
        dx = jax.lax.psum(back @ w_in.T, "tp")
        return y, {"x": dx, "w_in": x.T @ back, "w_out": hidden.T @ dy}

    in_specs = (P(), P(None, "tp"), P("tp"), P())
    return jax.shard_map(local, mesh=mesh, in_specs=in_specs, out_specs=SPECS, check_vma=False)(x, w_in, w_out, dy)
