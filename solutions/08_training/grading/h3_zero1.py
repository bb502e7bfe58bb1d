"""H3: checks, misconceptions and alternatives."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario, array, axis, integers, like
from grader.expect import Failure, expect_close, expect_equal, expect_spec, expect_traffic, needed
from h3_zero1 import OPT, exercise, zero1_held, zero1_step


@exercise.helper
def small(rng, shape):
    return 0.5 * rng.standard_normal(shape)


@exercise.helper
def zeros(rng, shape):
    return np.zeros(shape)


@exercise.helper
def near_or_far(rng, shape):
    """Draw target outputs: far from the result in some steps, so that the gradient is clipped, and near it in other steps."""
    return rng.choice([0.2, 5]) * rng.standard_normal(shape)


call = exercise.call(
    zero1_step,
    params={"a": array("D", "F", draw=small), "c": array("F", draw=small), "b": array("F", "K", draw=small)},
    opt={"m": array("S", draw=zeros, spec=P("dp")), "v": array("S", draw=zeros, spec=P("dp")), "t": integers(0, 1)},
    x=array("B", "D", draw=small, spec=P("dp")),
    y=array("B", "K", draw=near_or_far, spec=P("dp")),
    returns=(like("params"), like("opt"), "loss"),
    steps=5,
    dims={"D": 7, "F": 9, "K": 5, "S": 132, "B": 3 * axis("dp")},
    hidden_dims={"D": 11, "F": 9, "K": 3, "S": 156, "B": 5 * axis("dp")},
)


@exercise.helper
def loss_and_grads(params, x, y):
    """Return the loss of all rows and its gradients, on one device."""
    hidden = np.tanh(x @ params["a"] + params["c"])
    off = hidden @ params["b"] - y
    back = 2 * off / off.size
    inner = (back @ params["b"].T) * (1 - hidden**2)
    return np.mean(off**2), {"a": x.T @ inner, "c": inner.sum(0), "b": hidden.T @ back}


@exercise.helper
def adamw_on_one_device(steps):
    """Yield the right parameters and loss of each step; this function keeps the moments."""
    m = v = dict.fromkeys(steps[0].params, 0.0)
    for t, step in enumerate(steps, 1):
        loss, grads = loss_and_grads(step.params, step.x, step.y)
        norm = np.sqrt(sum(np.sum(g**2) for g in grads.values()))
        grads = {n: g / max(1, norm) for n, g in grads.items()}
        m = {n: 0.9 * m[n] + 0.1 * g for n, g in grads.items()}
        v = {n: 0.99 * v[n] + 0.01 * g**2 for n, g in grads.items()}
        new = {}
        for n, p in step.params.items():
            new[n] = p - 0.05 * (m[n] / (1 - 0.9**t) / (np.sqrt(v[n] / (1 - 0.99**t)) + 0.01) + 0.1 * p)
        yield new, loss


@exercise.check(call, points=0.5, public=True)
def zero1_loss(seen):
    """zero1_step: each of five steps returns the loss before the step"""
    for step in seen.steps:
        expect_close(step.out[2], loss_and_grads(step.params, step.x, step.y)[0])


@exercise.check(call, points=0.25, public=True)
def zero1_direction(seen):
    """zero1_step: the first step changes the parameters in about AdamW's direction"""
    first, second, (due, _) = *seen.steps[:2], next(adamw_on_one_device(seen.steps))
    expect_spec(first.out[0], P())
    changes = [np.concatenate([(new[n] - p).ravel() for n, p in first.params.items()]) for new in (second.params, due)]
    lengths = [np.linalg.norm(change) for change in changes]
    if not changes[0] @ changes[1] >= 0.5 * lengths[0] * lengths[1] > 0:
        raise Failure("the first step changes the parameters in another direction than AdamW")


@exercise.check(call, points=1.25, public=True, after=zero1_direction)
def zero1_value(seen):
    """zero1_step: after each of five steps the parameters equal those of AdamW on one device"""
    for step, (params, _) in zip(seen.steps, adamw_on_one_device(seen.steps), strict=True):
        expect_close(step.out[0], params)
        expect_equal(step.out[1]["t"], step.opt["t"] + 1)


@exercise.check(call, points=1, public=True, after=zero1_direction)
def zero1_layout(seen):
    """zero1_step: after each step a device holds 1/N of the moments and all parameters"""
    for step in seen.steps:
        expect_spec(step.out, (P(), OPT, P()))


@exercise.check(call, points=1, after=zero1_direction)
def zero1_traffic(seen):
    """zero1_step: a device sends no more bytes than in an all-reduce of the gradient"""
    n, F = seen.mesh["dp"], seen.dims["F"]
    number = 2 * (n - 1) / n * 4
    right = number * ((seen.dims["D"] + 1) * F + (F + 1) * seen.dims["K"])
    padded = number * seen.dims["S"]
    expect_traffic(seen, at_most=needed(right, 1.5 * padded, at=padded + 32))  # wrong: an all-reduce and a gather


# -- right in other ways -----------------------------------------------------------------------


def update(p, m, v, g, t, *, decay=0.1):
    """Return p, m and v after an update by AdamW. All arguments have one shape."""
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
    return p - 0.05 * (m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.99**t)) + 0.01) + decay * p), m, v


def mapped(local, mesh, opt=None):
    opt = opt or OPT
    specs = (P(), opt, P("dp"), P("dp"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=(P(), opt, P()), check_vma=False)


def loss_and_own_grads(params, x, y, devices):
    """Return the part of the loss that comes from these rows, and the gradient of this part."""

    def loss_of(params):
        out = jnp.tanh(x @ params["a"] + params["c"]) @ params["b"]
        return jnp.sum((out - y) ** 2) / (devices * y.size)

    return jax.value_and_grad(loss_of)(params)


@exercise.alternative(of=zero1_step)
def zero1_by_leaf(params, opt, x, y, *, mesh):
    """Each tensor is padded, scattered and gathered separately. A device joins its parts of the tensors' moments."""

    def local(params, opt, x, y):
        n, me, t = jax.lax.axis_size("dp"), jax.lax.axis_index("dp"), opt["t"] + 1
        loss, grads = loss_and_own_grads(params, x, y, n)

        def padded(p):
            return jnp.pad(p.ravel(), (0, -p.size % n)).reshape(n, -1)

        grads = {k: jax.lax.psum_scatter(padded(g), "dp") for k, g in grads.items()}
        norm = jnp.sqrt(jax.lax.psum(sum(jnp.sum(g**2) for g in grads.values()), "dp"))
        new, at, ms, vs = {}, 0, opt["m"], opt["v"]
        for k, g in grads.items():
            here = slice(at, at := at + len(g))
            own, m, v = update(padded(params[k])[me], ms[here], vs[here], g / jnp.maximum(1, norm), t)
            ms, vs = ms.at[here].set(m), vs.at[here].set(v)
            whole = jax.lax.all_gather(own, "dp").ravel()[: params[k].size]
            new[k] = whole.reshape(params[k].shape)
        return new, {"m": ms, "v": vs, "t": t}, jax.lax.psum(loss, "dp")

    return mapped(local, mesh)(params, opt, x, y)


@exercise.alternative(of=zero1_step)
def zero1_by_exchange(params, opt, x, y, *, mesh):
    """The program writes the reduce-scatter as an all-to-all and a sum. Device k updates part N − 1 − k."""

    def local(params, opt, x, y):
        n, me = jax.lax.axis_size("dp"), jax.lax.axis_index("dp")
        loss, grads = loss_and_own_grads(params, x, y, n)
        flat, unravel = ravel_pytree((params, loss))

        def rows(f):
            return jnp.pad(f, (0, n * len(opt["m"]) - len(f))).reshape(n, -1)

        came = jax.lax.all_to_all(rows(ravel_pytree(grads)[0])[::-1], "dp", 0, 0)
        g = came.sum(0)
        g = g * jax.lax.rsqrt(jnp.maximum(1, jax.lax.psum(jnp.vdot(g, g), "dp")))
        p, m, v = update(rows(flat[:-1])[n - 1 - me], opt["m"], opt["v"], g, opt["t"] + 1)
        flat = flat.at[:-1].set(jax.lax.all_gather(p, "dp")[::-1].ravel()[: len(flat) - 1])
        params, loss = unravel(flat)
        return params, {"m": m, "v": v, "t": opt["t"] + 1}, jax.lax.psum(loss, "dp")

    return mapped(local, mesh)(params, opt, x, y)


@exercise.alternative(of=zero1_step)
def zero1_mean_afterwards(params, opt, x, y, *, mesh):
    """The loss is the mean over a device's own rows. The program divides sums over devices by N."""

    def local(params, opt, x, y):
        n, me = jax.lax.axis_size("dp"), jax.lax.axis_index("dp")
        loss, grads = loss_and_own_grads(params, x, y, 1)
        (flat, unravel), size = ravel_pytree(params), len(opt["m"])

        def padded(f):
            return jnp.pad(f, (0, n * size - len(f)))

        g = jax.lax.psum_scatter(padded(ravel_pytree(grads)[0]), "dp", tiled=True) / n
        norm = jax.lax.psum(jnp.sum(g * g), "dp") ** 0.5
        g = jnp.where(norm > 1, g / norm, g)
        p, m, v = update(
            jax.lax.dynamic_slice(padded(flat), (me * size,), (size,)), opt["m"], opt["v"], g, opt["t"] + 1
        )
        params = unravel(jax.lax.all_gather(p, "dp", tiled=True)[: len(flat)])
        return params, opt | {"m": m, "v": v, "t": opt["t"] + 1}, jax.lax.pmean(loss, "dp")

    return mapped(local, mesh)(params, opt, x, y)


# -- what goes wrong ---------------------------------------------------------------------------


def scattered(g):
    return jax.lax.psum_scatter(g, "dp", tiled=True)


def clipped(g):
    return g / jnp.maximum(1, jnp.sqrt(jax.lax.psum(jnp.sum(g**2), "dp")))


def own(whole, size):
    return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("dp") * size, size)


def as_usual(p, m, v, g, t):
    return *update(own(p, len(m)), m, v, g, t), t


def decayed(decay):
    """Return the change of a step with this decay of the weights."""
    return lambda p, m, v, g, t: (*update(own(p, len(m)), m, v, g, t, decay=decay), t)


def total(loss):
    return jax.lax.psum(loss, "dp")


TABLE = "acb"  # the parameters in the order of the statement's table; ravel_pytree sorts them by name


def zero1(
    mesh, *, summed=scattered, clip=clipped, change=as_usual, gathered=None, scale=1, told=total, opt=None, order="abc"
):
    """Make a step with the given parts changed. ``gathered`` takes the new part and the padded parameters."""
    parts = 1 if opt else mesh.shape["dp"]

    def local(params, opt, x, y):
        n = jax.lax.axis_size("dp")
        loss, grads = loss_and_own_grads(params, x, y, n)
        flat, unravel = ravel_pytree([params[k] for k in order])
        room = parts * len(opt["m"])

        def padded(f):
            return jnp.pad(f, (0, room - len(f)))

        g = clip(summed(scale * padded(ravel_pytree([grads[k] for k in order])[0])))
        p, m, v, t = change(padded(flat), opt["m"], opt["v"], g, opt["t"] + 1)
        flat_new = gathered(p, padded(flat)) if gathered else jax.lax.all_gather(p, "dp", tiled=True)
        new = dict(zip(order, unravel(flat_new[: len(flat)]), strict=True))
        return new, {"m": m, "v": v, "t": t}, told(loss)

    return mapped(local, mesh, opt)


@exercise.misconception(fails=zero1_traffic, breaks="at most 2 (N−1)/N · 4S bytes")
def zero1_all_reduced(params, opt, x, y, *, mesh):
    """You sent 1.5 times as many bytes as needed: you all-reduced the gradient, or gathered moments too. A reduce-scatter sums only the part that each device keeps, and moments stay on their devices."""

    def summed(g):
        return own(jax.lax.psum(g, "dp"), len(g) // jax.lax.axis_size("dp"))

    return zero1(mesh, summed=summed)(params, opt, x, y)


@exercise.misconception(fails=zero1_traffic, breaks="at most 2 (N−1)/N · 4S bytes")
def zero1_state_gathered(params, opt, x, y, *, mesh):
    """You gathered the moments and updated all parameters on every device. Keep only the moments of your own part, and gather the parameters instead."""

    def change(p, m, v, g, t):
        def gather(part):
            return jax.lax.all_gather(part, "dp", tiled=True)

        new, all_m, all_v = update(p, gather(m), gather(v), gather(g), t)
        return own(new, len(m)), own(all_m, len(m)), own(all_v, len(m)), t

    return zero1(mesh, change=change)(params, opt, x, y)


@exercise.misconception(fails=[zero1_layout, zero1_traffic], breaks="a device holds 1/N of the moments")
def zero1_state_on_every_device(params, opt, x, y, *, mesh):
    """Every device keeps all moments and updates all parameters. That is plain data parallelism, with N times as much memory for moments. Update only 1/N of the elements on each device."""
    whole = {"m": P(), "v": P(), "t": P()}

    def norm(g):
        return g / jnp.maximum(1, jnp.sqrt(jnp.sum(g**2)))

    def change(p, m, v, g, t):
        return (*update(p, m, v, g, t), t)

    def summed(g):
        return jax.lax.psum(g, "dp")

    step = zero1(mesh, summed=summed, clip=norm, change=change, gathered=lambda p, _: p, opt=whole)
    return step(params, opt, x, y)


def half_by_half(p, m, v, g, t):
    mine = jax.lax.dynamic_slice_in_dim(p, jax.lax.axis_index("dp") * (len(p) // 2), len(m))
    return *update(mine, m, v, g, t), t


@exercise.misconception(
    fails=zero1_direction, breaks="the first step changes the parameters in about AdamW's direction"
)
def zero1_for_two_devices(params, opt, x, y, *, mesh):
    """On some devices, the part of the parameters and the part of the gradient are not the same elements. Pad both at the end to S numbers. The part of the device with index i starts at element i times S/N. Take N from the mesh."""
    return zero1(mesh, change=half_by_half)(params, opt, x, y)


@exercise.misconception(form_of=zero1_for_two_devices)
def zero1_for_two_devices_in_table_order(params, opt, x, y, *, mesh):
    """Like `zero1_for_two_devices`, but the parameters are in the order of the table."""
    return zero1(mesh, change=half_by_half, order=TABLE)(params, opt, x, y)


def clipped_alone(g):
    return g / jnp.maximum(1, jnp.sqrt(jnp.sum(g**2)))


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_clipped_by_own_norm(params, opt, x, y, *, mesh):
    """You clipped by the norm of your own part. Clip by the norm of all elements: add up the squares over the devices first."""
    return zero1(mesh, clip=clipped_alone)(params, opt, x, y)


@exercise.misconception(form_of=zero1_clipped_by_own_norm)
def zero1_clipped_by_own_norm_in_table_order(params, opt, x, y, *, mesh):
    """Like `zero1_clipped_by_own_norm`, but the parameters are in the order of the table."""
    return zero1(mesh, clip=clipped_alone, order=TABLE)(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_clipped_by_sum_of_norms(params, opt, x, y, *, mesh):
    """You added the norms of the devices' parts. Add the squares over the devices first, and then take the root."""

    def clip(g):
        return g / jnp.maximum(1, jax.lax.psum(jnp.sqrt(jnp.sum(g**2)), "dp"))

    return zero1(mesh, clip=clip)(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_clipped_by_the_square(params, opt, x, y, *, mesh):
    """You divided by the square of the norm. The norm is the root of the sum of all squares."""
    return zero1(mesh, clip=lambda g: g / jnp.maximum(1, jax.lax.psum(jnp.sum(g**2), "dp")))(params, opt, x, y)


@exercise.misconception(form_of=zero1_clipped_by_the_square)
def zero1_clipped_by_the_own_square(params, opt, x, y, *, mesh):
    """Like `zero1_clipped_by_the_square`, with the squares of the device's own part."""
    return zero1(mesh, clip=lambda g: g / jnp.maximum(1, jnp.sum(g**2)))(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_never_clipped(params, opt, x, y, *, mesh):
    """You did not clip the gradient. If its norm over all elements is above 1, divide the gradient by that norm."""
    return zero1(mesh, clip=lambda g: g)(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_clipped_before_summing(params, opt, x, y, *, mesh):
    """You clipped each device's gradient and summed afterwards. Sum over all rows first, then clip the sum to norm 1."""

    def summed(g):
        return scattered(g / jnp.maximum(1, jnp.sqrt(jnp.sum(g**2))))

    return zero1(mesh, summed=summed, clip=lambda g: g)(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_norm_over_copies(params, opt, x, y, *, mesh):
    """You added the squares over all axes of the mesh. Devices along tp hold copies: count every element once."""

    def clip(g):
        return g / jnp.maximum(1, jnp.sqrt(jax.lax.psum(jnp.sum(g**2), mesh.axis_names)))

    return zero1(mesh, clip=clip)(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_decays_what_is_new(params, opt, x, y, *, mesh):
    """You took the decay from the weights after the update. AdamW takes it from the weights before the update."""

    def change(p, m, v, g, t):
        new, m, v = update(own(p, len(m)), m, v, g, t, decay=0)
        return new - 0.05 * 0.1 * new, m, v, t

    return zero1(mesh, change=change)(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_decays_in_the_gradient(params, opt, x, y, *, mesh):
    """You added the decay to the gradient. Adam then divides the decay by the root of the second moment. AdamW applies the decay to the weights directly."""

    def change(p, m, v, g, t):
        p = own(p, len(m))
        return *update(p, m, v, g + 0.1 * p, t, decay=0), t

    return zero1(mesh, change=change)(params, opt, x, y)


@exercise.misconception(form_of=zero1_decays_in_the_gradient)
def zero1_decays_before_the_clip(params, opt, x, y, *, mesh):
    """Like `zero1_decays_in_the_gradient`, but the norm of the gradient includes the decay."""

    def change(p, m, v, g, t):
        p = own(p, len(m))
        return *update(p, m, v, clipped(g + 0.1 * p), t, decay=0), t

    return zero1(mesh, clip=lambda g: g, change=change)(params, opt, x, y)


@exercise.misconception(
    fails=zero1_direction, breaks="the first step changes the parameters in about AdamW's direction"
)
def zero1_decays_in_the_first_moment(params, opt, x, y, *, mesh):
    """You added the decay to the gradient in m. Adam then divides the decay by the root of the second moment. AdamW applies the decay to the weights directly."""

    def change(p, m, v, g, t):
        p = own(p, len(m))
        return *update(p, m + 0.1 / 0.9 * 0.1 * p, v, g, t, decay=0), t

    return zero1(mesh, change=change)(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_decays_in_both(params, opt, x, y, *, mesh):
    """You applied the decay twice: in the gradient and in the weights. AdamW applies it to the weights only."""

    def change(p, m, v, g, t):
        p = own(p, len(m))
        return *update(p, m, v, g + 0.1 * p, t), t

    return zero1(mesh, change=change)(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_decay_scaled_twice(params, opt, x, y, *, mesh):
    """You multiplied the decay by 0.05 twice. The step is 0.05 (u + 0.1 p), so the decay is 0.05 · 0.1 p."""
    return zero1(mesh, change=decayed(0.1 * 0.05))(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_decay_unscaled(params, opt, x, y, *, mesh):
    """You did not multiply the decay by 0.05. The step is 0.05 (u + 0.1 p), so the decay is 0.05 · 0.1 p."""
    return zero1(mesh, change=decayed(0.1 / 0.05))(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_counts_tensors(params, opt, x, y, *, mesh):
    """Your t counts updates of tensors. It must count steps: all tensors of a step have the same t."""
    return zero1(mesh, change=lambda p, m, v, g, t: as_usual(p, m, v, g, t + len(params) - 1))(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_corrected_as_at_first(params, opt, x, y, *, mesh):
    """You correct the moments of the second step with t = 1: always with 1, or with the number of the step before. The first step is then right, and later steps are wrong. Correct with the number of the current step: opt t + 1."""

    def change(p, m, v, g, t):
        return *update(own(p, len(m)), m, v, g, 1), t

    return zero1(mesh, change=change)(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_sum_of_means(params, opt, x, y, *, mesh):
    """Your gradient has norm 1 in every step, even where it should be smaller. Either your gradient is too large: you summed the gradients of the devices' own means, or divided by the number of rows alone. The mean is over the rows of all devices, and over the columns. Or you divide by the norm even if the norm is below 1: divide by max(1, norm)."""
    return zero1(mesh, scale=mesh.shape["dp"])(params, opt, x, y)


@exercise.misconception(
    fails=zero1_direction, breaks="the first step changes the parameters in about AdamW's direction"
)
def zero1_uphill(params, opt, x, y, *, mesh):
    """You added the update to the parameters. Subtract it: p - 0.05 (u + 0.1 p)."""

    def change(p, m, v, g, t):
        p = own(p, len(m))
        new, m, v = update(p, m, v, g, t)
        return 2 * p - new, m, v, t

    return zero1(mesh, change=change)(params, opt, x, y)


@exercise.misconception(fails=[zero1_loss, zero1_value], breaks="over all rows and columns")
def zero1_mean_of_own_rows(params, opt, x, y, *, mesh):
    """You summed the devices' own means, so loss and gradient are N times too large. Divide by the number of all rows, or by N afterwards."""
    n = mesh.shape["dp"]
    return zero1(mesh, scale=n, told=lambda loss: n * total(loss))(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_norm_of_own_gradients(params, opt, x, y, *, mesh):
    """You added up the squares of the devices' own gradients, before their sum. Take the norm of the summed gradient: add up the squares of the parts after the reduce-scatter."""

    def summed(g):
        return scattered(g) / jnp.maximum(1, jnp.sqrt(total(jnp.sum(g**2))))

    return zero1(mesh, summed=summed, clip=lambda g: g)(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_clipped_by_element(params, opt, x, y, *, mesh):
    """You clipped each element to at most 1. Divide all elements by the norm of the whole gradient, if it is above 1."""
    return zero1(mesh, clip=lambda g: jnp.clip(g, -1, 1))(params, opt, x, y)


@exercise.misconception(fails=zero1_loss, breaks="the loss before the step")
def zero1_own_loss(params, opt, x, y, *, mesh):
    """Each device returns the loss of its own rows. Sum the parts of the loss over the devices, as you do for the gradient."""
    return zero1(mesh, told=lambda loss: mesh.shape["dp"] * loss)(params, opt, x, y)


@exercise.misconception(form_of=zero1_own_loss, breaks="the loss before the step")
def zero1_own_part_of_loss(params, opt, x, y, *, mesh):
    """Like `zero1_own_loss`, but the device's sum is divided by the number of all rows."""
    return zero1(mesh, told=lambda loss: loss)(params, opt, x, y)


@exercise.misconception(fails=zero1_loss, breaks="the loss before the step")
def zero1_loss_after_the_step(params, opt, x, y, *, mesh):
    """You returned the loss of the new parameters. Return the loss before the step: value_and_grad computes both at once."""
    new, opt, _ = zero1(mesh)(params, opt, x, y)
    return new, opt, jnp.mean((jnp.tanh(x @ new["a"] + new["c"]) @ new["b"] - y) ** 2)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_without_decay(params, opt, x, y, *, mesh):
    """You left out the decay of the weights. Add 0.1 p to u before you multiply by 0.05."""
    return zero1(mesh, change=decayed(0))(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_uncorrected(params, opt, x, y, *, mesh):
    """You used m and v without their corrections. Divide m by 1 - 0.9^t and v by 1 - 0.99^t."""

    def change(p, m, v, g, t):
        return *update(own(p, len(m)), m, v, g, 1e6)[:3], t

    return zero1(mesh, change=change)(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_added_under_the_root(params, opt, x, y, *, mesh):
    """You added 0.01 under the square root. Add 0.01 to the root."""

    def change(p, m, v, g, t):
        p, m, v = own(p, len(m)), 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        return p - 0.05 * (m / (1 - 0.9**t) / jnp.sqrt(v / (1 - 0.99**t) + 0.01) + 0.1 * p), m, v, t

    return zero1(mesh, change=change)(params, opt, x, y)


@exercise.misconception(fails=zero1_value, breaks="parameters and t are those of AdamW")
def zero1_t_unchanged(params, opt, x, y, *, mesh):
    """You returned t unchanged. Return the number of steps done, this step included."""
    return zero1(mesh, change=lambda *args: (*as_usual(*args)[:3], args[-1] - 1))(params, opt, x, y)


@exercise.misconception(fails=[zero1_direction, zero1_loss], breaks="Step t is")
def zero1_corrected_by_old_t(params, opt, x, y, *, mesh):
    """You corrected the moments with the t of the previous step. In the first step t is 1. With t = 0 the correction divides by 0."""

    def change(p, m, v, g, t):
        return *update(own(p, len(m)), m, v, g, t - 1)[:3], t

    return zero1(mesh, change=change)(params, opt, x, y)


@exercise.misconception(fails=zero1_traffic, breaks="at most 2 (N−1)/N · 4S bytes")
def zero1_all_reduced_for_the_norm(params, opt, x, y, *, mesh):
    """You all-reduced the gradient for its norm as well. Add up the squares of each device's part, and sum one number over the devices."""

    def summed(g):
        total = jax.lax.psum(g, "dp")
        return scattered(g) / jnp.maximum(1, jnp.sqrt(jnp.sum(total**2)))

    return zero1(mesh, summed=summed, clip=lambda g: g)(params, opt, x, y)


def own_part(g):
    return own(g, len(g) // jax.lax.axis_size("dp"))


@exercise.misconception(fails=zero1_value, breaks="after each of five steps, parameters and t are those of AdamW")
def zero1_own_gradient(params, opt, x, y, *, mesh):
    """Each device cut its part out of its own gradient. The other devices' rows also contribute to these elements: sum over the devices."""
    return zero1(mesh, summed=own_part)(params, opt, x, y)


@exercise.misconception(form_of=zero1_own_gradient)
def zero1_own_gradient_in_table_order(params, opt, x, y, *, mesh):
    """Like `zero1_own_gradient`, but the parameters are in the order of the table."""
    return zero1(mesh, summed=own_part, order=TABLE)(params, opt, x, y)


def own_part_new(p, before):
    return jax.lax.dynamic_update_slice_in_dim(before, p, jax.lax.axis_index("dp") * len(p), 0)


@exercise.misconception(fails=[zero1_direction, zero1_loss], breaks="whole on every device")
def zero1_never_gathered(params, opt, x, y, *, mesh):
    """Each device returns parameters in which only its own part is new. The next step needs all new parameters on every device: gather the parts."""
    return zero1(mesh, gathered=own_part_new)(params, opt, x, y)


@exercise.misconception(form_of=zero1_never_gathered)
def zero1_never_gathered_in_table_order(params, opt, x, y, *, mesh):
    """Like `zero1_never_gathered`, but the parameters are in the order of the table."""
    return zero1(mesh, gathered=own_part_new, order=TABLE)(params, opt, x, y)


# -- questions ---------------------------------------------------------------------------------


def parameters(V, D, L):
    return V * D + L * 12 * D**2


@exercise.misconception(of=zero1_held)
def held_by_whole_tensors(V, D, L, N):
    """You gave each chip whole tensors, so one chip holds all moments of the embedding. Cut elements, not a list of tensors."""
    return 2 * parameters(V, D, L) + 8 * V * D


@exercise.misconception(of=zero1_held)
def held_cut_altogether(V, D, L, N):
    """You cut the weights as well. That is ZeRO-3 (FSDP). Here every chip holds all weights."""
    return 10 * parameters(V, D, L) / N


@exercise.misconception(of=zero1_held)
def held_without_cutting(V, D, L, N):
    """You cut nothing. Your answer is the memory of plain data parallelism."""
    return 10 * parameters(V, D, L)


@exercise.misconception(of=zero1_held)
def held_with_one_moment(V, D, L, N):
    """You counted one moment. Adam has two moments, of 4 bytes each."""
    return 2 * parameters(V, D, L) + 4 * parameters(V, D, L) / N


@exercise.misconception(of=zero1_held)
def held_with_float32_weights(V, D, L, N):
    """Either you counted four bytes for each weight, or you counted the gradients as well. The weights are bfloat16, two bytes each, and the question leaves gradients out."""
    return 4 * parameters(V, D, L) + 8 * parameters(V, D, L) / N


@exercise.misconception(of=zero1_held)
def held_in_gib(V, D, L, N):
    """You counted in GiB, 2^30 bytes. 1 GB is 10^9 bytes."""
    return zero1_held.fn(V, D, L, N) * 1e9 / 2**30


@exercise.misconception(of=zero1_held)
def held_without_embedding(V, D, L, N):
    """You left out the embedding of V · D parameters."""
    return 2 * parameters(0, D, L) + 8 * parameters(0, D, L) / N


exercise.scenario(
    zero1_held,
    lambda V, D, L, N: Scenario(
        mesh={"dp": N}, arrays=[((V, D), P("dp")), ((L, 12 * D * D), (None, "dp"))], holds=zero1_held.fn(V, D, L, N)
    ),
)
