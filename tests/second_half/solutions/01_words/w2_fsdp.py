"""# W2 FSDP: gather a layer, use it, drop it, gather it again

Every device keeps a part of every layer. A device gathers a layer just before it needs it, and drops it afterwards.

**Task.** Write `fsdp_loss(ws, x)`. Apply `tanh(x @ w)` for each layer `w`, and return the sum of all squares of the
result. The gradient of a layer is sharded like the layer.

**Budget.** For each layer: one all-gather in the forward pass, one more in the backward pass, and one reduce-scatter of
its gradient. Beside its own parts of layers, gradients and activations, no device holds more than two whole layers at
once. No gather of the forward pass waits for a matmul.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, array
from grader.expect import between, expect_close, expect_collectives, expect_memory, expect_not_waiting, expect_spec

exercise = Exercise(meshes=[{"dp": 4}, {"dp": 8}], stars=3)
LAYERS = 6


@exercise.helper
def small(rng, shape):
    return 0.3 * rng.standard_normal(shape)


@exercise.task(
    hints=[
        "What does JAX keep for the backward pass when you gather inside a layer?",
        "jax.checkpoint around one layer, with the gather inside.",
    ]
)
def fsdp_loss(ws, x, *, mesh):
    """ws, a list of float32[D, D] sharded P('dp'), x float32[B, D] sharded P('dp') -> the loss, one number."""

    def local(ws, x):
        @jax.checkpoint
        def layer(w, x):
            return jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True))

        for w in ws:
            x = layer(w, x)
        return jax.lax.psum(jnp.sum(x**2), "dp")

    return jax.shard_map(local, mesh=mesh, in_specs=(P("dp"), P("dp")), out_specs=P())(ws, x)


call = exercise.call(
    fsdp_loss,
    ws=[array("D", "D", spec=P("dp"), draw=small) for _ in range(LAYERS)],
    x=array("B", "D", spec=P("dp"), draw=small),
    dims={"D": 16, "B": 8},
    hidden_dims={"D": 40, "B": 24},
    wrt=["ws"],
    returns="loss",
)


@exercise.helper
def by_hand(ws, x):
    """Return the loss and the gradients of the layers, on one device."""
    held = [x]
    for w in ws:
        held.append(np.tanh(held[-1] @ w))
    back, grads = 2 * held[-1], []
    for w, a, b in zip(ws[::-1], held[-2::-1], held[:0:-1], strict=True):
        back = back * (1 - b**2)
        grads.insert(0, a.T @ back)
        back = back @ w.T
    return np.sum(held[-1] ** 2), grads


@exercise.check(call, points=2, public=True)
def value(seen):
    """the loss is that of one device"""
    expect_close(seen.out, by_hand(seen.ws, seen.x)[0])


@exercise.check(call, points=2, after=value)
def gradients(seen):
    """the gradients are those of one device, and a device keeps its part of each"""
    expect_close(seen.grads["ws"], by_hand(seen.ws, seen.x)[1])
    expect_spec(seen.grads["ws"], [P("dp")] * LAYERS)


@exercise.check(call, points=1, after=gradients)
def forward(seen):
    """forward: one gather for each layer"""
    expect_collectives(seen.only(backward=False), all_gather={"dp": LAYERS}, all_reduce={"dp": 1})


@exercise.check(call, points=1, after=gradients)
def backward(seen):
    """backward: one gather and one reduce-scatter for each layer"""
    expect_collectives(seen.only(backward=True), all_gather={"dp": LAYERS}, reduce_scatter={"dp": LAYERS})


@exercise.check(call, points=1, after=[forward, backward])
def memory(seen):
    """no device holds more than two whole layers at once"""
    layer, batch, devices = seen.ws[0].size, seen.x.size, seen.mesh["dp"]
    gradients, activations = LAYERS * layer / devices, (LAYERS + 1) * batch / devices
    right = 2 * layer + activations + gradients / 3  # when most gradients exist, few activations are left
    wrong = LAYERS * layer + activations
    expect_memory(seen, at_most=between(4 * right, 4 * wrong), by="program", arguments=False)


@exercise.check(call, points=1, after=[forward, backward])
def ahead(seen):
    """forward: no gather waits for a matmul, so it can overlap with the layer before"""
    expect_not_waiting(seen.only(kind="all_gather", backward=False), "all_gather", on="matmul")


@exercise.misconception(fails=backward)
def kept_what_was_gathered(ws, x, *, mesh):
    """Your backward pass uses the gathered layers of the forward pass, so they stay in memory. Use jax.checkpoint."""

    def local(ws, x):
        for w in ws:
            x = jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True))
        return jax.lax.psum(jnp.sum(x**2), "dp")

    return jax.shard_map(local, mesh=mesh, in_specs=(P("dp"), P("dp")), out_specs=P())(ws, x)


@exercise.misconception(fails=[forward, backward])
def summed_padded_layers(ws, x, *, mesh):
    """You put your rows of a layer into zeros and summed over all devices. An all-gather sends half the bytes."""

    def local(ws, x):
        @jax.checkpoint
        def layer(w, x):
            whole = jnp.zeros((jax.lax.axis_size("dp") * len(w), w.shape[1]), w.dtype)
            padded = jax.lax.dynamic_update_slice_in_dim(whole, w, jax.lax.axis_index("dp") * len(w), 0)
            return jnp.tanh(x @ jax.lax.psum(padded, "dp"))

        for w in ws:
            x = layer(w, x)
        return jax.lax.psum(jnp.sum(x**2), "dp")

    return jax.shard_map(local, mesh=mesh, in_specs=(P("dp"), P("dp")), out_specs=P())(ws, x)


@exercise.misconception(fails=memory)
def gathered_everything_first(ws, x, *, mesh):
    """You gathered all layers first, so every device holds the whole model. Gather each layer just before its use."""

    def local(ws, x):
        @jax.checkpoint
        def model(ws, x):
            for w in [jax.lax.all_gather(w, "dp", tiled=True) for w in ws]:
                x = jnp.tanh(x @ w)
            return x

        return jax.lax.psum(jnp.sum(model(ws, x) ** 2), "dp")

    return jax.shard_map(local, mesh=mesh, in_specs=(P("dp"), P("dp")), out_specs=P())(ws, x)


@exercise.misconception(fails=ahead)
def gathers_when_the_layer_before_is_done(ws, x, *, mesh):
    """Your gather waits for the layer before, so links and cores take turns. Gather while that layer computes."""

    def local(ws, x):
        @jax.checkpoint
        def layer(w, x):
            w, x = jax.lax.optimization_barrier((w, x))
            return jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True))

        for w in ws:
            x = layer(w, x)
        return jax.lax.psum(jnp.sum(x**2), "dp")

    return jax.shard_map(local, mesh=mesh, in_specs=(P("dp"), P("dp")), out_specs=P())(ws, x)


@exercise.misconception(fails=gradients)
def gradient_summed_twice(ws, x, *, mesh):
    """You summed the gradient twice. The reduce-scatter of the backward pass sums over the devices already."""

    @jax.custom_vjp
    def sum_of_gradients(w):
        return w

    sum_of_gradients.defvjp(lambda w: (w, None), lambda _, g: (g * jax.lax.axis_size("dp"),))

    def local(ws, x):
        @jax.checkpoint
        def layer(w, x):
            return jnp.tanh(x @ jax.lax.all_gather(sum_of_gradients(w), "dp", tiled=True))

        for w in ws:
            x = layer(w, x)
        return jax.lax.psum(jnp.sum(x**2), "dp")

    return jax.shard_map(local, mesh=mesh, in_specs=(P("dp"), P("dp")), out_specs=P())(ws, x)


@exercise.misconception(fails=value)
def loss_of_one_device(ws, x, *, mesh):
    """You returned the mean over the devices. The loss is the sum over the whole batch."""
    return fsdp_loss(ws, x, mesh=mesh) / mesh.shape["dp"]
