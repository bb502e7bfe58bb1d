"""# W7 ZeRO-1: a step with sharded optimizer state

Every device has all parameters and a part of the batch. The state of the optimizer is sharded, too: each device updates
its part of the parameters and gathers the other parts.

**Task.** Write `step(params, momentum, x, y)`, and return (params, momentum, loss). Do one step of gradient descent
with momentum, `m = 0.9 m + g`, `p = p - 0.01 m`, for the loss `sum((tanh(x @ a) @ b - y)^2)` over the whole batch.

**Budget.** One reduce-scatter and one all-gather for each parameter, and one all-reduce of the loss. Each device keeps
1/N of the state.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, array, like
from grader.expect import expect_close, expect_collectives, expect_spec

exercise = Exercise(meshes=[{"dp": 4}, {"dp": 2}], stars=3)


@exercise.helper
def small(rng, shape):
    return 0.3 * rng.standard_normal(shape)


CUT = P("dp")


def gathered(p):
    return jax.lax.all_gather(p, "dp", tiled=True)


def scattered(g):
    return jax.lax.psum_scatter(g, "dp", tiled=True)


def one_step(params, momentum, x, y, mesh, *, reduced=scattered, whole=gathered, state=CUT):
    """Do a step. ``reduced`` sums a gradient in the momentum's layout, and ``whole`` gathers a parameter."""

    def local(params, momentum, x, y):
        loss, grads = jax.value_and_grad(lambda p: jnp.sum((jnp.tanh(x @ p["a"]) @ p["b"] - y) ** 2))(params)
        me = jax.lax.axis_index("dp")

        def update(p, m, g):
            m = 0.9 * m + reduced(g)
            if len(m) == len(p):
                return p - 0.01 * m, m
            own = jax.lax.dynamic_slice_in_dim(p, me * len(m), len(m))
            return whole(own - 0.01 * m), m

        new = {name: update(params[name], momentum[name], grads[name]) for name in params}
        params, momentum = ({name: pair[i] for name, pair in new.items()} for i in (0, 1))
        return params, momentum, jax.lax.psum(loss, "dp")

    specs = (P(), state, P("dp"), P("dp"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=(P(), state, P()), check_vma=False)(
        params, momentum, x, y
    )


@exercise.task(
    hints=["What of a gradient does a device need that updates its own rows?", "psum_scatter, update, all_gather."]
)
def step(params, momentum, x, y, *, mesh):
    """params {"a": float32[D, F], "b": float32[F, K]} on every device, momentum like params but sharded P('dp'),
    x float32[B, D] and y float32[B, K] sharded P('dp') -> (params, momentum, loss), with the layouts of the arguments.
    """
    return one_step(params, momentum, x, y, mesh)


call = exercise.call(
    step,
    params={"a": array("D", "F", draw=small), "b": array("F", "K", draw=small)},
    momentum={"a": array("D", "F", draw=small, spec=P("dp")), "b": array("F", "K", draw=small, spec=P("dp"))},
    x=array("B", "D", draw=small, spec=P("dp")),
    y=array("B", "K", draw=small, spec=P("dp")),
    dims={"D": 8, "F": 12, "K": 5, "B": 16},
    hidden_dims={"D": 12, "F": 20, "K": 3, "B": 28},
    returns=(like("params"), like("momentum"), "loss"),
    steps=5,
)


@exercise.helper
def by_hand(params, momentum, x, y):
    """Return (params, momentum, loss) after one step on one device."""
    hidden = np.tanh(x @ params["a"])
    error = hidden @ params["b"] - y
    back = (2 * error @ params["b"].T) * (1 - hidden**2)
    grads = {"a": x.T @ back, "b": 2 * hidden.T @ error}
    momentum = {name: 0.9 * momentum[name] + grads[name] for name in grads}
    return {name: params[name] - 0.01 * momentum[name] for name in grads}, momentum, np.sum(error**2)


@exercise.check(call, points=2, public=True)
def value(seen):
    """each of five steps gives the results of one device"""
    for one in seen.steps:
        expect_close(one.out, by_hand(one.params, one.momentum, one.x, one.y))


@exercise.check(call, points=1, after=value)
def layout(seen):
    """after each step a device has its part of the momentum"""
    for one in seen.steps:
        expect_spec(one.out, (P(), P("dp"), P()))


@exercise.check(call, points=1, after=value)
def traffic(seen):
    """a reduce-scatter and an all-gather for each parameter, an all-reduce of the loss"""
    expect_collectives(seen, reduce_scatter={"dp": 2}, all_gather={"dp": 2}, all_reduce={"dp": 1})


@exercise.misconception(fails=[layout, traffic])
def optimizer_state_replicated(params, momentum, x, y, *, mesh):
    """Every device keeps the whole momentum and updates all parameters. A sharded momentum takes 1/N of the memory."""
    return one_step(params, momentum, x, y, mesh, reduced=lambda g: jax.lax.psum(g, "dp"), state=P())


@exercise.misconception(fails=traffic)
def summed_padded_parameters(params, momentum, x, y, *, mesh):
    """You put your rows of a parameter into zeros and summed over all devices. An all-gather sends half the bytes."""

    def summed(own):
        zeros = jnp.zeros((jax.lax.axis_size("dp") * len(own), own.shape[1]), own.dtype)
        padded = jax.lax.dynamic_update_slice_in_dim(zeros, own, jax.lax.axis_index("dp") * len(own), 0)
        return jax.lax.psum(padded, "dp")

    return one_step(params, momentum, x, y, mesh, whole=summed)


@exercise.misconception(fails=value)
def own_gradient(params, momentum, x, y, *, mesh):
    """You used the gradient of the rows on this device. Sum it over all devices before the update."""

    def own_rows(g):
        size = len(g) // jax.lax.axis_size("dp")
        return jax.lax.dynamic_slice_in_dim(g, jax.lax.axis_index("dp") * size, size)

    return one_step(params, momentum, x, y, mesh, reduced=own_rows)


@exercise.misconception(fails=value)
def mean_over_devices(params, momentum, x, y, *, mesh):
    """You took the mean over the devices. The loss is a sum over the batch, and so is its gradient."""
    size = mesh.shape["dp"]
    return one_step(params, momentum, x, y, mesh, reduced=lambda g: scattered(g) / size)
