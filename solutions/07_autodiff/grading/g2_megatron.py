"""Checks, alternatives and misconceptions of G2."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from g2_megatron import (
    block_by_hand,
    block_by_types,
    exercise,
    f,
    g,
    gated_bytes,
    layers_time,
    with_gradients,
)
from grader.exercise import Scenario, normal
from grader.expect import (
    expect_at_most,
    expect_close,
    expect_collectives,
    expect_no_collectives,
    expect_traffic,
    needed,
)
from grader.hardware import all_reduce_time, latency

own = P("tp")
SMALL = {"B": 24, "D": 10}
rows = normal("B", "D", spec=own)
WIDE = {"B": 60, "D": 7}
copied = exercise.call(f, x=rows, wrt=["x"], cotangent=rows, dims=SMALL, hidden_dims=WIDE)
summed = exercise.call(g, y=rows, wrt=["y"], cotangent=rows, dims=SMALL, hidden_dims=WIDE)
copied_forwards = exercise.call(f, x=rows, dims=SMALL, hidden_dims=WIDE)
summed_forwards = exercise.call(g, y=rows, dims=SMALL, hidden_dims=WIDE)
BLOCK = {
    "x": normal("B", "D"),
    "w_in": normal("D", "F", spec=P(None, "tp")),
    "w_out": normal("F", "D", spec=P("tp")),
    "dy": normal("B", "D"),
    "returns": ("y", "dx", "dw_in", "dw_out"),
}
LARGE = {"B": 6, "D": 10, "F": 24}
HIDDEN = {"B": 5, "D": 9, "F": 60}
by_hand = exercise.call(block_by_hand, **BLOCK, dims=LARGE, hidden_dims=HIDDEN)
by_types = exercise.call(block_by_types, **BLOCK, dims=LARGE, hidden_dims=HIDDEN)


@exercise.helper
def on_one_device(x, w_in, w_out, dy):
    """Return y and the gradients of x, w_in and w_out."""
    hidden = np.tanh(x @ w_in)
    back = (dy @ w_out.T) * (1 - hidden**2)
    return hidden @ w_out, back @ w_in.T, x.T @ back, hidden.T @ dy


@exercise.helper
def over_devices(blocks, devices):
    """Return the sum of all devices' blocks, once for each device."""
    return np.tile(blocks.reshape(devices, -1, blocks.shape[1]).sum(0), (devices, 1))


@exercise.check(copied, points=0.25, public=True)
def f_value(seen):
    """f: the forward pass returns x, and the backward pass returns the sum of the cotangents"""
    expect_close(seen.out, seen.x)
    expect_close(seen.grads["x"], over_devices(seen.cotangent, seen.mesh["tp"]))


@exercise.check(summed, points=0.25, public=True)
def g_value(seen):
    """g: the forward pass returns the sum, and the backward pass returns the cotangent"""
    expect_close(seen.out, over_devices(seen.y, seen.mesh["tp"]))
    expect_close(seen.grads["y"], seen.cotangent)


@exercise.check([copied_forwards, copied], points=0.25, after=f_value)
def f_traffic(forwards, both):
    """f: nothing is sent in the forward pass, one all-reduce in the backward pass"""
    expect_close(forwards.out, forwards.x)
    expect_no_collectives(forwards)
    expect_collectives(both.only(axis="tp"), all_reduce={"tp": 1})  # a sum over tp: no right program has fewer


@exercise.check([summed_forwards, summed], points=0.25, after=g_value)
def g_traffic(forwards, both):
    """g: one all-reduce in the forward pass, nothing is sent in the backward pass"""
    expect_close(forwards.out, over_devices(forwards.y, forwards.mesh["tp"]))
    expect_collectives(forwards, all_reduce={"tp": 1})  # a sum over tp: no right program has fewer
    expect_collectives(both.only(axis="tp"), all_reduce={"tp": 1})


@exercise.check(by_hand, points=0.5, public=True, after=[f_value, g_value])
def by_hand_value(seen):
    """block_by_hand: y and all three gradients equal the results of the uncut block on one device"""
    expect_close(seen.out, on_one_device(seen.x, seen.w_in, seen.w_out, seen.dy))


@exercise.check(by_types, points=0.75, public=True)
def by_types_value(seen):
    """block_by_types: y and all three gradients equal the results of the uncut block on one device"""
    expect_close(seen.out, on_one_device(seen.x, seen.w_in, seen.w_out, seen.dy))


def _two_all_reduces(seen, least):
    n = seen.mesh["tp"]
    expect_at_most(seen, all_reduce={"tp": needed(least, 3, at=2)})
    right = 2 * 2 * (n - 1) / n * 4 * seen.x.size
    expect_traffic(seen, at_most=needed(right, 1.5 * right))


@exercise.check(by_hand, points=0.25, after=[by_hand_value, f_traffic, g_traffic])
def by_hand_traffic(seen):
    """block_by_hand: one all-reduce in each pass, of [B, D] numbers"""
    _two_all_reduces(seen, least=1)  # y and dx may travel together


@exercise.check(by_types, points=0.5, after=by_types_value)
def by_types_traffic(seen):
    """block_by_types: one all-reduce in each pass, of [B, D] numbers"""
    _two_all_reduces(seen, least=2)


@exercise.alternative(of=f)
def f_by_custom_gradient(x):
    """Use jax.custom_gradient in place of custom_vjp."""
    return jax.custom_gradient(lambda x: (x, lambda ct: jax.lax.psum(ct, "tp")))(x)


@exercise.alternative(of=g)
def g_by_custom_gradient(y):
    """Use jax.custom_gradient in place of custom_vjp."""
    return jax.custom_gradient(lambda y: (jax.lax.psum(y, "tp"), lambda ct: ct))(y)


@exercise.alternative(of=g)
def g_by_stop_gradient(y):
    """Use no custom rule: add the other devices' parts as constants."""
    return y + jax.lax.stop_gradient(jax.lax.psum(y, "tp") - y)


@exercise.alternative(of=block_by_hand)
def block_in_one_rule(x, w_in, w_out, dy):
    """Use one custom_vjp for the whole block."""

    @jax.custom_vjp
    def block(x, w_in, w_out):
        return jax.lax.psum(jnp.tanh(x @ w_in) @ w_out, "tp")

    def forward(x, w_in, w_out):
        hidden = jnp.tanh(x @ w_in)
        return jax.lax.psum(hidden @ w_out, "tp"), (x, hidden, w_in, w_out)

    def backward(kept, dy):
        x, hidden, w_in, w_out = kept
        back = (dy @ w_out.T) * (1 - hidden**2)
        return jax.lax.psum(back @ w_in.T, "tp"), x.T @ back, hidden.T @ dy

    block.defvjp(forward, backward)
    return with_gradients(block, x, w_in, w_out, dy)


@exercise.alternative(of=block_by_hand)
def block_without_rules(x, w_in, w_out, dy):
    """Write out the backward pass without any rule."""
    hidden = jnp.tanh(x @ w_in)
    back = jnp.einsum("bd,fd->bf", dy, w_out) * (1 - hidden**2)
    dx = jax.lax.psum(jnp.einsum("bf,df->bd", back, w_in), "tp")
    return jax.lax.psum(hidden @ w_out, "tp"), dx, x.T @ back, hidden.T @ dy


@exercise.alternative(of=block_by_types)
def block_of_implicit_cast(x, w_in, w_out, dy):
    """Leave the cast to JAX, because only one operation combines x with w_in."""
    block = lambda x, w_in, w_out: jax.lax.psum(jnp.tanh(x @ w_in) @ w_out, "tp")  # noqa: E731
    return with_gradients(block, x, w_in, w_out, dy)


@exercise.alternative(of=block_by_types)
def block_of_pvary(x, w_in, w_out, dy):
    """Use pvary, the older name of the cast."""
    block = lambda x, w_in, w_out: jax.lax.psum(jnp.tanh(jax.lax.pvary(x, "tp") @ w_in) @ w_out, "tp")  # noqa: E731
    return with_gradients(block, x, w_in, w_out, dy)


@exercise.misconception(of=f, fails=f_value, breaks="results and gradients as in the first table")
def f_missing(x):
    """Your f does nothing in the backward pass either. Every device used x: add the devices' cotangents."""
    return x


@exercise.misconception(of=f, fails=f_value, breaks="results and gradients as in the first table")
def f_of_means(x):
    """Your f averages the cotangents. Each cotangent is a part of the gradient: add the cotangents."""
    return jax.custom_gradient(lambda x: (x, lambda ct: jax.lax.pmean(ct, "tp")))(x)


@exercise.misconception(of=f, fails=f_value, breaks="results and gradients as in the first table")
def f_is_g(x):
    """You wrote g in place of f. In the forward pass f does nothing."""
    return jax.custom_gradient(lambda x: (jax.lax.psum(x, "tp"), lambda ct: ct))(x)


@exercise.misconception(of=g, fails=g_value, breaks="results and gradients as in the first table")
def g_is_psum(y):
    """Your backward pass adds N copies of one cotangent. With check_vma=False the backward pass of psum is a psum too. The cotangent is already whole: pass it on."""
    return jax.lax.psum(y, "tp")


@exercise.misconception(of=g, fails=g_value, breaks="results and gradients as in the first table")
def g_of_means(y):
    """You took the mean of the devices' parts. The result is their sum: add the parts."""
    return jax.custom_gradient(lambda y: (jax.lax.pmean(y, "tp"), lambda ct: ct))(y)


@exercise.misconception(of=g, fails=g_value, breaks="results and gradients as in the first table")
def g_shares_out(y):
    """You gave each device 1/N of the cotangent. Each term of a sum gets the sum's whole cotangent."""
    size = jax.lax.axis_size("tp")
    return jax.custom_gradient(lambda y: (jax.lax.psum(y, "tp"), lambda ct: ct / size))(y)


@exercise.misconception(of=f, fails=f_traffic, breaks="one all-reduce in the backward pass")
def f_by_gathering(x):
    """You gathered all cotangents and added them on every device. An all-reduce adds on the way and sends fewer bytes."""
    whole = lambda ct: jax.lax.all_gather(ct, "tp").sum(0)  # noqa: E731
    return jax.custom_gradient(lambda x: (x, whole))(x)


@exercise.misconception(of=f, fails=f_traffic, breaks="nothing sent in the forward pass")
def f_gathers_forwards(x):
    """You gathered the x of all devices and kept your own. Each device already has its x: the forward pass of f sends nothing."""
    own = lambda x: jax.lax.all_gather(x, "tp")[jax.lax.axis_index("tp")]  # noqa: E731
    return jax.custom_gradient(lambda x: (own(x), lambda ct: jax.lax.psum(ct, "tp")))(x)


@exercise.misconception(of=g, fails=g_traffic, breaks="one all-reduce in the forward pass")
def g_by_gathering(y):
    """You gathered all parts and added them on every device. An all-reduce adds on the way and sends fewer bytes."""
    whole = lambda y: jax.lax.all_gather(y, "tp").sum(0)  # noqa: E731
    return jax.custom_gradient(lambda y: (whole(y), lambda ct: ct))(y)


@exercise.misconception(of=g, fails=g_traffic, breaks="none in the backward pass")
def g_gathers_back(y):
    """You gathered the cotangents of all devices and kept your own. Each device already has its cotangent: the backward
    pass of g sends nothing."""
    own = lambda ct: jax.lax.all_gather(ct, "tp")[jax.lax.axis_index("tp")]  # noqa: E731
    return jax.custom_gradient(lambda y: (jax.lax.psum(y, "tp"), own))(y)


@exercise.alternative(of=block_by_hand)
def block_with_one_all_reduce(x, w_in, w_out, dy):
    """Send y and dx in one all-reduce."""
    hidden = jnp.tanh(x @ w_in)
    back = (dy @ w_out.T) * (1 - hidden**2)
    y, dx = jnp.split(jax.lax.psum(jnp.concatenate([hidden @ w_out, back @ w_in.T]), "tp"), 2)
    return y, dx, x.T @ back, hidden.T @ dy


@exercise.misconception(
    of=block_by_hand,
    fails=by_hand_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def block_without_f(x, w_in, w_out, dy):
    """Your dx is only one device's part of the gradient. Apply f to x at the block's start: in the backward pass f adds the devices' parts."""
    return with_gradients(lambda x, w_in, w_out: g(jnp.tanh(x @ w_in) @ w_out), x, w_in, w_out, dy)


@exercise.misconception(
    of=block_by_hand,
    fails=by_hand_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def block_without_g(x, w_in, w_out, dy):
    """Your y is only one device's part of the sum. Apply g to the block's result: in the forward pass g adds the devices' parts."""
    return with_gradients(lambda x, w_in, w_out: jnp.tanh(f(x) @ w_in) @ w_out, x, w_in, w_out, dy)


@exercise.misconception(
    of=block_by_hand,
    fails=by_hand_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def block_summed_again(x, w_in, w_out, dy):
    """You summed dx again after f had summed it, so dx is N times too large. Reduce dx once, where x enters the block."""
    y, dx, dw_in, dw_out = block_by_hand(x, w_in, w_out, dy)
    return y, jax.lax.psum(dx, "tp"), dw_in, dw_out


@exercise.misconception(
    of=block_by_hand,
    fails=by_hand_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def block_sums_weights(x, w_in, w_out, dy):
    """You summed the weights' gradients over tp. Each device has its own weights and already has their whole gradient."""
    y, dx, dw_in, dw_out = block_by_hand(x, w_in, w_out, dy)
    return y, dx, jax.lax.psum(dw_in, "tp"), jax.lax.psum(dw_out, "tp")


@exercise.misconception(
    of=block_by_hand,
    fails=by_hand_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def block_of_psum(x, w_in, w_out, dy):
    """You used psum in place of g. With check_vma=False the backward pass of psum adds N copies of dy, so all gradients are N times too large."""
    block = lambda x, w_in, w_out: jax.lax.psum(jnp.tanh(f(x) @ w_in) @ w_out, "tp")  # noqa: E731
    return with_gradients(block, x, w_in, w_out, dy)


@exercise.misconception(
    of=block_by_hand,
    fails=by_hand_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def block_by_psum_alone(x, w_in, w_out, dy):
    """You used psum in place of g, and left out f. With check_vma=False the backward pass of psum adds N copies of dy, and nothing adds the devices' parts of dx. Use both f and g."""
    block = lambda x, w_in, w_out: jax.lax.psum(jnp.tanh(x @ w_in) @ w_out, "tp")  # noqa: E731
    return with_gradients(block, x, w_in, w_out, dy)


@exercise.misconception(
    of=block_by_hand,
    fails=by_hand_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def block_sums_all(x, w_in, w_out, dy):
    """You summed all gradients over tp again. f has already summed dx, and each device already has the whole gradient of its own weights."""
    y, *grads = block_by_hand(x, w_in, w_out, dy)
    return y, *jax.lax.psum(grads, "tp")


@exercise.misconception(
    of=block_by_hand,
    fails=by_hand_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def block_with_f_and_g_swapped(x, w_in, w_out, dy):
    """You swapped f and g. f is at the start of the block, where every device uses x. g is at its end, where the parts are added."""
    return with_gradients(lambda x, w_in, w_out: f(jnp.tanh(g(x) @ w_in) @ w_out), x, w_in, w_out, dy)


@exercise.misconception(
    of=block_by_hand,
    fails=by_hand_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def block_with_f_inside(x, w_in, w_out, dy):
    """You applied f to the hidden units, too. Each device has its own hidden units, so their cotangents belong to different numbers. Apply f only to x."""
    return with_gradients(lambda x, w_in, w_out: g(f(jnp.tanh(f(x) @ w_in)) @ w_out), x, w_in, w_out, dy)


@exercise.misconception(of=block_by_hand, fails=by_hand_traffic, breaks="and nothing else")
def block_gathers_hidden(x, w_in, w_out, dy):
    """You gathered the weights, so every device computes everything. Each MLP unit needs only its own weights."""
    whole_in = jax.lax.all_gather(w_in, "tp", axis=1, tiled=True)
    whole_out = jax.lax.all_gather(w_out, "tp", axis=0, tiled=True)
    block = lambda x, w_in, w_out: jnp.tanh(x @ w_in) @ w_out  # noqa: E731
    y, dx, dw_in, dw_out = with_gradients(block, x, whole_in, whole_out, dy)
    me, size = jax.lax.axis_index("tp"), w_in.shape[1]
    cut = jax.lax.dynamic_slice_in_dim
    return y, dx, cut(dw_in, me * size, size, 1), cut(dw_out, me * size, size, 0)


@exercise.misconception(
    of=block_by_types,
    fails=by_types_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def types_summed_again(x, w_in, w_out, dy):
    """You summed dx again. The type of dx says that dx is equal on all devices: the transpose of the cast has already summed it."""
    y, dx, dw_in, dw_out = block_by_types(x, w_in, w_out, dy)
    return y, jax.lax.psum(dx, "tp"), dw_in, dw_out


@exercise.misconception(
    of=block_by_types,
    fails=by_types_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def types_never_summed(x, w_in, w_out, dy):
    """You did not add the devices' outputs. Each device has computed its own units only, so y varies over tp, and dy does not: add the outputs with psum."""
    return with_gradients(lambda x, w_in, w_out: jnp.tanh(x @ w_in) @ w_out, x, w_in, w_out, dy)


@exercise.misconception(
    of=block_by_types,
    fails=by_types_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def types_of_mean(x, w_in, w_out, dy):
    """You took the mean of the devices' outputs. The block's output is their sum: add the outputs."""
    block = lambda x, w_in, w_out: jax.lax.pmean(jnp.tanh(x @ w_in) @ w_out, "tp")  # noqa: E731
    return with_gradients(block, x, w_in, w_out, dy)


@exercise.misconception(
    of=block_by_types,
    fails=by_types_value,
    breaks="y and all three gradients equal the results of the uncut block on one device",
)
def types_cast_outside(x, w_in, w_out, dy):
    """You cast x before JAX differentiates the block, so JAX returns each device's part of dx. Cast x inside the block: the cast's transpose adds the parts."""
    block = lambda x, w_in, w_out: jax.lax.psum(jnp.tanh(x @ w_in) @ w_out, "tp")  # noqa: E731
    return with_gradients(block, jax.lax.pcast(x, "tp", to="varying"), w_in, w_out, dy)


@exercise.misconception(of=block_by_types, fails=by_types_traffic, breaks="one all-reduce in each pass")
def types_cast_twice(x, w_in, w_out, dy):
    """You use x in several places, and JAX casts x in each place. Each cast costs an all-reduce in the backward pass. Cast once, then use the result."""

    def block(x, w_in, w_out):
        left, right = jnp.split(w_in, [1], axis=1)
        return jax.lax.psum(jnp.tanh(jnp.concatenate([x @ left, x @ right], axis=1)) @ w_out, "tp")

    return with_gradients(block, x, w_in, w_out, dy)


@exercise.misconception(of=gated_bytes)
def gated_cast_once(T, D, X):
    """You counted one all-reduce in the backward pass. The program multiplies x by w_1 and by w_3. JAX casts x in both places, so there are two all-reduces."""
    return 2 * 2 * (X - 1) / X * 2 * T * D


@exercise.misconception(of=gated_bytes)
def gated_forwards(T, D, X):
    """You counted the forward pass only. Each cast of x is an all-reduce in the backward pass."""
    return 2 * (X - 1) / X * 2 * T * D


@exercise.misconception(of=gated_bytes)
def gated_gathers(T, D, X):
    """You counted one phase per all-reduce. An all-reduce is a reduce-scatter and an all-gather, so a device sends 2 (X - 1) / X · V bytes."""
    return 3 * (X - 1) / X * 2 * T * D


@exercise.misconception(of=gated_bytes)
def gated_in_float32(T, D, X):
    """You counted 4 bytes per number. The all-reduces send numbers with the dtype of x, bfloat16: 2 bytes per number."""
    return 3 * 2 * (X - 1) / X * 4 * T * D


@exercise.misconception(of=layers_time)
def layers_half(chip, L, T, D, X):
    """Your answer is half of the time. Each layer has two blocks. Each block has one all-reduce in the forward pass and one in the backward pass."""
    return L * 2 * all_reduce_time(2 * T * D, X, chip, model="exact")


@exercise.misconception(of=layers_time)
def layers_one_way(chip, L, T, D, X):
    """You used one direction of a link. On a ring data flows both ways: use W."""
    return L * 8 * all_reduce_time(2 * T * D, X, chip, model="exact")


@exercise.misconception(of=layers_time)
def layers_of_parts(chip, L, T, D, X):
    """You divided by the number of devices. Each device holds a part of the sum for *all* activations: V counts the bytes of the whole array."""
    return L * 4 * all_reduce_time(2 * T * D / X, X, chip, model="exact")


@exercise.misconception(of=layers_time)
def layers_of_whole_arrays(chip, L, T, D, X):
    """You left out (X - 1) / X. A device keeps its own part and sends the rest."""
    return L * 4 * all_reduce_time(2 * T * D, X, chip)


exercise.scenario(gated_bytes, lambda T, D, X: Scenario(mesh={"x": X}, arrays=[((T, D), P(None, "x"))]))
exercise.scenario(
    layers_time,
    lambda chip, L, T, D, X: Scenario(chip=chip, rings=(X,), mesh={"x": X}, least=L * 4 * 2 * latency(X)),
)
