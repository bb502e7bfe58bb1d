"""H10: checks, misconceptions and alternatives."""

import jax
import jax.numpy as jnp
import numpy as np

from grader.exercise import Scenario, array, normal
from grader.expect import expect_close, expect_only, expect_traffic, needed
from grader.hardware import all_reduce_time, latency, reduce_scatter_time
from h10_gather_tp import (
    COLUMNS,
    exercise,
    gather_tp,
    slicing_costs,
)

# -- questions and checks ----------------------------------------------------------------------


@exercise.helper
def weights(rng, shape):
    """Draw weights so small that a matmul's results are about 1."""
    return 1.5 * rng.standard_normal(shape) / shape[1] ** 0.5


DATA = {
    "x": normal("B", "D"),
    "ws": array("L", "D", "D", spec=COLUMNS, draw=weights),
    "dy": normal("B", "D"),
    "returns": ("y", "dx", "dws"),
}
call = exercise.call(gather_tp, **DATA, dims={"B": 6, "D": 12, "L": 3}, hidden_dims={"B": 7, "D": 36, "L": 4})


@exercise.helper
def on_one_device(x, ws, dy):
    """Return y, dx and dws in float64."""
    held = [x]
    for w in ws:
        held.append(np.tanh(held[-1] @ w))
    dws = np.zeros_like(ws)
    for layer in range(len(ws))[::-1]:
        back = dy * (1 - held[layer + 1] ** 2)
        dws[layer] = held[layer].T @ back
        dy = back @ ws[layer].T
    return held[-1], dy, dws


@exercise.check(call, points=0.5, public=True)
def gather_forward(seen):
    """y equals the y of one device"""
    expect_close(seen.out[0], on_one_device(seen.x, seen.ws, seen.dy)[0])


@exercise.check(call, points=0.75, public=True)
def gather_dws(seen):
    """the gradients of the weights equal those of one device"""
    expect_close(seen.out[2], on_one_device(seen.x, seen.ws, seen.dy)[2])


@exercise.check(call, points=0.75)
def gather_dx(seen):
    """dx equals the dx of one device, and is whole on every device"""
    expect_close(seen.out[1], on_one_device(seen.x, seen.ws, seen.dy)[1])


# With two layers, one collective too many is at least half of all collectives of its kind.
two = exercise.call(gather_tp, **DATA, dims={"B": 6, "D": 12, "L": 2}, hidden_dims={"B": 7, "D": 36, "L": 2})


@exercise.check(two, points=1, after=[gather_forward, gather_dws, gather_dx])
def gather_traffic(seen):
    """at most the bytes of L all-gathers, L - 1 reduce-scatters and one all-reduce of [B, D] over tp; a scatter and a
    gather may replace the all-reduce"""
    expect_close(seen.out, on_one_device(seen.x, seen.ws, seen.dy))
    expect_only(seen, "all_gather", "reduce_scatter", "all_reduce")
    n, layers = seen.mesh["tp"], seen.dims["L"]
    one = 4 * seen.x.size * (n - 1) / n
    reduced = seen.only(kind="all_reduce")
    expect_traffic(reduced, at_most=needed(0, 2 * layers * one, at=2 * one))  # wrong: an all-reduce in each layer
    # A program may replace the all-reduce by one more gather and one more scatter.
    more = max(0, 1 - seen.sends(reduced.collectives).most / (2 * one))
    kinds = {
        "all_gather": (layers, 2 * layers - 1),  # wrong: the backward pass gathers all h, except the last, again
        "reduce_scatter": (layers - 1, layers),  # wrong: dy is scattered, too
    }
    for kind, (right, wrong) in kinds.items():
        budget = needed(right * one, (wrong + more) * one, at=(right + more) * one)
        expect_traffic(seen.only(kind=kind), at_most=budget)


# -- misconceptions ----------------------------------------------------------------------------


def gather(columns):
    return jax.lax.all_gather(columns, "tp", axis=1, tiled=True)


def scatter(parts):
    return jax.lax.psum_scatter(parts, "tp", scatter_dimension=1, tiled=True)


def total(parts):
    return jax.lax.psum(parts, "tp")


def cut(whole, device=None):
    """Return a device's own columns."""
    width = whole.shape[1] // jax.lax.axis_size("tp")
    first = (jax.lax.axis_index("tp") if device is None else device) * width
    return jax.lax.dynamic_slice_in_dim(whole, first, width, axis=1)


def written(
    x, ws, dy, own=cut, scatter=scatter, whole=total, slope=lambda h: 1 - h**2, own_h=cut,
    forward=lambda h, w: gather(jnp.tanh(h @ w)), used=0, slope_at=1,
):  # fmt: skip
    """Run the solution with given changes: how dy is cut, how {dh} and dx are reduced, the derivative of tanh, how h is
    cut, how a layer computes the next h, and which h (0: the layer's input, 1: its result) the weights' gradient and
    the derivative of tanh use."""
    held = [x]
    for w in ws:
        held.append(forward(held[-1], w))
    dh, dws = own(dy), []
    for layer in reversed(range(len(ws))):
        back = dh * slope(own_h(held[layer + slope_at]))
        dws.insert(0, held[layer + used].T @ back)
        parts = back @ ws[layer].T
        dh = scatter(parts) if layer else whole(parts)
    return held[-1], dh, jnp.stack(dws)


def columns_of(x, ws):
    """Return a device's columns of the last h, before the last gather."""
    h = x
    for w in ws[:-1]:
        h = gather(jnp.tanh(h @ w))
    return jnp.tanh(h @ ws[-1])


@exercise.misconception(fails=gather_traffic, breaks="L − 1 reduce-scatters")
def all_reduced_then_cut(x, ws, dy):
    """You all-reduced {dh} and cut your columns out. A reduce-scatter gives each device its own columns and sends half the bytes."""
    return written(x, ws, dy, scatter=lambda parts: cut(total(parts)))


@exercise.misconception(fails=[gather_dws, gather_dx], breaks="y and gradients are those of one device")
def equal_cotangents_summed(x, ws, dy):
    """You summed dy over the devices, or the transpose of the last all_gather did. dy is not a partial sum: this adds N equal copies and makes everything N times too large. Cut a device's columns out of dy, and differentiate only the part before the last gather."""
    y, back = jax.vjp(lambda x, ws: gather(columns_of(x, ws)), x, ws)
    dx, dws = back(dy)
    return y, total(dx), dws


@exercise.misconception(fails=gather_traffic, breaks="L − 1 reduce-scatters")
def a_share_of_dy(x, ws, dy):
    """You divided dy by N and let the transpose of the last gather add the devices' parts. That is one
    reduce-scatter too many. Each device has all of dy and can cut its columns out without communication."""
    y, back = jax.vjp(lambda x, ws: gather(columns_of(x, ws)), x, ws)
    dx, dws = back(dy / jax.lax.axis_size("tp"))
    return y, total(dx), dws


@exercise.misconception(fails=gather_dx, breaks="y and gradients are those of one device")
def dx_left_partial(x, ws, dy):
    """Your dx has only the part that came through a device's own columns of the first weights. Add the parts of all devices with an all-reduce."""
    return written(x, ws, dy, whole=lambda parts: parts)


@exercise.misconception(fails=gather_dx, breaks="y and gradients are those of one device")
def dx_averaged(x, ws, dy):
    """You averaged dx, which makes it N times too small. Each device has a part of dx: add the parts."""
    return written(x, ws, dy, whole=lambda parts: jax.lax.pmean(parts, "tp"))


@exercise.misconception(fails=[gather_dws, gather_dx], breaks="y and gradients are those of one device")
def columns_of_device_0(x, ws, dy):
    """Every device cut the first columns out of dy. A device's columns start at its index along tp times the number of columns per device."""
    return written(x, ws, dy, own=lambda dy: cut(dy, 0))


@exercise.misconception(form_of=columns_of_device_0, breaks="y and gradients are those of one device")
def all_columns_of_device_0(x, ws, dy):
    """Like `columns_of_device_0`, but each device also cuts the columns of device 0 out of h."""
    return written(x, ws, dy, own=lambda dy: cut(dy, 0), own_h=lambda h: cut(h, 0))


@exercise.misconception(fails=gather_dws, breaks="y and gradients are those of one device")
def weights_in_backward_order(x, ws, dy):
    """You returned the gradients of the weights in the order of the backward pass. dws has the order of ws: reverse your list."""
    y, dx, dws = written(x, ws, dy)
    return y, dx, dws[::-1]


@exercise.misconception(fails=gather_dws, breaks="y and gradients are those of one device")
def weights_times_the_result(x, ws, dy):
    """You used the layer's result for the gradient of its weights. With z = h @ w, the gradient of w is h.T times the gradient of z, and h is the layer's input."""
    return written(x, ws, dy, used=1)


@exercise.misconception(fails=[gather_dws, gather_dx], breaks="y and gradients are those of one device")
def slope_of_the_input(x, ws, dy):
    """You took the derivative of tanh at the layer's input. With h = tanh(z), the derivative for z is 1 - h²: use the layer's result."""
    return written(x, ws, dy, slope_at=0)


@exercise.misconception(form_of=slope_of_the_input)
def slope_of_the_tanh_of_the_input(x, ws, dy):
    """Like `slope_of_the_input`, but tanh is applied to the input."""
    return written(x, ws, dy, slope_at=0, slope=lambda h: 1 - jnp.tanh(h) ** 2)


@exercise.misconception(fails=[gather_dws, gather_dx], breaks="y and gradients are those of one device")
def slope_of_another_argument(x, ws, dy):
    """You took the derivative of tanh at h instead of z, or you used 1 - z². With h = tanh(z), it is 1 - tanh(z)², which is 1 - h²."""
    return written(x, ws, dy, slope=lambda h: 1 - jnp.tanh(h) ** 2)


@exercise.misconception(form_of=slope_of_another_argument)
def slope_of_the_sum(x, ws, dy):
    """Like `slope_of_another_argument`, with the square of z."""
    return written(x, ws, dy, slope=lambda h: 1 - jnp.arctanh(h) ** 2)


@exercise.misconception(fails=[gather_dws, gather_dx], breaks="y and gradients are those of one device")
def slope_without_square(x, ws, dy):
    """You used 1 - h. With h = tanh(z), the derivative for z is 1 - h²."""
    return written(x, ws, dy, slope=lambda h: 1 - h)


@exercise.misconception(fails=[gather_dws, gather_dx], breaks="y and gradients are those of one device")
def slope_left_out(x, ws, dy):
    """Your backward pass leaves out the derivative of tanh. Multiply dh by 1 - h² before you use it."""
    return written(x, ws, dy, slope=jnp.ones_like)


@exercise.misconception(fails=[gather_dws, gather_dx], breaks="y and gradients are those of one device")
def never_reduced(x, ws, dy):
    """You went on with your own part of {dh}. The other devices' columns of w also contribute to {dh}: add these parts with a reduce-scatter."""
    return written(x, ws, dy, scatter=cut)


@exercise.misconception(fails=[gather_dws, gather_dx, gather_forward], breaks="y and gradients are those of one device")
def went_on_without_the_gather(x, ws, dy):
    """You gathered only the last h, and gave each layer zeros for the other devices' columns. Every layer needs all of h: gather it for each layer."""
    n, h = jax.lax.axis_size("tp"), x
    for w in ws:
        mine = jnp.tanh(h @ w)
        h = jnp.zeros((mine.shape[0], n * mine.shape[1]), mine.dtype)
        h = jax.lax.dynamic_update_slice_in_dim(h, mine, jax.lax.axis_index("tp") * mine.shape[1], axis=1)
    return gather(mine), dy, ws


@exercise.misconception(fails=gather_traffic, breaks="L all-gathers")
def weights_gathered(x, ws, dy):
    """You gathered the weights, so every device computes everything. Leave the cut weights where they are, and gather h."""
    whole = jax.lax.all_gather(ws, "tp", axis=2, tiled=True)

    def model(x, whole):
        for layer in range(len(ws)):
            x = jnp.tanh(x @ whole[layer])
        return x

    y, back = jax.vjp(model, x, whole)
    dx, dws = back(dy)
    width = ws.shape[2]
    return y, dx, jax.lax.dynamic_slice_in_dim(dws, jax.lax.axis_index("tp") * width, width, axis=2)


@exercise.misconception(form_of=weights_gathered, breaks="L all-gathers")
def weights_gathered_forward(x, ws, dy):
    """Like `weights_gathered`, layer by layer, and only in the forward pass."""
    whole = lambda h, w: jnp.tanh(h @ jax.lax.all_gather(w, "tp", axis=1, tiled=True))  # noqa: E731
    return written(x, ws, dy, forward=whole)


@exercise.misconception(fails=gather_dws, breaks="y and gradients are those of one device")
def weights_summed(x, ws, dy):
    """You summed the gradients of the weights over tp. Each device has different columns: add nothing."""
    y, dx, dws = written(x, ws, dy)
    return y, dx, total(dws)


@exercise.misconception(fails=gather_traffic, breaks="L all-gathers")
def forward_pass_again(x, ws, dy):
    """Your backward pass gathers each h again. Keep the gathered h of the forward pass: keeping activations is allowed, and the budget has L all-gathers."""
    h, again = jax.lax.optimization_barrier(x), []
    for w in ws:
        again.append(h)
        h = gather(jnp.tanh(h @ w)) if len(again) < len(ws) else h
    dh, dws = cut(dy), []
    for layer in reversed(range(len(ws))):
        mine = jnp.tanh(again[layer] @ ws[layer])
        back = dh * (1 - mine**2)
        dws.insert(0, again[layer].T @ back)
        parts = back @ ws[layer].T
        dh = scatter(parts) if layer else total(parts)
    for w in ws[:-1]:
        x = gather(jnp.tanh(x @ w))
    return gather(jnp.tanh(x @ ws[-1])), dh, jnp.stack(dws)


@exercise.misconception(fails=gather_traffic, breaks="L all-gathers")
def sums_gathered_too(x, ws, dy):
    """You gathered each layer's h @ w as well as its tanh. The backward pass needs only the columns of h @ w that the device computed itself: keep these columns."""
    held, sums = [x], []
    for w in ws:
        own = held[-1] @ w
        for whole, kept in zip(jnp.split(gather(jnp.concatenate([own, jnp.tanh(own)])), 2), (sums, held), strict=True):
            kept.append(whole)
    dh, dws = cut(dy), []
    for layer in reversed(range(len(ws))):
        back = dh * (1 - jnp.tanh(cut(sums[layer])) ** 2)
        dws.insert(0, held[layer].T @ back)
        parts = back @ ws[layer].T
        dh = scatter(parts) if layer else total(parts)
    return held[-1], dh, jnp.stack(dws)


@exercise.misconception(of=slicing_costs)
def slicing_costs_dx_too(chip, B, D, L, N):
    """You counted dx as well. Every device needs all of dx, so the all-reduce of dx wastes no time."""
    return L * reduce_scatter_time(2 * B * D, N, chip)


@exercise.misconception(of=slicing_costs)
def slicing_costs_whole(chip, B, D, L, N):
    """Your answer is twice the right one. You may have counted all the time of the all-reduces: reduce-scatters would take half of it, so the loss is the other half. Or you used one direction of a link, or four bytes for a bfloat16."""
    return (L - 1) * all_reduce_time(2 * B * D, N, chip)


@exercise.misconception(of=slicing_costs)
def slicing_costs_of_other_shards(chip, B, D, L, N):
    """You multiplied by (N - 1)/N. In this question's model a reduce-scatter takes V / W."""
    return (L - 1) * reduce_scatter_time(2 * B * D, N, chip) * (N - 1) / N


@exercise.misconception(of=slicing_costs)
def slicing_costs_of_one_layer(chip, B, D, L, N):
    """You counted the loss of one layer. All layers except the first lose time. The first layer loses none, because every device needs all of dx."""
    return reduce_scatter_time(2 * B * D, N, chip)


exercise.scenario(
    slicing_costs,
    lambda chip, B, D, L, N: Scenario(
        chip=chip, rings=(N,), mesh={"tp": N}, arrays=[((B, D), (None, "tp"))], least=(L - 1) * latency(N)
    ),
)


# -- right as well -----------------------------------------------------------------------------


@exercise.alternative()
def dx_in_two_halves(x, ws, dy):
    """The all-reduce of dx is written as a reduce-scatter and a gather."""
    return written(x, ws, dy, whole=lambda parts: gather(scatter(parts)))


@exercise.alternative()
def derived_before_the_last_gather(x, ws, dy):
    """JAX differentiates the part before the last gather, with the device's own columns of dy."""
    mine, back = jax.vjp(columns_of, x, ws)
    dx, dws = back(cut(dy))
    return gather(mine), total(dx), dws


@exercise.alternative()
def y_and_dx_gathered_together(x, ws, dy):
    """The last gather makes y and dx whole."""
    mine, back = jax.vjp(columns_of, x, ws)
    dx, dws = back(cut(dy))
    y, dx = gather(jnp.stack([mine, scatter(dx)], axis=2)).transpose(2, 0, 1)
    return y, dx, dws


@exercise.alternative()
def scanned(x, ws, dy):
    """Each pass is a scan. The first layer is outside the backward scan."""

    def forward(h, w):
        mine = jnp.tanh(h @ w)
        return gather(mine), (h, mine)

    def backward(dh, of):
        w, (h, mine) = of
        back = dh * (1 - mine**2)
        return scatter(back @ w.T), h.T @ back

    y, kept = jax.lax.scan(forward, x, ws)
    first, rest = jax.tree.map(lambda a: a[0], kept), jax.tree.map(lambda a: a[1:], kept)
    dh, dws = jax.lax.scan(backward, cut(dy), (ws[1:], rest), reverse=True)
    back = dh * (1 - first[1] ** 2)
    return y, total(back @ ws[0].T), jnp.concatenate([(first[0].T @ back)[None], dws])


@exercise.alternative()
def by_chunks_and_einsum(x, ws, dy):
    """Columns are a separate dimension, which is scattered and gathered without tiled=True."""
    n, me, (batch, dim) = jax.lax.axis_size("tp"), jax.lax.axis_index("tp"), x.shape
    held, outs = [x], []
    for w in ws:
        outs.append(jnp.tanh(jnp.einsum("bd,df->bf", held[-1], w)))
        held.append(jnp.moveaxis(jax.lax.all_gather(outs[-1], "tp"), 0, 1).reshape(batch, dim))
    dh, dws = dy.reshape(batch, n, -1)[:, me], []
    for i in range(len(ws) - 1, -1, -1):
        back = dh * (1 - outs[i]) * (1 + outs[i])
        dws.append(jnp.einsum("bd,bf->df", held[i], back))
        parts = jnp.einsum("bf,df->bd", back, ws[i])
        dh = jax.lax.psum_scatter(parts.reshape(batch, n, -1), "tp", scatter_dimension=1) if i else parts
    return held[-1], jax.lax.psum(dh, "tp"), jnp.stack(dws[::-1])
