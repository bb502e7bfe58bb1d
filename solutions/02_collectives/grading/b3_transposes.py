"""Checks and misconceptions of B3."""

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from b3_transposes import (
    all_gather_t,
    all_reduce_t,
    all_to_all_t,
    exercise,
    fsdp_backward_bytes,
    reduce_scatter_t,
    shift_t,
)
from grader.exercise import Scenario, normal
from grader.expect import Failure, expect_close, expect_collectives

DIMS = {"I": 72, "J": 48}
HIDDEN = {"I": 24, "J": 120}
rows = normal("I", "J", spec=P("x"))
tall = normal(1728, "J", spec=P("x"))
columns = normal("I", "J", spec=P(None, "x"))
gathered = exercise.call(all_gather_t, y=tall, dims={"J": 24}, hidden_dims={"J": 41})
scattered = exercise.call(reduce_scatter_t, y=rows, dims=DIMS, hidden_dims=HIDDEN)
reduced = exercise.call(all_reduce_t, y=rows, dims=DIMS, hidden_dims=HIDDEN)
traded = exercise.call(all_to_all_t, y=columns, dims=DIMS, hidden_dims=HIDDEN)
shifted = exercise.call(shift_t, y=rows, dims=DIMS, hidden_dims=HIDDEN)


@exercise.check(gathered, points=0.25, public=True)
def all_gather_t_value(seen):
    """all_gather_t: ⟨T u, y⟩ = ⟨u, Tᵀ y⟩"""
    blocks = seen.y.reshape(seen.mesh["x"], -1, seen.y.shape[1])
    expect_close(seen.out, blocks.sum(0))


@exercise.check(scattered, points=0.25, public=True)
def reduce_scatter_t_value(seen):
    """reduce_scatter_t: ⟨T u, y⟩ = ⟨u, Tᵀ y⟩"""
    expect_close(seen.out, np.tile(seen.y, (seen.mesh["x"], 1)))


@exercise.check(reduced, points=0.25, public=True)
def all_reduce_t_value(seen):
    """all_reduce_t: ⟨T u, y⟩ = ⟨u, Tᵀ y⟩"""
    blocks = seen.y.reshape(seen.mesh["x"], -1, seen.y.shape[1])
    expect_close(seen.out, np.tile(blocks.sum(0), (seen.mesh["x"], 1)))


@exercise.check(traded, points=0.25, public=True)
def all_to_all_t_value(seen):
    """all_to_all_t: ⟨T u, y⟩ = ⟨u, Tᵀ y⟩"""
    expect_close(seen.out, seen.y)


@exercise.check(shifted, points=0.25, public=True)
def shift_t_value(seen):
    """shift_t: ⟨T u, y⟩ = ⟨u, Tᵀ y⟩"""
    size = seen.y.shape[0] // seen.mesh["x"]
    expect_close(seen.out, np.concatenate([seen.y[size:], np.zeros((size, seen.y.shape[1]))]))


@exercise.helper
def expect_own(seen, **wanted):
    """Require exactly these collectives, and that JAX made none of them by transposing another collective."""
    for c in seen.collectives:
        if c.transposed:
            raise Failure(
                f"line {c.line}: JAX made this {c.kind} by transposing your forward collective. Call the {c.kind} yourself",
                where=f"line {c.line}",
            )
    expect_collectives(seen, **wanted)


@exercise.check(gathered, points=0.25, after=all_gather_t_value)
def all_gather_t_traffic(seen):
    """all_gather_t: one reduce-scatter over x and no other collective"""
    expect_own(seen, reduce_scatter={"x": 1})


@exercise.check(scattered, points=0.25, after=reduce_scatter_t_value)
def reduce_scatter_t_traffic(seen):
    """reduce_scatter_t: one all-gather over x and no other collective"""
    expect_own(seen, all_gather={"x": 1})


@exercise.check(reduced, points=0.25, after=all_reduce_t_value)
def all_reduce_t_traffic(seen):
    """all_reduce_t: one all-reduce over x and no other collective"""
    expect_own(seen, all_reduce={"x": 1})


@exercise.check(traded, points=0.25, after=all_to_all_t_value)
def all_to_all_t_traffic(seen):
    """all_to_all_t: one all-to-all over x and no other collective"""
    expect_own(seen, all_to_all={"x": 1})


@exercise.check(shifted, points=0.25, after=shift_t_value)
def shift_t_traffic(seen):
    """shift_t: one permute over x and no other collective"""
    expect_own(seen, permute={"x": 1})


@exercise.misconception(
    of=all_gather_t,
    fails=all_gather_t_value,
    breaks=["value | ⟨T u, y⟩ = ⟨u, Tᵀ y⟩", "the element gets the *sum* of the copies' cotangents"],
)
def all_gather_t_mean(y):
    """You took the mean. Add the cotangents of the copies. If you want a mean, take it in the loss."""
    return all_gather_t(y) / jax.lax.axis_size("x")


@exercise.misconception(of=all_gather_t, fails=all_gather_t_value, breaks="value | ⟨T u, y⟩ = ⟨u, Tᵀ y⟩")
def all_gather_t_untiled(y):
    """Without tiled=True, jax.lax.psum_scatter needs one row for each device, and removes this dimension. Set
    tiled=True to cut a dimension of any size that X divides."""
    return jax.lax.psum_scatter(y, "x", scatter_dimension=0)


@exercise.misconception(of=all_gather_t, fails=all_gather_t_value, breaks="value | ⟨T u, y⟩ = ⟨u, Tᵀ y⟩")
def all_gather_t_own_rows(y):
    """You kept only your own cotangent of your shard. The other devices used your shard too: add their cotangents of it."""
    size = y.shape[0] // jax.lax.axis_size("x")
    return jax.lax.dynamic_slice_in_dim(y, jax.lax.axis_index("x") * size, size)


@exercise.misconception(
    of=all_gather_t, fails=all_gather_t_traffic, breaks="communication | one collective over x, of the right kind"
)
def all_gather_t_all_reduced(y):
    """You all-reduced and discarded most of the result. A reduce-scatter sends half the bytes."""
    size = y.shape[0] // jax.lax.axis_size("x")
    return jax.lax.dynamic_slice_in_dim(jax.lax.psum(y, "x"), jax.lax.axis_index("x") * size, size)


@exercise.misconception(
    of=all_gather_t, fails=all_gather_t_traffic, breaks="communication | one collective over x, of the right kind"
)
def all_gather_t_by_all_to_all(y):
    """You sent the cotangents by an all-to-all and added them at the owner. A reduce-scatter does both in one step."""
    parts = jax.lax.all_to_all(y, "x", split_axis=0, concat_axis=0, tiled=True)
    return parts.reshape(jax.lax.axis_size("x"), -1, *y.shape[1:]).sum(0)


@exercise.misconception(
    of=all_gather_t, fails=all_gather_t_traffic, breaks="your own collective | you call the collective yourself"
)
def all_gather_t_by_linear_transpose(y):
    """You let JAX transpose the all-gather. Call the collective of the backward pass yourself."""
    block = jax.ShapeDtypeStruct((y.shape[0] // jax.lax.axis_size("x"), *y.shape[1:]), y.dtype)
    return jax.linear_transpose(lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True), block)(y)[0]


@exercise.misconception(
    of=all_reduce_t, fails=all_reduce_t_traffic, breaks="your own collective | you call the collective yourself"
)
def all_reduce_t_by_vjp(y):
    """You let JAX transpose the all-reduce. Call the collective of the backward pass yourself."""
    return jax.vjp(lambda a: jax.lax.psum(a, "x"), y)[1](y)[0]


@exercise.misconception(
    of=reduce_scatter_t, fails=reduce_scatter_t_value, breaks="the element gets the cotangent of the sum, unchanged"
)
def reduce_scatter_t_mean(y):
    """You divided by X. Each term of a sum gets the sum's whole cotangent."""
    return reduce_scatter_t(y) / jax.lax.axis_size("x")


@exercise.misconception(
    of=reduce_scatter_t, fails=reduce_scatter_t_value, breaks="the element gets the cotangent of the sum, unchanged"
)
def reduce_scatter_t_summed(y):
    """You added the cotangents of all devices. Rows that were added into device i's result get device i's cotangent alone: gather the cotangents, and do not add them."""
    return jax.numpy.concatenate([jax.lax.psum(y, "x")] * jax.lax.axis_size("x"))


@exercise.misconception(
    of=reduce_scatter_t, fails=reduce_scatter_t_value, breaks="the element gets the cotangent of the sum, unchanged"
)
def reduce_scatter_t_own_rows(y):
    """You put your own cotangent into zeros. Your block has parts of the sums on all devices: gather the cotangents of all devices."""
    full = jax.numpy.zeros((y.shape[0] * jax.lax.axis_size("x"), y.shape[1]))
    return jax.lax.dynamic_update_slice_in_dim(full, y, jax.lax.axis_index("x") * y.shape[0], axis=0)


@exercise.misconception(of=reduce_scatter_t, fails=reduce_scatter_t_traffic, breaks="of the right kind, and no other")
def reduce_scatter_t_padded(y):
    """You put your cotangent into an array of zeros and all-reduced the array. An all-gather gives the same result with half the bytes."""
    full = jax.numpy.zeros((y.shape[0] * jax.lax.axis_size("x"), y.shape[1]))
    here = jax.lax.axis_index("x") * y.shape[0]
    return jax.lax.psum(jax.lax.dynamic_update_slice_in_dim(full, y, here, axis=0), "x")


@exercise.misconception(of=all_reduce_t, fails=all_reduce_t_value, breaks="value | ⟨T u, y⟩ = ⟨u, Tᵀ y⟩")
def all_reduce_t_mean(y):
    """You took the mean. Every device's result depends on your block with factor one: add all the cotangents."""
    return jax.lax.pmean(y, "x")


@exercise.misconception(of=all_reduce_t, fails=all_reduce_t_value)
def all_reduce_t_identity(y):
    """You passed the cotangent through. This is right only if all devices share one cotangent. Here each device has its own cotangent, and all results depend on your block: add the cotangents."""
    return y


@exercise.misconception(
    of=all_reduce_t, fails=all_reduce_t_traffic, breaks="communication | one collective over x, of the right kind"
)
def all_reduce_t_gathered(y):
    """You gathered all cotangents and added them on every device. An all-reduce adds in transit and sends fewer bytes."""
    return jax.lax.all_gather(y, "x").sum(0)


@exercise.misconception(of=reduce_scatter_t, fails=reduce_scatter_t_value, breaks="value | ⟨T u, y⟩ = ⟨u, Tᵀ y⟩")
def reduce_scatter_t_untiled(y):
    """You stacked the cotangents along a new dimension. Set tiled=True to join them along the rows."""
    return jax.lax.all_gather(y, "x", axis=0)


@exercise.misconception(
    of=all_to_all_t, fails=all_to_all_t_value, breaks="its cotangent comes back from the element's new device"
)
def all_to_all_t_untiled(y):
    """Without tiled=True, jax.lax.all_to_all needs one row for each device along split_axis, and removes this
    dimension. Set tiled=True to cut a dimension of any size that X divides."""
    return jax.lax.all_to_all(y, "x", split_axis=0, concat_axis=1)


@exercise.misconception(
    of=all_to_all_t, fails=all_to_all_t_value, breaks="its cotangent comes back from the element's new device"
)
def all_to_all_t_by_reshape(y):
    """Your reshape puts each received chunk into rows of its own. The chunks belong side by side: join them along the columns, as tiled=True with concat_axis=1 does."""
    n = jax.lax.axis_size("x")
    chunks = jax.lax.all_to_all(y.reshape(n, -1, y.shape[1]), "x", split_axis=0, concat_axis=0)
    return chunks.reshape(y.shape[0] // n, -1)


@exercise.misconception(
    of=all_to_all_t, fails=all_to_all_t_value, breaks="its cotangent comes back from the element's new device"
)
def all_to_all_t_forwards(y):
    """You repeated the forward all-to-all. In the backward pass, split the rows and join the columns."""
    return jax.lax.all_to_all(y, "x", split_axis=1, concat_axis=0, tiled=True)


@exercise.misconception(of=all_to_all_t, fails=all_to_all_t_traffic, breaks="of the right kind, and no other")
def all_to_all_t_gathered(y):
    """You gathered everything and kept 1/X of it. The cotangent of a chunk goes to one device only: use an all-to-all."""
    size = y.shape[0] // jax.lax.axis_size("x")
    whole = jax.lax.all_gather(y, "x", axis=1, tiled=True)
    return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * size, size)


@exercise.misconception(
    of=shift_t, fails=shift_t_value, breaks="its cotangent comes back from the element's new device"
)
def shift_t_forwards(y):
    """You shifted in the direction of the forward pass. A block that went from i to i + 1 gets its cotangent from i + 1."""
    return jax.lax.ppermute(y, "x", [(i, i + 1) for i in range(jax.lax.axis_size("x") - 1)])


@exercise.misconception(of=shift_t, fails=shift_t_value, breaks="device 0 receives zeros")
def shift_t_round(y):
    """You closed the ring. In the forward pass the last device sent nothing, so its block has no effect and its cotangent is zero."""
    n = jax.lax.axis_size("x")
    return jax.lax.ppermute(y, "x", [((i + 1) % n, i) for i in range(n)])


@exercise.misconception(of=shift_t, fails=shift_t_traffic, breaks="of the right kind, and no other")
def shift_t_by_gathering(y):
    """You gathered all blocks and kept one. A permute sends each block only to the device that needs it."""
    blocks = jax.lax.all_gather(y, "x")
    return jax.numpy.concatenate([blocks[1:], 0 * blocks[:1]])[jax.lax.axis_index("x")]


@exercise.misconception(of=fsdp_backward_bytes)
def fsdp_backward_as_forward(D, F, X):
    """You counted 2 bytes, as in the forward pass. The backward pass sends float32: 4 bytes."""
    return 2 * D * F * (X - 1) / X


@exercise.misconception(of=fsdp_backward_bytes)
def fsdp_backward_all_reduce(D, F, X):
    """You counted an all-reduce. Each device keeps the gradient of its own shard only. A reduce-scatter sends half the bytes."""
    return 2 * 4 * D * F * (X - 1) / X


@exercise.misconception(of=fsdp_backward_bytes)
def fsdp_backward_shard(D, F, X):
    """You counted one chunk. A reduce-scatter sends one chunk in each of its X - 1 steps."""
    return 4 * D * F / X


exercise.scenario(fsdp_backward_bytes, lambda D, F, X: Scenario(mesh={"x": X}, arrays=[((D, F), P("x"))]))
