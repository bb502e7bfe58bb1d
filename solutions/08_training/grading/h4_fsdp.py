"""H4: checks, misconceptions and alternatives."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario, array
from grader.expect import (
    Failure,
    between,
    expect_at_most,
    expect_close,
    expect_collectives,
    expect_memory,
    expect_not_waiting,
    expect_only,
    expect_spec,
    expect_traffic,
    needed,
)
from grader.hardware import all_gather_time, matmul_time
from h4_fsdp import exercise, fsdp_forward_times, fsdp_loss, fsdp_step_bytes, layers, step


@exercise.helper
def by_hand(ws, x):
    """Return the loss and its gradient, on one device."""
    held = [x]
    for w in ws:
        held.append(np.tanh(held[-1] @ w))
    back, grads = 2 * held[-1] / len(x), []
    for w, a, b in zip(ws[::-1], held[-2::-1], held[:0:-1], strict=True):
        back = back * (1 - b**2)
        grads.insert(0, a.T @ back)
        back = back @ w.T
    return np.sum(held[-1] ** 2) / len(x), np.stack(grads)


@exercise.check(step, points=1, public=True)
def fsdp_value(seen):
    """fsdp_loss: the loss of the whole batch"""
    expect_close(seen.out, by_hand(seen.ws, seen.x)[0])


@exercise.check(step, points=1, public=True, after=fsdp_value)
def fsdp_gradients(seen):
    """fsdp_loss: the gradient of the whole batch"""
    expect_close(seen.grads["ws"], by_hand(seen.ws, seen.x)[1])


@exercise.check(step, points=0.5, public=True, after=fsdp_value)
def fsdp_layout(seen):
    """fsdp_loss: the gradient has the layout of the layers"""
    expect_spec(seen.grads["ws"], P(None, "dp"))


@exercise.helper
def expect_sums_of_numbers(seen):
    """Require that all-reduces sum single numbers, not an array of the sums of a device's rows."""
    number = 8 * (1 - 1 / seen.mesh["dp"])
    rows = seen.dims["B"] // seen.mesh["dp"]
    expect_traffic(seen.only(kind="all_reduce"), at_most=between(number, rows * number, at=32))


@exercise.helper
def expect_layers(seen):
    """Require that each all-gather takes a device's part of one layer, and each reduce-scatter the gradient of one
    layer. So fewer than L gathers in the forward pass, or fewer than L reduce-scatters, leave out a layer."""
    layer = 4 * seen.dims["D"] ** 2
    due = {"all_gather": layer // seen.mesh["dp"], "reduce_scatter": layer}
    for one in seen.collectives:
        if one.bytes != due.get(one.kind, one.bytes):
            raise Failure(
                f"line {one.line}: this {one.kind} takes {one.bytes} bytes of each device; a collective of one layer takes {due[one.kind]}",
                expected=due[one.kind],
                actual=one.bytes,
                where=f"line {one.line}",
            )


@exercise.check(step, points=0.5, public=True, after=fsdp_value)
def fsdp_forward(seen):
    """fsdp_loss: the forward pass has one all-gather for each layer"""
    forward = seen.only(backward=False)
    expect_collectives(forward.only(kind="all_gather"), all_gather={"dp": seen.dims["L"]})
    expect_only(forward, "all_gather", "all_reduce")
    expect_sums_of_numbers(forward)
    expect_layers(forward)


@exercise.check(step, points=1, after=fsdp_gradients)
def fsdp_backward(seen):
    """fsdp_loss: the backward pass has at most one all-gather and exactly one reduce-scatter for each layer"""
    backward, each = seen.only(backward=True), {"dp": seen.dims["L"]}
    gathers = between(seen.dims["L"] - 1, 2 * seen.dims["L"], at=seen.dims["L"])  # the last layer may be kept
    expect_at_most(backward.only(kind="all_gather"), all_gather={"dp": gathers})
    expect_collectives(backward.only(kind="reduce_scatter"), reduce_scatter=each)
    expect_only(backward, "all_gather", "reduce_scatter", "all_reduce")
    expect_sums_of_numbers(seen)
    expect_layers(backward)


DEEP = {
    "ws": array("L", "D", "D", spec=P(None, "dp"), draw=layers),
    "x": array("B", "D", spec=P("dp"), draw=lambda rng, shape: 3 * rng.standard_normal(shape)),
    "meshes": [{"dp": 8}],
    "dims": {"L": 7, "D": 40, "B": 8},
    "hidden_dims": {"L": 8, "D": 88, "B": 24},
    "returns": "loss",
}
deep = exercise.call(fsdp_loss, **DEEP, wrt=["ws"])
forward_alone = exercise.call(fsdp_loss, **DEEP)


def expect_two_layers(seen):
    """Require that the forward pass alone, which has no gradient, holds at most two gathered layers."""
    whole, rows = seen.dims["D"] ** 2, seen.dims["B"] * seen.dims["D"] / seen.mesh["dp"]
    own = whole / seen.mesh["dp"] + rows
    right, wrong = own + whole, own + 3 * whole
    most = own + 2.3 * whole + seen.dims["L"] * rows  # a program may keep its activations
    expect_memory(seen, at_most=between(4 * right, 4 * wrong, at=4 * most), by="program", arguments=False)


@exercise.check([deep, forward_alone], points=1, after=[fsdp_gradients, fsdp_forward, fsdp_backward])
def fsdp_memory(seen, forward_alone):
    """fsdp_loss: besides its own parts, a device holds at most two gathered layers and one layer's whole gradient; it sends no
    more than two gathers and a reduce-scatter of each layer"""
    expect_close(seen.grads["ws"], by_hand(seen.ws, seen.x)[1])
    L, D, B, N = seen.dims["L"], seen.dims["D"], seen.dims["B"], seen.mesh["dp"]
    expect_layers(seen)
    layers = L * 4 * D * D * (N - 1) / N
    for backward, right in ((False, layers), (True, 2 * layers)):
        # In each pass a wrong program has, for each layer, one collective more than a right program.
        budget = needed(right, right + layers, at=right + 32)
        expect_traffic(seen.only(backward=backward), at_most=budget)
    gradients, activations = L * D * D / N, (L + 1) * B * D / N
    own, whole = gradients + activations, D * D
    right = own + 1.2 * whole  # one gathered layer, and a part of a second array
    wrong = own + 3.6 * whole  # three gathered layers, and a part of a gradient
    # The statement allows three whole arrays, and the nearest wrong program holds four. So no sizes make the
    # wrong program hold 1.5 times as much as a program that holds all that is allowed.
    most = own + 3.05 * whole  # two layers, a gradient and small arrays
    expect_memory(seen, at_most=between(4 * right, 4 * wrong, at=4 * most), by="program", arguments=False)
    expect_two_layers(forward_alone)


@exercise.check(step, points=0.5, after=fsdp_value)
def fsdp_ahead(seen):
    """fsdp_loss: in the forward pass no gather waits for a matmul"""
    expect_not_waiting(seen.only(kind="all_gather", backward=False), "all_gather", on="matmul")


@exercise.alternative(of=fsdp_loss)
def in_a_scan(ws, x, *, mesh):
    """Each layer is a round of a scan."""
    rows = x.shape[0]

    def local(ws, x):
        def layer(x, w):
            return jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True)), None

        out, _ = jax.lax.scan(jax.checkpoint(layer, prevent_cse=False), x, ws)
        return jax.lax.psum(jnp.sum(out**2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


@exercise.alternative(of=fsdp_loss)
def backward_by_hand(ws, x, *, mesh):
    """Each layer has a custom_vjp, which keeps the layer's output but not the gathered weights."""
    rows = x.shape[0]

    def forward(x, w):
        out = jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True))
        return out, (x, w, out)

    def backward(kept, g):
        x, w, out = kept
        w, g = jax.lax.optimization_barrier((w, g))
        g = g * (1 - out**2)
        dw = jax.lax.psum_scatter(x.T @ g, "dp", tiled=True)
        return g @ jax.lax.all_gather(w, "dp", tiled=True).T, dw

    layer = jax.custom_vjp(lambda x, w: forward(x, w)[0])
    layer.defvjp(forward, backward)

    def local(ws, x):
        for w in ws:
            x = layer(x, w)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


@exercise.alternative(of=fsdp_loss)
def one_layer_ahead(ws, x, *, mesh):
    """Both passes are written by hand: each layer is gathered before the previous layer's matmul."""
    rows, L = x.shape[0], ws.shape[0]

    def gather(w):
        return jax.lax.all_gather(w, "dp", tiled=True)

    def forward(ws, x):
        held, arriving = [x], gather(ws[0])
        for i in range(L):
            w, arriving = arriving, gather(ws[i + 1]) if i + 1 < L else arriving
            held.append(jnp.tanh(held[-1] @ w))
        return held[-1], (ws, held)

    def backward(kept, g):
        ws, held = kept
        ws, g = jax.lax.optimization_barrier((ws, g))
        grads, arriving = [], gather(ws[L - 1])
        for i in reversed(range(L)):
            w, arriving = arriving, gather(ws[i - 1]) if i else arriving
            g = g * (1 - held[i + 1] ** 2)
            grads.append(jax.lax.psum_scatter(held[i].T @ g, "dp", tiled=True))
            g = g @ w.T
        return jnp.stack(grads[::-1]), g

    model = jax.custom_vjp(lambda ws, x: forward(ws, x)[0])
    model.defvjp(forward, backward)

    def local(ws, x):
        return jax.lax.psum(jnp.sum(model(ws, x) ** 2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


@exercise.alternative(of=fsdp_loss)
def forgets_by_policy(ws, x, *, mesh):
    """Use a checkpoint with a policy that keeps nothing. The loss is the mean of the devices' means."""
    layer = jax.checkpoint(
        lambda x, w: jnp.tanh(jnp.einsum("bi,io->bo", x, jax.lax.all_gather(w, "dp", axis=0, tiled=True))),
        policy=jax.checkpoint_policies.nothing_saveable,
    )

    def local(ws, x):
        for i in range(ws.shape[0]):
            x = layer(x, ws[i])
        return jax.lax.pmean(jnp.sum(x * x) / x.shape[0], "dp")

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


@exercise.alternative(of=fsdp_loss)
def keeps_all_but_gathers(ws, x, *, mesh):
    """The policy of JAX's guide to FSDP keeps everything but the gathered layers. The backward pass does not need layer 0 again, so this policy saves one gather."""

    def policy(op, *_, **__):
        return str(op) not in ("all_gather", "all_gather_invariant")

    layer = jax.checkpoint(lambda x, w: jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True)), policy=policy)
    rows = x.shape[0]

    def local(ws, x):
        for w in ws:
            x = layer(x, w)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


@exercise.alternative(of=fsdp_loss)
def unchecked(ws, x, *, mesh):
    """With check_vma=False JAX also sums the gradient of the loss, one number, over the devices."""
    rows = x.shape[0]

    def local(ws, x):
        for w in ws:
            x = jax.checkpoint(lambda x, w: jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True)))(x, w)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    specs = (P(None, "dp"), P("dp"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(ws, x)


def gathered(w):
    return jax.lax.all_gather(w, "dp", tiled=True)


def with_layer(ws, x, mesh, layer, last=None):
    """Compute the loss as the solution does, with a changed layer, or a changed last layer."""
    rows = x.shape[0]

    def local(ws, x):
        for w in ws[:-1]:
            x = jax.checkpoint(layer)(x, w)
        x = jax.checkpoint(last or layer)(x, ws[-1])
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


def layer_of(gather, act=jnp.tanh):
    return lambda x, w: act(x @ gather(w))


def layers_in(seen, kind, backward, bytes):
    """Return the number of collectives of this kind in a pass whose input has this number of bytes on each device."""
    return sum(one.rounds.most for one in seen.only(kind=kind, backward=backward).collectives if one.bytes == bytes)


def never_again(seen, _forward_alone):
    """For `gives`: require one all-gather for each layer, in the forward pass alone."""
    L, part = seen.dims["L"], 4 * seen.dims["D"] ** 2 // seen.mesh["dp"]
    again = seen.only(kind="all_gather", backward=True).collectives
    if again or layers_in(seen, "all_gather", False, part) != L:
        raise Failure("this mistake gives other all-gathers")


@exercise.misconception(fails=fsdp_memory, gives=never_again, breaks="at most two gathered layers")
def kept_what_was_gathered(ws, x, *, mesh):
    """You kept every gathered layer for the backward pass, so each device ends up with the whole model. Gather again: put jax.checkpoint around the layer, with the gather inside. jax.checkpoint keeps its arguments, so do not pass a gathered layer to it. A policy may not save the gather either."""
    rows = x.shape[0]

    def local(ws, x):
        layer = jax.checkpoint(lambda x, w: jnp.tanh(x @ w))
        for w in ws:
            x = layer(x, jax.lax.all_gather(w, "dp", tiled=True))
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


@exercise.misconception(fails=fsdp_memory, breaks="at most two gathered layers")
def kept_two_layers(ws, x, *, mesh):
    """You kept some of the gathered layers for the backward pass. Together with the layer that the backward pass gathers, a device then holds three layers. Put each layer's gather into its jax.checkpoint."""
    rows = x.shape[0]

    def local(ws, x):
        layer = jax.checkpoint(lambda x, w: jnp.tanh(x @ w))
        again = jax.checkpoint(lambda x, w: jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True)))
        for i, w in enumerate(ws):
            x = layer(x, jax.lax.all_gather(w, "dp", tiled=True)) if i < 2 else again(x, w)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


@exercise.misconception(fails=fsdp_memory, breaks="at most two gathered layers")
def gathered_two_layers_ahead(ws, x, *, mesh):
    """Your forward pass gathers layers too early, so a device holds three gathered layers at once: the layer in use and two later layers. Gather each layer one matmul ahead."""
    rows, L = x.shape[0], ws.shape[0]

    def forward(ws, x):
        held, arriving = [x], [gathered(ws[0]), gathered(ws[1])]
        for i in range(L):
            if i + 2 < L:
                arriving.append(gathered(ws[i + 2]))
            held.append(jnp.tanh(held[-1] @ arriving.pop(0)))
        return held[-1], (ws, held)

    def backward(kept, g):
        ws, held = kept
        grads = []
        for i in reversed(range(L)):
            w, g = jax.lax.optimization_barrier((ws[i], g))
            g = g * (1 - held[i + 1] ** 2)
            grads.append(jax.lax.psum_scatter(held[i].T @ g, "dp", tiled=True))
            g = g @ gathered(w).T
        return jnp.stack(grads[::-1]), g

    model = jax.custom_vjp(lambda ws, x: forward(ws, x)[0])
    model.defvjp(forward, backward)

    def local(ws, x):
        return jax.lax.psum(jnp.sum(model(ws, x) ** 2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


@exercise.misconception(fails=fsdp_forward, breaks="one all-gather per layer, of")
def gathers_merged(ws, x, *, mesh):
    """You gather a layer again in the backward pass, but nothing ties that gather to the backward pass. The compiler can merge it with the first gather, and the layer is kept. Outside loops, leave prevent_cse=True in jax.checkpoint. In a custom_vjp, pass the layer and the cotangent through jax.lax.optimization_barrier."""
    rows = x.shape[0]

    def local(ws, x):
        layer = jax.checkpoint(lambda x, w: jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True)), prevent_cse=False)
        for w in ws:
            x = layer(x, w)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


def in_parts(seen):
    """For `gives`: require that in the forward pass each all-gather brings a part of a layer, and that all together bring
    each layer once."""
    gathers = seen.only(kind="all_gather", backward=False).collectives
    layer = 4 * seen.dims["D"] ** 2 // seen.mesh["dp"]
    together = sum(one.bytes * one.rounds.most for one in gathers)
    if any(one.bytes >= layer for one in gathers) or together != seen.dims["L"] * layer:
        raise Failure("this mistake gives other all-gathers")


@exercise.misconception(fails=[fsdp_backward, fsdp_forward], gives=in_parts, breaks="one all-gather per layer, of")
def gathered_in_parts(ws, x, *, mesh):
    """You gather a layer in parts, with one collective for each part. Gather the whole layer with one all-gather."""

    def gather(w):
        half = w.shape[1] // 2
        return jnp.concatenate([gathered(w[:, :half]), gathered(w[:, half:])], axis=1)

    return with_layer(ws, x, mesh, layer_of(gather))


def by_all_reduces(seen):
    """For `gives`: require one all-reduce of a whole layer for each layer in the forward pass, and no all-gather."""
    reduces = layers_in(seen, "all_reduce", False, 4 * seen.dims["D"] ** 2)
    if seen.only(kind="all_gather").collectives or reduces != seen.dims["L"]:
        raise Failure("this mistake gives other collectives")


@exercise.misconception(
    fails=[fsdp_ahead, fsdp_backward, fsdp_forward],
    gives=by_all_reduces,
    breaks="one all-gather per layer, of",
)
def gathered_by_all_reduce(ws, x, *, mesh):
    """You put each device's rows into an array of zeros, and added these arrays with psum. All devices then have the layer, but an all-reduce sends twice the bytes of an all-gather. Use all_gather."""

    def gather(w):
        empty = jnp.zeros((w.shape[1], w.shape[1]), w.dtype)
        own = jax.lax.dynamic_update_slice_in_dim(empty, w, jax.lax.axis_index("dp") * len(w), 0)
        return jax.lax.psum(own, "dp")

    return with_layer(ws, x, mesh, layer_of(gather))


def in_one_checkpoint(ws, x, mesh, model):
    """Compute the loss of ``model(ws, x)``, the last activations, with one checkpoint around the model."""
    rows = x.shape[0]

    def local(ws, x):
        return jax.lax.psum(jnp.sum(jax.checkpoint(model)(ws, x) ** 2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


@exercise.misconception(fails=fsdp_memory, breaks="at most two gathered layers")
def gathered_all_layers_first(ws, x, *, mesh):
    """Each device holds all gathered layers at once. There are two possible causes. You may have gathered all layers before you used the first layer. Or one jax.checkpoint may contain all layers, so the backward pass gathers all of them before it uses the last layer. Put a jax.checkpoint around each layer, with its gather inside."""

    def model(ws, x):
        for w in [gathered(w) for w in ws]:
            x = jnp.tanh(x @ w)
        return x

    return in_one_checkpoint(ws, x, mesh, model)


@exercise.misconception(form_of=gathered_all_layers_first)
def one_checkpoint_for_all(ws, x, *, mesh):
    """Like `gathered_all_layers_first`: the backward pass computes all layers again before it uses the last layer."""

    def model(ws, x):
        for w in ws:
            x = layer_of(gathered)(x, w)
        return x

    return in_one_checkpoint(ws, x, mesh, model)


@exercise.misconception(form_of=gathered_all_layers_first)
def one_checkpoint_for_a_scan(ws, x, *, mesh):
    """Like `one_checkpoint_for_all`, around a scan."""

    def model(ws, x):
        return jax.lax.scan(lambda x, w: (layer_of(gathered)(x, w), None), x, ws)[0]

    return in_one_checkpoint(ws, x, mesh, model)


@exercise.misconception(fails=[fsdp_backward, fsdp_forward], breaks="of that layer only")
def gathered_the_model_at_once(ws, x, *, mesh):
    """You gathered the whole model with one collective, so each device holds all of it. Gather each layer where you use it."""

    def model(ws, x):
        for w in jax.lax.all_gather(ws, "dp", axis=1, tiled=True):
            x = jnp.tanh(x @ w)
        return x

    return in_one_checkpoint(ws, x, mesh, model)


@exercise.misconception(fails=fsdp_ahead, breaks="no gather waits for a matmul")
def gathers_behind_the_matmul(ws, x, *, mesh):
    """Your gather waits for the previous layer. The links are idle while the core works, and the core is idle while the links work. A layer's weights need no activations: gather them earlier."""
    rows = x.shape[0]

    def local(ws, x):
        @jax.checkpoint
        def layer(x, w):
            x, w = jax.lax.optimization_barrier((x, w))
            return jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True))

        for w in ws:
            x = layer(x, w)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


def with_backward(finish):
    """Return a fsdp_loss in which ``finish`` reduces a layer's gradient, x.T @ g on each device."""

    def loss(ws, x, *, mesh):
        rows = x.shape[0]

        def forward(x, w):
            out = jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True))
            return out, (x, w, out)

        def backward(kept, g):
            x, w, out = kept
            w, g = jax.lax.optimization_barrier((w, g))
            g = g * (1 - out**2)
            return g @ jax.lax.all_gather(w, "dp", tiled=True).T, finish(x.T @ g)

        layer = jax.custom_vjp(lambda x, w: forward(x, w)[0])
        layer.defvjp(forward, backward)

        def local(ws, x):
            for w in ws:
                x = layer(x, w)
            return jax.lax.psum(jnp.sum(x**2), "dp") / rows

        specs = (P(None, "dp"), P("dp"))
        return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(ws, x)

    return loss


def own_rows(dw):
    """Return the rows of a whole gradient that this device keeps."""
    rows = dw.shape[0] // jax.lax.axis_size("dp")
    return jax.lax.dynamic_slice_in_dim(dw, jax.lax.axis_index("dp") * rows, rows)


@exercise.misconception(fails=fsdp_backward, breaks="exactly one reduce-scatter")
def summed_whole_gradients(ws, x, *, mesh):
    """You all-reduced each gradient and kept a part of it. A reduce-scatter gives a device only its own part, for half the bytes."""
    return with_backward(lambda dw: own_rows(jax.lax.psum(dw, "dp")))(ws, x, mesh=mesh)


@exercise.misconception(fails=fsdp_backward, breaks="exactly one reduce-scatter")
def scattered_in_halves(ws, x, *, mesh):
    """You reduce-scatter the gradient of each half of the rows. Add the halves on the device first. Then one reduce-scatter for each layer is enough."""
    scattered = lambda dw: jax.lax.psum_scatter(dw, "dp", tiled=True)  # noqa: E731
    return with_backward(lambda dw: scattered(dw / 4) + scattered(3 * dw / 4))(ws, x, mesh=mesh)


@exercise.misconception(fails=fsdp_backward, breaks="per layer at most one all-gather")
def gathered_for_each_matmul(ws, x, *, mesh):
    """You gather a layer twice in the backward pass: once to compute the activation again, and once for the gradient of x. Gather the layer once and use it for both."""
    rows = x.shape[0]

    def backward(kept, g):
        x, w = kept
        w, g = jax.lax.optimization_barrier((w, g))
        out = jnp.tanh(x @ gathered(w))
        w, out = jax.lax.optimization_barrier((w, out))
        g = g * (1 - out**2)
        return g @ gathered(w).T, jax.lax.psum_scatter(x.T @ g, "dp", tiled=True)

    layer = jax.custom_vjp(lambda x, w: jnp.tanh(x @ gathered(w)))
    layer.defvjp(lambda x, w: (layer(x, w), (x, w)), backward)

    def local(ws, x):
        for w in ws:
            x = layer(x, w)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    specs = (P(None, "dp"), P("dp"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(ws, x)


def scattered_later(ws, x, mesh, layers):
    """Compute the loss as the solution does, but scatter each whole gradient only after ``layers`` more layers."""
    rows = x.shape[0]

    def forward(ws, x):
        held = [x]
        for w in ws:
            held.append(jnp.tanh(held[-1] @ gathered(w)))
        return held[-1], (ws, held)

    def backward(kept, g):
        (ws, held), g = jax.lax.optimization_barrier((kept, g))
        whole, dws = [], []
        scatter = lambda: dws.insert(0, jax.lax.psum_scatter(whole.pop(0), "dp", tiled=True))  # noqa: E731
        for w, before, after in zip(ws[::-1], held[-2::-1], held[:0:-1], strict=True):
            g = g * (1 - after**2)
            whole.append(before.T @ g)
            g = g @ gathered(w).T
            if len(whole) > layers:
                scatter()
        while whole:
            scatter()
        return jnp.stack(dws), g

    model = jax.custom_vjp(lambda ws, x: forward(ws, x)[0])
    model.defvjp(forward, backward)
    local = lambda ws, x: jax.lax.psum(jnp.sum(model(ws, x) ** 2), "dp") / rows  # noqa: E731
    specs = (P(None, "dp"), P("dp"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(ws, x)


@exercise.misconception(fails=fsdp_memory, breaks="one layer's whole gradient")
def scattered_at_the_end(ws, x, *, mesh):
    """You kept the whole gradients of all layers and scattered them at the end. Scatter each gradient as soon as you have computed it."""
    return scattered_later(ws, x, mesh, layers=ws.shape[0])


@exercise.misconception(fails=fsdp_memory, breaks="one layer's whole gradient")
def scattered_three_layers_late(ws, x, *, mesh):
    """You scattered each whole gradient some layers later, so a device holds several whole gradients at once. Scatter each gradient as soon as you have computed it."""
    return scattered_later(ws, x, mesh, layers=3)


@exercise.misconception(fails=[fsdp_forward, fsdp_backward], breaks="all-reduces of single numbers")
def squares_summed_over_devices(ws, x, *, mesh):
    """You added the squares of all devices before you summed a device's own squares, so each device sends an array. First sum all squares of a device, and then send one number."""
    rows = x.shape[0]

    def local(ws, x):
        for w in ws:
            x = jax.checkpoint(lambda x, w: jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True)))(x, w)
        return jnp.sum(jax.lax.psum(x**2, "dp")) / rows

    specs = (P(None, "dp"), P("dp"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(ws, x)


@exercise.misconception(form_of=squares_summed_over_devices)
def row_sums_summed_over_devices(ws, x, *, mesh):
    """Like `squares_summed_over_devices`, but each device first adds the squares of each row."""
    rows = x.shape[0]

    def local(ws, x):
        for w in ws:
            x = jax.checkpoint(lambda x, w: jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True)))(x, w)
        return jnp.sum(jax.lax.psum(jnp.sum(x**2, axis=1), "dp")) / rows

    specs = (P(None, "dp"), P("dp"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P())(ws, x)


@exercise.misconception(fails=fsdp_gradients, breaks="the loss and gradient of the whole batch")
def gradient_of_own_batch(ws, x, *, mesh):
    """Each device kept its part of the gradient of its own rows. Add the parts of all devices with a reduce-scatter."""
    return with_backward(own_rows)(ws, x, mesh=mesh)


@exercise.misconception(fails=fsdp_gradients, breaks="the loss and gradient of the whole batch")
def gradient_divided_twice(ws, x, *, mesh):
    """You averaged the gradients over the devices. The loss is already divided by all rows of the batch: add the gradients."""
    return with_backward(lambda dw: jax.lax.psum_scatter(dw, "dp", tiled=True) / jax.lax.axis_size("dp"))(
        ws, x, mesh=mesh
    )


@exercise.misconception(fails=fsdp_value, breaks="is the **mean**")
def divided_by_own_rows(ws, x, *, mesh):
    """You divided by the rows of one device and added the means, so the loss is N times too large. Divide by all rows, or average the means."""
    return fsdp_loss(ws, x, mesh=mesh) * mesh.shape["dp"]


def own_loss(ws, x, mesh, rows):
    """Return the sum of squares of each device's own rows, divided by ``rows``."""

    def local(ws, x):
        for w in ws:
            x = jnp.tanh(x @ gathered(w))
        return jnp.sum(x**2) / rows

    specs = (P(None, "dp"), P("dp"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(ws, x)


@exercise.misconception(fails=fsdp_value, breaks="the loss and gradient of the whole batch")
def loss_of_own_rows(ws, x, *, mesh):
    """Each device returned the loss of its own rows. With check_vma=False JAX does not report this. Add the parts with psum."""
    return own_loss(ws, x, mesh, x.shape[0])


@exercise.misconception(form_of=loss_of_own_rows)
def mean_of_own_rows(ws, x, *, mesh):
    """Like `loss_of_own_rows`, but divided by the device's own number of rows."""
    return own_loss(ws, x, mesh, x.shape[0] // mesh.shape["dp"])


@exercise.misconception(fails=fsdp_value, breaks="is the **mean**")
def mean_over_all_numbers(ws, x, *, mesh):
    """You took the mean over all numbers. The loss is a mean over the rows of the batch: for each row, add the squares."""
    return fsdp_loss(ws, x, mesh=mesh) / x.shape[1]


@exercise.misconception(fails=fsdp_value, breaks="is the **mean**")
def summed_over_rows(ws, x, *, mesh):
    """You added the rows' losses. The loss is their mean: divide by the B rows of the batch."""
    return fsdp_loss(ws, x, mesh=mesh) * x.shape[0]


@exercise.misconception(fails=fsdp_value, breaks="the loss and gradient of the whole batch")
def without_tanh(ws, x, *, mesh):
    """Your layers have no tanh. A layer is tanh(x @ w), the last one too."""
    return with_layer(ws, x, mesh, layer_of(gathered, act=lambda x: x))


@exercise.misconception(form_of=without_tanh)
def without_last_tanh(ws, x, *, mesh):
    """Like `without_tanh`, in the last layer alone."""
    return with_layer(ws, x, mesh, layer_of(gathered), last=layer_of(gathered, act=lambda x: x))


@exercise.misconception(fails=[fsdp_ahead, fsdp_backward, fsdp_forward, fsdp_layout], breaks="gradients cut as `ws`")
def model_on_every_device(ws, x, *, mesh):
    """Your shard_map puts all of ws on every device. That is data parallelism. Use P(None, 'dp') and gather layer by layer."""
    rows = x.shape[0]

    def local(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return jax.shard_map(local, mesh=mesh, in_specs=(P(), P("dp")), out_specs=P())(ws, x)


def forward_times(chip, L, D, X, small, large, *, ahead=None, shared=True, ways=2):
    """Return the table, by default the right one. ``ahead(gather, matmul, L)`` is the time with gathers ahead."""
    ahead = ahead or (lambda g, m, L: g + (L - 1) * max(g, m) + m)
    gather = all_gather_time(2 * D * D, X, chip) * 2 / ways
    times = {"waiting": {}, "ahead": {}}
    for name, rows in (("small", small), ("large", large)):
        matmul = matmul_time(2 * rows / (X if shared else 1) * D * D, chip)
        times["waiting"][name] = L * (gather + matmul)
        times["ahead"][name] = ahead(gather, matmul, L)
    return times


@exercise.misconception(of=fsdp_forward_times)
def first_gather_forgotten(**draw):
    """You forgot the first gather. It runs before the first matmul, so nothing can overlap it."""
    return forward_times(**draw, ahead=lambda g, m, L: (L - 1) * max(g, m) + m)


@exercise.misconception(of=fsdp_forward_times)
def last_matmul_forgotten(**draw):
    """You forgot the last matmul. No gather runs beside this matmul, but the matmul still takes time."""
    return forward_times(**draw, ahead=lambda g, m, L: g + (L - 1) * max(g, m))


@exercise.misconception(of=fsdp_forward_times)
def all_of_it_beside(**draw):
    """For each layer you took the longer of two times, gather and matmul. The first gather runs before all matmuls, and the last matmul runs after all gathers."""
    return forward_times(**draw, ahead=lambda g, m, L: L * max(g, m))


@exercise.misconception(of=fsdp_forward_times)
def always_overlapped(**draw):
    """You assumed that every gather except the first is overlapped. With few rows for each chip the matmul is shorter than the gather beside it."""
    return forward_times(**draw, ahead=lambda g, m, L: g + L * m)


@exercise.misconception(of=fsdp_forward_times)
def always_exposed(**draw):
    """You assumed that the gather is always longer than the matmul. With many rows for each chip the matmul is longer than the gather beside it."""
    return forward_times(**draw, ahead=lambda g, m, L: L * g + m)


@exercise.misconception(of=fsdp_forward_times)
def all_rows_on_each_chip(**draw):
    """You multiplied all rows of the batch on every chip. Each chip has its own part of the rows."""
    return forward_times(**draw, shared=False)


@exercise.misconception(of=fsdp_forward_times)
def rows_swapped(**draw):
    """You swapped the rows of the answer. In row "waiting" each gather waits for a matmul, so its times are the longer ones."""
    times = fsdp_forward_times(**draw)
    return {"waiting": times["ahead"], "ahead": times["waiting"]}


@exercise.misconception(of=fsdp_forward_times)
def gathers_one_way(**draw):
    """You used one direction of the link. On a ring data flows both ways."""
    return forward_times(**draw, ways=1)


@exercise.misconception(of=fsdp_step_bytes)
def bytes_of_one_gather(L, D, X):
    """You counted 6 bytes per number: one gather for each layer, or the reduce-scatter in bfloat16. Each layer is gathered twice in bfloat16, and its gradient is in float32."""
    return L * D * D * (2 + 4) * (X - 1) / X


@exercise.misconception(of=fsdp_step_bytes)
def bytes_of_all_reduce(L, D, X):
    """You counted 12 bytes per number: you all-reduced the gradients, or gathered in float32. A reduce-scatter is enough, and the gathers are in bfloat16."""
    return L * D * D * (2 + 2 + 8) * (X - 1) / X


@exercise.misconception(of=fsdp_step_bytes)
def bytes_of_weights_alone(L, D, X):
    """You counted the weights alone. The gradients travel too, in float32."""
    return L * D * D * (2 + 2) * (X - 1) / X


@exercise.misconception(of=fsdp_step_bytes)
def bytes_of_every_part(L, D, X):
    """You counted X hops. A layer has X parts, and a chip sends X - 1 of them."""
    return L * D * D * (2 + 2 + 4)


exercise.scenario(
    fsdp_forward_times,
    lambda chip, L, D, X, small, large: Scenario(
        chip=chip,
        rings=(X,),
        mesh={"x": X},
        arrays=[((L, D, D), P(None, "x")), ((small, D), P("x")), ((large, D), P("x"))],
    ),
)
exercise.scenario(fsdp_step_bytes, lambda L, D, X: Scenario(mesh={"x": X}, arrays=[((L, D, D), P(None, "x"))]))
