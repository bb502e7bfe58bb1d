"""H5: checks, misconceptions and alternatives."""

from functools import partial
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np

from grader.exercise import Scenario, array, integers, normal
from grader.expect import (
    Failure,
    expect_close,
    expect_independent,
    expect_no_collectives,
    expect_only,
    expect_outcomes,
    expect_traffic,
    needed,
)
from grader.hardware import all_reduce_time, latency, matmul_time
from h5_tensor_parallel import CUT, exercise, fused_columns, gated_mlp, gated_mlp_time, init

# -- what is asked and checked -----------------------------------------------------------------


@exercise.helper
def weights(rng, shape):
    """Draw weights so small that a matmul's results are about 1."""
    return rng.standard_normal(shape) / shape[0] ** 0.5


trained = exercise.call(
    gated_mlp,
    x=normal("B", "D"),
    w1=array("D", "F", spec=CUT["w1"], draw=weights),
    w3=array("D", "F", spec=CUT["w3"], draw=weights),
    w2=array("F", "D", spec=CUT["w2"], draw=weights),
    b=normal("D"),
    dy=normal("B", "D"),
    returns=("y", {"x": "dx", "b": "db", "w1": "dw1", "w3": "dw3", "w2": "dw2"}),
    dims={"B": 5, "D": 12, "F": 36},
    hidden_dims={"B": 7, "D": 36, "F": 60},
)


@exercise.helper
def exactly(seed):
    """Return a declaration of the argument ``seed`` with this value."""
    return array(dtype="int32", draw=lambda rng, shape: np.full(shape, seed))


NEW = {"returns": {"w1": "w1", "w3": "w3", "w2": "w2"}, "static": {"D": 48, "F": 96}}
HIDDEN = {"D": 75, "F": 132}
drawn = exercise.call(init, seed=integers(0, 2**30), **NEW, hidden_static=HIDDEN)
one_seed = exercise.call(init, seed=exactly(1), **NEW, hidden_static=HIDDEN)
next_seed = exercise.call(init, seed=exactly(2), **NEW, hidden_static=HIDDEN)
far_seed = exercise.call(init, seed=exactly(1001), **NEW, hidden_static=HIDDEN)
cases = exercise.cases(
    fused_columns,
    public=[{"F": 4, "N": 2}, {"F": 6, "N": 3}, {"F": 6, "N": 4}],
    hidden=lambda rng: [
        {"F": int(n * rng.integers(3, 9)) + odd, "N": n} for n in (1, 2, 3, 5, 8) for odd in (0, n // 3)
    ],
)


@exercise.helper
def on_one_device(x, w1, w3, w2, b, dy):
    """Return y and the gradients in float64."""
    gate, up = x @ w1, x @ w3
    part = 1 / (1 + np.exp(-gate))
    dhidden = dy @ w2.T
    dup, dgate = dhidden * gate * part, dhidden * up * (part + gate * part * (1 - part))
    grads = {"x": dgate @ w1.T + dup @ w3.T, "b": dy.sum(0), "w1": x.T @ dgate, "w3": x.T @ dup}
    return gate * part * up @ w2 + b, grads | {"w2": (gate * part * up).T @ dy}


@exercise.check(trained, points=0.5, public=True)
def gated_forward(seen):
    """gated_mlp: y equals the y of one device"""
    expect_close(seen.out[0], on_one_device(**seen.inputs)[0])


@exercise.check(trained, points=0.75, public=True)
def gated_weights(seen):
    """gated_mlp: the gradients of w1, w3, w2 and b equal those of one device"""
    due = on_one_device(**seen.inputs)[1]
    for name in ("w1", "w3", "w2", "b"):
        expect_close(seen.out[1][name], due[name])


@exercise.check(trained, points=0.5)
def gated_dx(seen):
    """gated_mlp: the gradient of x equals the gradient of one device, and is whole on every device"""
    expect_close(seen.out[1]["x"], on_one_device(**seen.inputs)[1]["x"])


@exercise.check(trained, points=0.5, after=[gated_forward, gated_dx, gated_weights])
def gated_traffic(seen):
    """gated_mlp: at most one all-reduce of [B, D] in each pass, or a reduce-scatter and an all-gather in its place"""
    # A program may send y and dx together, in one all-reduce.
    n = seen.mesh["tp"]
    expect_only(seen, "all_reduce", "reduce_scatter", "all_gather")
    for half in ("reduce_scatter", "all_gather"):
        count = sum(c.count.most for c in seen.collectives if c.kind in (half, "all_reduce"))
        if count > 2:
            told = f"both passes together have {count:g} collectives of kind all_reduce or {half}; the budget is 2"
            raise Failure(told, expected=2, actual=count)
    right = 2 * 2 * 4 * seen.x.size * (n - 1) / n
    expect_traffic(seen, at_most=needed(right, 1.5 * right))  # wrong: three all-reduces


@exercise.check(drawn, points=0.25, public=True)
def init_spread(seen):
    """init: each device returns its part of the weights: normal numbers, with variance 1/D and 1/F for the whole D and
    F; no communication"""
    expect_no_collectives(seen)
    for name, shape in (("w1", (seen.D, seen.F)), ("w3", (seen.D, seen.F)), ("w2", (seen.F, seen.D))):
        if seen.out[name].shape != shape:
            told = f"all devices' parts of {name} together have the shape {seen.out[name].shape}, expected {shape}"
            raise Failure(told, expected=shape, actual=seen.out[name].shape)
        expect_close(seen.out[name], seen.out[name].value, dtype="float32")  # copies must be equal
        variance = float(np.mean(seen.out[name].value.astype(np.float64) ** 2))
        if not 0.8 < variance * shape[0] < 1.25:
            raise Failure(f"{name} has the variance {variance:.3g}", expected=1 / shape[0], actual=variance)
        tails = float(np.mean(seen.out[name].value.astype(np.float64) ** 4)) / variance**2
        if not 2.6 < tails < 3.5:
            told = f"the numbers of {name} are not normal: their fourth moment is {tails:.2g} times variance²"
            raise Failure(told, expected=3, actual=tails)


@exercise.helper
def parts_of(seen, name):
    """Return the numbers of each device's part of a weight."""
    cut = CUT[name].index("tp")
    return [part.ravel() for part in np.split(seen.out[name].value.astype(np.float64), seen.mesh["tp"], axis=cut)]


PLACES = {
    "in two weights": lambda a, b: a[0] == b[0] and a[2] == b[2],
    "on two devices": lambda a, b: a[:2] == b[:2],
    "for two seeds": lambda a, b: a[0] != b[0],
}


def places_of_equal_numbers(parts):
    """Return where numbers occur again, in words.

    Args:
        parts: the numbers of each device's part, by (seed, weight, device).
    """
    found = {key: set(part.tolist()) for key, part in parts.items()}
    places = ["in one weight"] if any(len(found[key]) < 0.9 * len(part) for key, part in parts.items()) else []
    pairs = [(a, b) for a, b in combinations(found, 2) if len(found[a] & found[b]) > 0.1 * len(found[a])]
    places += [words for words, at in PLACES.items() if any(at(*pair) for pair in pairs)]
    return " and ".join(places) or "in many places"


@exercise.check([drawn, one_seed, far_seed, next_seed], points=0.5, after=init_spread)
def init_independent(one, *others):
    """init: no two devices, weights or seeds get equal numbers"""
    fan_in = {"w1": one.D, "w3": one.D, "w2": one.F}
    parts = {
        (int(seen.seed), name, device): np.round(part * fan_in[name] ** 0.5, 6)
        for seen in (one, *others)
        for name in fan_in
        for device, part in enumerate(parts_of(seen, name))
    }
    numbers = np.concatenate(list(parts.values()))
    again = 1 - len(np.unique(numbers)) / len(numbers)
    if not again < 0.1:
        raise Failure(
            f"no two devices, weights or seeds may get equal numbers, but {again:.0%} of all numbers occur again "
            f"({places_of_equal_numbers(parts)})"
        )
    expect_independent(
        {
            f"{name} of device tp={device} for seed {seen.seed}": part
            for seen in (one, *others)
            for name in fan_in
            for device, part in enumerate(parts_of(seen, name))
        }
    )


@exercise.check(cases, points=0.5, public=True)
def fused_order(seen):
    """fused_columns: each device has matching columns of w1 and w3; ValueError if N does not divide F"""
    expect_outcomes(seen, ints=True)


# -- misconceptions ----------------------------------------------------------------------------


def total(parts):
    return jax.lax.psum(parts, "tp")


def written(x, w1, w3, w2, b, dy, y_of=None, dx_of=None, seen_dy=lambda dy: dy, grads_of=lambda grads: grads):
    """Run the solution with the given changes."""
    gate, up = x @ w1, x @ w3
    part = jax.nn.sigmoid(gate)
    hidden = gate * part * up
    y = y_of(hidden @ w2, b) if y_of else total(hidden @ w2) + b
    dy = seen_dy(dy)
    dhidden = dy @ w2.T
    dup, dgate = dhidden * gate * part, dhidden * up * part * (1 + gate * (1 - part))
    back = (dgate @ w1.T, dup @ w3.T)
    grads = {"w1": x.T @ dgate, "w3": x.T @ dup, "w2": hidden.T @ dy, "b": dy.sum(axis=0)}
    return y, grads_of({"x": dx_of(*back) if dx_of else total(back[0] + back[1]), **grads})


@exercise.misconception(of=gated_mlp, fails=gated_forward, breaks="y and gradients equal those")
def bias_inside_the_sum(x, w1, w3, w2, b, dy):
    """You added b on every device before the sum, which adds it N times. Add it once, after the sum."""
    return written(x, w1, w3, w2, b, dy, y_of=lambda parts, b: total(parts + b))


@exercise.misconception(of=gated_mlp, fails=gated_forward, breaks="y and gradients equal those")
def y_left_partial(x, w1, w3, w2, b, dy):
    """Your y has only the contribution of a device's own MLP units. With check_vma=False JAX does not report this. Add
    the parts with an all-reduce."""
    return written(x, w1, w3, w2, b, dy, y_of=lambda parts, b: parts + b)


@exercise.misconception(of=gated_mlp, fails=gated_forward, breaks="y and gradients equal those")
def silu_behind_the_matmul_of_both(x, w1, w3, w2, b, dy):
    """You applied silu to gate times up. Apply it to the gate alone."""
    y = total(jax.nn.silu((x @ w1) * (x @ w3)) @ w2) + b
    return y, written(x, w1, w3, w2, b, dy)[1]


@exercise.misconception(
    of=gated_mlp, fails=[gated_dx, gated_forward, gated_weights], breaks="y and gradients equal those"
)
def silu_of_the_other(x, w1, w3, w2, b, dy):
    """You applied silu to x @ w3. Apply it to x @ w1."""
    y, grads = written(x, w3, w1, w2, b, dy)
    return y, grads | {"w1": grads["w3"], "w3": grads["w1"]}


@exercise.misconception(form_of=silu_of_the_other, breaks="y and gradients equal those")
def silu_of_the_other_and_names_kept(x, w1, w3, w2, b, dy):
    """Like `silu_of_the_other`, but the backward pass uses w1 for the gate's gradient and w3 for the gradient of up."""
    gate, up = x @ w3, x @ w1
    act, slope = jax.jvp(jax.nn.silu, (gate,), (jnp.ones_like(gate),))
    dhidden = dy @ w2.T
    dgate, dup = dhidden * up * slope, dhidden * act
    grads = {"x": total(dgate @ w1.T + dup @ w3.T), "w1": x.T @ dgate, "w3": x.T @ dup}
    return total(act * up @ w2) + b, grads | {"w2": (act * up).T @ dy, "b": dy.sum(axis=0)}


@exercise.misconception(of=gated_mlp, fails=gated_forward, breaks="y and gradients equal those")
def silu_of_the_other_forward(x, w1, w3, w2, b, dy):
    """Your forward pass applies silu to x @ w3. Apply it to x @ w1, as your backward pass does."""
    return written(x, w3, w1, w2, b, dy)[0], written(x, w1, w3, w2, b, dy)[1]


@exercise.misconception(of=gated_mlp, fails=gated_weights, breaks="y and gradients equal those")
def gate_and_up_exchanged(x, w1, w3, w2, b, dy):
    """You swapped the gradients of w1 and w3. w1 gives the gate, to which silu is applied."""
    return written(x, w1, w3, w2, b, dy, grads_of=lambda grads: grads | {"w1": grads["w3"], "w3": grads["w1"]})


@exercise.misconception(of=gated_mlp, fails=gated_dx, breaks="y and gradients equal those")
def gate_and_up_exchanged_for_dx(x, w1, w3, w2, b, dy):
    """Your dx multiplies the gate's gradient by w3.T, or the gradient of up by w1.T. x @ w1 is the gate: multiply its gradient by w1.T."""
    gate, up = x @ w1, x @ w3
    act, slope = jax.jvp(jax.nn.silu, (gate,), (jnp.ones_like(gate),))
    dhidden = dy @ w2.T
    y, grads = written(x, w1, w3, w2, b, dy)
    return y, grads | {"x": total(dhidden * up * slope @ w3.T + dhidden * act @ w1.T)}


@exercise.misconception(of=gated_mlp, fails=gated_dx, breaks="the gradients of x and b are whole")
def dx_left_partial(x, w1, w3, w2, b, dy):
    """Your dx has only the contribution of a device's own MLP units. All units used x, so add the parts of all devices: sum over tp."""
    return written(x, w1, w3, w2, b, dy, dx_of=lambda gate, up: gate + up)


@exercise.misconception(of=gated_mlp, fails=gated_dx, breaks="y and gradients equal those")
def dx_of_the_gate_alone(x, w1, w3, w2, b, dy):
    """Your dx has the part of one matmul only. x is an operand of x @ w1 and of x @ w3: add both parts."""
    return written(x, w1, w3, w2, b, dy, dx_of=lambda gate, up: total(gate))


@exercise.misconception(of=gated_mlp, fails=gated_dx, breaks="y and gradients equal those")
def dx_averaged(x, w1, w3, w2, b, dy):
    """You averaged dx over tp, which makes it N times too small. Each device has a part of dx: add the parts."""
    return written(x, w1, w3, w2, b, dy, dx_of=lambda gate, up: jax.lax.pmean(gate + up, "tp"))


@exercise.misconception(of=gated_mlp, fails=[gated_dx, gated_weights], breaks="y and gradients equal those")
def copies_of_dy_summed(x, w1, w3, w2, b, dy):
    """All gradients are N times too large. Either you summed dy over tp, or JAX did, because it differentiated the psum of y. Every device holds a copy of dy, not a part. Differentiate only a device's part of y, without the psum."""
    return written(x, w1, w3, w2, b, dy, seen_dy=total)


@exercise.misconception(form_of=copies_of_dy_summed)
def psum_differentiated(x, w1, w3, w2, b, dy):
    """Like `copies_of_dy_summed`, by jax.vjp, and dx is left partial."""

    def block(x, w1, w3, w2, b):
        return jax.lax.psum((jax.nn.silu(x @ w1) * (x @ w3)) @ w2, "tp") + b

    y, back = jax.vjp(block, x, w1, w3, w2, b)
    return y, dict(zip(("x", "w1", "w3", "w2", "b"), back(dy), strict=True))


@exercise.misconception(
    of=gated_mlp, fails=[gated_dx, gated_forward, gated_weights], breaks="y and gradients equal those"
)
def sigmoid_for_silu(x, w1, w3, w2, b, dy):
    """You used the sigmoid alone. silu(g) is g times the sigmoid of g."""

    def part(x, w1, w3, w2):
        return (jax.nn.sigmoid(x @ w1) * (x @ w3)) @ w2

    y, back = jax.vjp(part, x, w1, w3, w2)
    dx, *weights = back(dy)
    grads = dict(zip(("w1", "w3", "w2"), weights, strict=True))
    return total(y) + b, grads | {"x": total(dx), "b": dy.sum(axis=0)}


@exercise.misconception(of=gated_mlp, fails=gated_weights, breaks="the gradients of x and b are whole")
def bias_gradient_summed(x, w1, w3, w2, b, dy):
    """You summed the bias's gradient over tp. dy is whole on every device, so the sum of its rows is complete on every device."""
    return written(x, w1, w3, w2, b, dy, grads_of=lambda grads: grads | {"b": total(grads["b"])})


@exercise.misconception(of=gated_mlp, fails=gated_traffic, breaks="in each pass at most one all-reduce of [B, D]")
def bias_gradient_averaged(x, w1, w3, w2, b, dy):
    """You averaged the bias's gradient over tp. The devices' values are equal already, so this sends bytes and changes nothing."""
    return written(x, w1, w3, w2, b, dy, grads_of=lambda g: g | {"b": jax.lax.pmean(g["b"], "tp")})


@exercise.misconception(of=gated_mlp, fails=gated_weights, breaks="y and gradients equal those")
def weights_summed(x, w1, w3, w2, b, dy):
    """You summed the gradients of the weights over tp. Each device has different columns and rows: add nothing."""
    return written(x, w1, w3, w2, b, dy, grads_of=lambda g: g | {name: total(g[name]) for name in ("w1", "w3", "w2")})


@exercise.misconception(form_of=weights_summed, breaks="y and gradients equal those")
def w1_summed(x, w1, w3, w2, b, dy):
    """Like `weights_summed`, for w1 alone."""
    return written(x, w1, w3, w2, b, dy, grads_of=lambda g: g | {"w1": total(g["w1"])})


@exercise.misconception(of=gated_mlp, fails=[gated_dx, gated_weights], breaks="y and gradients equal those")
def up_left_out_of_the_gate(x, w1, w3, w2, b, dy):
    """Your gradient of the gate leaves out the factor x @ w3, by which the gate is multiplied."""
    gate = x @ w1
    act, slope = jax.jvp(jax.nn.silu, (gate,), (jnp.ones_like(gate),))
    dhidden = dy @ w2.T
    dgate, dup = dhidden * slope, dhidden * act
    y, grads = written(x, w1, w3, w2, b, dy)
    return y, grads | {"x": total(dgate @ w1.T + dup @ w3.T), "w1": x.T @ dgate}


@exercise.misconception(of=gated_mlp, fails=gated_traffic, breaks="in each pass at most one all-reduce of [B, D]")
def second_matmul_gathered(x, w1, w3, w2, b, dy):
    """You gathered the MLP units and w2, so every device repeats the whole last matmul. Multiply your own units by your own rows of w2, and all-reduce the parts of y."""
    hidden = jax.lax.all_gather(jax.nn.silu(x @ w1) * (x @ w3), "tp", axis=1, tiled=True)
    y = hidden @ jax.lax.all_gather(w2, "tp", tiled=True) + b
    return y, written(x, w1, w3, w2, b, dy)[1]


@exercise.misconception(of=gated_mlp, fails=gated_weights, breaks="y and gradients equal those")
def gate_as_if_it_were_a_factor(x, w1, w3, w2, b, dy):
    """You differentiated silu(g) as if it were g times a constant. Its derivative is s * (1 + g * (1 - s)), with s = sigmoid(g)."""
    part = jax.nn.sigmoid(x @ w1)
    y, grads = written(x, w1, w3, w2, b, dy)
    dgate = (dy @ w2.T) * (x @ w3) * part
    return y, grads | {"w1": x.T @ dgate}


@exercise.misconception(of=gated_mlp, fails=[gated_dx, gated_weights], breaks="y and gradients equal those")
def gate_without_its_first_term(x, w1, w3, w2, b, dy):
    """Your derivative of silu has only one of its two terms. With s = sigmoid(g), the derivative of g * s is s + g * s * (1 - s)."""
    gate, up = x @ w1, x @ w3
    part = jax.nn.sigmoid(gate)
    dhidden = dy @ w2.T
    dgate, dup = dhidden * up * gate * part * (1 - part), dhidden * gate * part
    y, grads = written(x, w1, w3, w2, b, dy)
    return y, grads | {"x": total(dgate @ w1.T + dup @ w3.T), "w1": x.T @ dgate}


@exercise.misconception(of=gated_mlp, fails=gated_traffic, breaks="in each pass at most one all-reduce of [B, D]")
def dx_summed_in_two(x, w1, w3, w2, b, dy):
    """You all-reduced the gate's part of dx and the up's part separately. Add them first: then one all-reduce is enough."""
    return written(x, w1, w3, w2, b, dy, dx_of=lambda gate, up: total(gate) + total(up))


@exercise.misconception(of=gated_mlp, fails=gated_traffic, breaks="one all-reduce of [B, D]")
def dx_summed_side_by_side(x, w1, w3, w2, b, dy):
    """You sent the gate's part of dx and the up's part side by side. Add them first, and send half the bytes."""
    both = lambda gate, up: sum(jnp.split(total(jnp.concatenate([gate, up])), 2))  # noqa: E731
    return written(x, w1, w3, w2, b, dy, dx_of=both)


@exercise.misconception(
    of=gated_mlp,
    fails=gated_traffic,
    breaks="one all-reduce of [B, D], or a reduce-scatter and an all-gather in its place",
)
def hidden_units_gathered(x, w1, w3, w2, b, dy):
    """You gathered the MLP units after the first matmuls. silu and the multiplication by up are elementwise operations: go on with your own units."""
    whole = jax.lax.all_gather(x @ w1, "tp", axis=1, tiled=True)
    gate = jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("tp") * w1.shape[1], w1.shape[1], axis=1)
    y = total(jax.nn.silu(gate) * (x @ w3) @ w2) + b
    return y, written(x, w1, w3, w2, b, dy)[1]


@exercise.misconception(of=gated_mlp, fails=gated_traffic, breaks="in each pass at most one all-reduce of [B, D]")
def weights_gathered(x, w1, w3, w2, b, dy):
    """You gathered the weights, so every device computes everything. Leave cut weights where they are, and send arrays of the size of x."""
    w1, w3 = (jax.lax.all_gather(w, "tp", axis=1, tiled=True) for w in (w1, w3))
    w2 = jax.lax.all_gather(w2, "tp", tiled=True)
    units = w2.shape[0] // jax.lax.axis_size("tp")
    own = partial(jax.lax.dynamic_slice_in_dim, start_index=jax.lax.axis_index("tp") * units, slice_size=units)
    y, g = written(x, w1, w3, w2, b, dy, y_of=lambda parts, b: parts + b, dx_of=lambda gate, up: gate + up)
    return y, g | {"w1": own(g["w1"], axis=1), "w3": own(g["w3"], axis=1), "w2": own(g["w2"], axis=0)}


@exercise.misconception(of=gated_mlp, fails=gated_traffic, breaks="in each pass at most one all-reduce of [B, D]")
def reduced_over_all_axes(x, w1, w3, w2, b, dy):
    """You averaged over the other axes of the mesh as well. Devices along these axes hold copies, so this sends many bytes and changes nothing."""
    others = tuple(axis for axis in jax.typeof(x).sharding.mesh.axis_names if axis != "tp")
    mean = (lambda a: jax.lax.pmean(a, others)) if others else lambda a: a
    return written(x, w1, w3, w2, b, dy, y_of=lambda parts, b: mean(total(parts)) + b)


def drawn_with(keys, D, F, fan_in=None):
    """Run the solution with these three keys, and a variance of 1 / fan_in for w2."""
    units = F // jax.lax.axis_size("tp")
    w1, w3 = (jax.random.normal(key, (D, units)) / D**0.5 for key in keys[:2])
    return {"w1": w1, "w3": w3, "w2": jax.random.normal(keys[2], (units, D)) / (fan_in or F) ** 0.5}


def own_key(seed):
    return jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp"))


@exercise.misconception(of=init, fails=init_independent, breaks="no two devices, weights or seeds get equal numbers")
def one_key_for_all_devices(seed, *, D, F):
    """All devices used one key, so all drew the same MLP units: N copies of a small block. Fold the device's index along tp into the key."""
    return drawn_with(jax.random.split(jax.random.key(seed), 3), D, F)


def shared_by_seeds(*calls):
    """For `gives`: require that numbers differ for each seed alone, and that different seeds share only some of them."""
    of_seeds = [np.concatenate([seen.out[name].value.ravel() for name in CUT]) for seen in calls]
    found = [np.unique(np.round(numbers.astype(np.float64), 6)) for numbers in of_seeds]
    if any(len(own) < 0.9 * len(numbers) for own, numbers in zip(found, of_seeds, strict=True)):
        raise Failure("this mistake gives other numbers")
    if np.array_equal(found[-2], found[-1]):
        raise Failure("this mistake gives numbers that depend on the seed")


@exercise.misconception(
    of=init,
    fails=init_independent,
    gives=shared_by_seeds,
    breaks="no two devices, weights or seeds get equal numbers",
)
def device_added_to_the_seed(seed, *, D, F):
    """You computed the key's seed from the seed and the device's index, so a device has the weights that another device has for another seed. Fold the index into the key of the seed."""
    return drawn_with(jax.random.split(jax.random.key(seed + jax.lax.axis_index("tp")), 3), D, F)


@exercise.misconception(of=init, fails=init_independent, form_of=device_added_to_the_seed)
def thousand_per_device_added_to_the_seed(seed, *, D, F):
    """Like `device_added_to_the_seed`, but the seed grows by 1000 for each device."""
    return drawn_with(jax.random.split(jax.random.key(seed + 1000 * jax.lax.axis_index("tp")), 3), D, F)


@exercise.misconception(of=init, fails=init_independent, form_of=device_added_to_the_seed)
def seed_multiplied_for_each_device(seed, *, D, F):
    """Like `device_added_to_the_seed`, but the seed is multiplied by a number of the device."""
    return drawn_with(jax.random.split(jax.random.key(seed * (1 + jax.lax.axis_index("tp"))), 3), D, F)


@exercise.misconception(of=init, fails=init_independent, breaks="no two devices, weights or seeds get equal numbers")
def one_key_for_gate_and_up(seed, *, D, F):
    """Two of your weights have equal numbers: you drew w1 and w3 with one key, or made one weight from another. Split the key, and draw each weight with its own key."""
    keys = jax.random.split(own_key(seed), 2)
    return drawn_with([keys[0], keys[0], keys[1]], D, F)


@exercise.misconception(of=init, fails=init_independent, breaks="no two devices, weights or seeds get equal numbers")
def one_key_for_all_weights(seed, *, D, F):
    """You used one key three times. One key gives the same numbers for every shape. Split the key."""
    return drawn_with([own_key(seed)] * 3, D, F)


@exercise.misconception(of=init, fails=init_independent, breaks="no two devices, weights or seeds get equal numbers")
def seed_ignored(seed, *, D, F):
    """Your weights do not depend on the seed. Make the key from the seed."""
    return drawn_with(jax.random.split(own_key(0), 3), D, F)


@exercise.misconception(of=init, fails=init_spread, breaks="each device returns its part")
def all_units_on_each_device(seed, *, D, F):
    """Each device drew F MLP units, so all devices together drew N times too many. A device's part has F/N units."""
    k1, k3, k2 = jax.random.split(own_key(seed), 3)
    w1, w3 = (jax.random.normal(key, (D, F)) / D**0.5 for key in (k1, k3))
    return {"w1": w1, "w3": w3, "w2": jax.random.normal(k2, (F, D)) / F**0.5}


@exercise.misconception(of=init, fails=init_spread, breaks="nothing is sent")
def scaled_by_measured_variance(seed, *, D, F):
    """You measured the variance over all devices and scaled by it. You know the variance of the drawn numbers, so send
    nothing."""
    drawn, fan_in = drawn_with(jax.random.split(own_key(seed), 3), D, F), {"w1": D, "w3": D, "w2": F}
    mean = lambda w: jax.lax.pmean(jnp.mean(w**2), "tp")  # noqa: E731
    return {name: w / jnp.sqrt(mean(w) * fan_in[name]) for name, w in drawn.items()}


@exercise.misconception(of=init, fails=init_spread, breaks="variance as above")
def scaled_by_own_rows(seed, *, D, F):
    """You scaled w2 by the rows of one device. y is a sum over all F MLP units, so its variance is N times too large."""
    return drawn_with(jax.random.split(own_key(seed), 3), D, F, fan_in=F // jax.lax.axis_size("tp"))


@exercise.misconception(of=init, fails=init_spread, breaks="variance as above")
def scaled_by_the_variance(seed, *, D, F):
    """You multiplied by the variance. Multiply by the standard deviation, its root: 1/√D for w1 and w3, 1/√F for w2."""
    drawn = drawn_with(jax.random.split(own_key(seed), 3), D, F)
    return {"w1": drawn["w1"] / D**0.5, "w3": drawn["w3"] / D**0.5, "w2": drawn["w2"] / F**0.5}


@exercise.misconception(of=init, fails=init_spread, breaks="variance as above")
def scaled_by_the_other_dimension(seed, *, D, F):
    """You scaled w2 by D. Scale w2 by the number of terms in the sum: F."""
    return drawn_with(jax.random.split(own_key(seed), 3), D, F, fan_in=D)


@exercise.misconception(of=init, fails=init_spread, breaks="normal numbers")
def uniform_numbers(seed, *, D, F):
    """You drew uniform numbers with the right variance. Draw normal numbers: jax.random.normal."""
    units, scale = F // jax.lax.axis_size("tp"), (3 / D) ** 0.5
    k1, k3, k2 = jax.random.split(own_key(seed), 3)
    w1, w3 = (jax.random.uniform(key, (D, units), minval=-scale, maxval=scale) for key in (k1, k3))
    scale = (3 / F) ** 0.5
    return {"w1": w1, "w3": w3, "w2": jax.random.uniform(k2, (units, D), minval=-scale, maxval=scale)}


@exercise.misconception(of=init, fails=init_spread, breaks="normal numbers")
def truncated_numbers(seed, *, D, F):
    """You drew from a normal distribution without its tails, as jax.nn.initializers.lecun_normal does. Use jax.random.normal, and divide by the root of a whole dimension, D or F."""
    units, draw = F // jax.lax.axis_size("tp"), jax.nn.initializers.lecun_normal()
    k1, k3, k2 = jax.random.split(own_key(seed), 3)
    w2 = draw(k2, (F, D))[:units]  # the variance of a whole w2
    return {"w1": draw(k1, (D, units)), "w3": draw(k3, (D, units)), "w2": w2}


@exercise.misconception(of=init, fails=init_spread, breaks="each device returns its part")
def other_weights_on_copies(seed, *, D, F):
    """You folded in a device's index along all axes. Devices that differ only along another axis hold the same weights: fold in only the index along tp."""
    key = jax.random.key(seed)
    for axis in ("dp", "tp"):
        try:
            key = jax.random.fold_in(key, jax.lax.axis_index(axis))
        except NameError:  # the mesh does not have this axis
            continue
    return drawn_with(jax.random.split(key, 3), D, F)


@exercise.misconception(of=fused_columns, fails=fused_order, breaks="the order; `ValueError`")
def cut_in_the_middle(F, N):
    """You left the columns as they are. Then the first devices get only columns of w1, and the last devices get the matching columns of w3."""
    if F % N:
        raise ValueError("uneven")
    return list(range(2 * F))


@exercise.misconception(of=fused_columns, fails=fused_order, breaks="the order; `ValueError`")
def up_before_gate(F, N):
    """You gave each device its piece of w3 first. Give it its piece of w1 first, as w13 holds w1 first."""
    return [(column + F) % (2 * F) for column in fused_columns(F, N)]


@exercise.misconception(of=fused_columns, fails=fused_order, breaks="the order; `ValueError`")
def gate_and_up_by_turns(F, N):
    """You put each column of w1 beside the matching column of w3. Give each device its piece of w1 first, then its piece of w3."""
    if F % N:
        raise ValueError("uneven")
    return [half * F + i for i in range(F) for half in (0, 1)]


@exercise.misconception(of=fused_columns, fails=fused_order, breaks="the order; `ValueError`")
def every_nth_column(F, N):
    """You gave each device every N-th column. A piece of w1 has neighbouring columns: the first F/N, the next F/N, and so on."""
    if F % N:
        raise ValueError("uneven")
    return [i for device in range(N) for i in range(device, 2 * F, N)]


@exercise.misconception(of=fused_columns, fails=fused_order, breaks="the order; `ValueError`")
def places_where_they_go(F, N):
    """You returned the new place of each column of w13. Return the inverse: the column for each new place."""
    order = fused_columns(F, N)
    return [order.index(place) for place in range(2 * F)]


@exercise.misconception(of=fused_columns, fails=fused_order, breaks="if N does not divide F")
def uneven_pieces_taken(F, N):
    """You cut F into unequal pieces. If N does not divide F, raise a ValueError."""
    units = max(F // N, 1)
    return [half * F + device * units + i for device in range(N) for half in (0, 1) for i in range(units)]


def time_of(chip, B, D, F, N, matmuls=9, reduces=2):
    return matmul_time(matmuls * 2 * B * D * F / N, chip) + reduces * all_reduce_time(2 * B * D, N, chip)


@exercise.misconception(of=gated_mlp_time)
def gated_mlp_time_without_gate(chip, B, D, F, N):
    """You counted six matmuls. You may have left out the gate, or given the backward pass as many matmuls as the forward pass. The forward pass has three matmuls, and the backward pass has six."""
    return time_of(chip, B, D, F, N, matmuls=6)


@exercise.misconception(of=gated_mlp_time)
def gated_mlp_time_forward_matmuls(chip, B, D, F, N):
    """You counted the matmuls of the forward pass. The backward pass has two matmuls for each of these, one for each operand."""
    return time_of(chip, B, D, F, N, matmuls=3)


@exercise.misconception(of=gated_mlp_time)
def gated_mlp_time_forward(chip, B, D, F, N):
    """You counted the forward pass alone. The backward pass has six matmuls and an all-reduce of its own."""
    return time_of(chip, B, D, F, N, matmuls=3, reduces=1)


@exercise.misconception(of=gated_mlp_time)
def gated_mlp_time_reduced_once(chip, B, D, F, N):
    """You counted half of the communication: one all-reduce, or V/W for each. The forward pass reduces y, the backward pass reduces dx, and an all-reduce takes 2 V/W."""
    return time_of(chip, B, D, F, N, reduces=1)


@exercise.misconception(of=gated_mlp_time)
def gated_mlp_time_one_way(chip, B, D, F, N):
    """Either you used one direction of a link, or you counted four bytes for a number. On a ring data flows both ways, and a bfloat16 has two bytes."""
    return time_of(chip, B, D, F, N, reduces=4)


@exercise.misconception(of=gated_mlp_time)
def gated_mlp_time_matmuls_only(chip, B, D, F, N):
    """You left the all-reduces out, or you overlapped them. Here they are exposed, because the next operation waits for them."""
    return time_of(chip, B, D, F, N, reduces=0)


@exercise.misconception(of=gated_mlp_time)
def gated_mlp_time_whole_matmuls(chip, B, D, F, N):
    """You let every device compute the whole matmuls. A device has F/N MLP units."""
    return time_of(chip, B, D, F * N, N)


exercise.scenario(
    gated_mlp_time,
    lambda chip, B, D, F, N: Scenario(
        chip=chip,
        rings=(N,),
        mesh={"tp": N},
        arrays=[((D, F), CUT["w1"])],
        least=4 * latency(N),
        holds=2 * 3 * D * F / N,
    ),
)


# -- right as well -----------------------------------------------------------------------------


@exercise.alternative(of=gated_mlp)
def bias_on_one_device(x, w1, w3, w2, b, dy):
    """Device 0 of tp adds b to its part of the sum."""
    once = jnp.where(jax.lax.axis_index("tp") == 0, b, 0)
    return written(x, w1, w3, w2, b, dy, y_of=lambda parts, b: total(parts + once))


@exercise.alternative(of=gated_mlp)
def a_share_of_the_bias(x, w1, w3, w2, b, dy):
    """Every device adds 1/N of b to its part of the sum."""
    return written(x, w1, w3, w2, b, dy, y_of=lambda parts, b: total(parts + b / jax.lax.axis_size("tp")))


@exercise.alternative(of=gated_mlp)
def reduced_in_two_halves(x, w1, w3, w2, b, dy):
    """Each all-reduce is a reduce-scatter and an all-gather."""

    def halves(parts):
        own = jax.lax.psum_scatter(parts, "tp", scatter_dimension=1, tiled=True)
        return jax.lax.all_gather(own, "tp", axis=1, tiled=True)

    y_of, dx_of = (lambda parts, b: halves(parts) + b), (lambda gate, up: halves(gate + up))
    return written(x, w1, w3, w2, b, dy, y_of=y_of, dx_of=dx_of)


@exercise.alternative(of=gated_mlp)
def y_and_dx_together(x, w1, w3, w2, b, dy):
    """One all-reduce adds the parts of y and of dx."""
    y, grads = written(x, w1, w3, w2, b, dy, y_of=lambda parts, b: parts, dx_of=lambda gate, up: gate + up)
    y, dx = total((y, grads["x"]))
    return y + b, grads | {"x": dx}


@exercise.alternative(of=gated_mlp)
def y_and_dx_joined(x, w1, w3, w2, b, dy):
    """One all-reduce adds one array that holds the parts of y and of dx."""
    y, grads = written(x, w1, w3, w2, b, dy, y_of=lambda parts, b: parts, dx_of=lambda gate, up: gate + up)
    y, dx = jnp.split(total(jnp.concatenate([y, grads["x"]])), 2)
    return y + b, grads | {"x": dx}


@exercise.alternative(of=gated_mlp)
def derived_by_jax(x, w1, w3, w2, b, dy):
    """JAX differentiates a device's part of y. The sums over devices come afterwards."""
    partly, back = jax.vjp(lambda x, w1, w3, w2: jax.nn.silu(x @ w1) * (x @ w3) @ w2, x, w1, w3, w2)
    dx, dw1, dw3, dw2 = back(dy)
    return total(partly) + b, {"x": total(dx), "w1": dw1, "w3": dw3, "w2": dw2, "b": dy.sum(0)}


@exercise.alternative(of=gated_mlp)
def fused_matmuls(x, w1, w3, w2, b, dy):
    """Gate and up use one matmul in each pass, with einsum."""
    w13 = jnp.concatenate([w1, w3], axis=1)
    gate, up = jnp.split(jnp.einsum("bd,df->bf", x, w13), 2, axis=1)
    act, slope = jax.jvp(jax.nn.silu, (gate,), (jnp.ones_like(gate),))
    y = total(jnp.einsum("bf,fd->bd", act * up, w2)) + b
    dhidden = jnp.einsum("bd,fd->bf", dy, w2)
    both = jnp.concatenate([dhidden * up * slope, dhidden * act], axis=1)
    dw1, dw3 = jnp.split(jnp.einsum("bd,bf->df", x, both), 2, axis=1)
    dw2, dx = jnp.einsum("bf,bd->fd", act * up, dy), total(jnp.einsum("bf,df->bd", both, w13))
    return y, {"x": dx, "w1": dw1, "w3": dw3, "w2": dw2, "b": jnp.einsum("bd->d", dy)}


@exercise.alternative(of=init)
def whole_weights_then_own_part(seed, *, D, F):
    """Every device draws the whole weights and keeps its own part, so weights do not depend on the mesh."""
    k1, k3, k2 = jax.random.split(jax.random.key(seed), 3)
    whole = {"w1": (k1, (D, F), 1), "w3": (k3, (D, F), 1), "w2": (k2, (F, D), 0)}
    units = F // jax.lax.axis_size("tp")
    return {
        name: jax.lax.dynamic_slice_in_dim(
            jax.random.normal(key, shape) / shape[0] ** 0.5, jax.lax.axis_index("tp") * units, units, axis
        )
        for name, (key, shape, axis) in whole.items()
    }


@exercise.alternative(of=init)
def a_key_for_each_device(seed, *, D, F):
    """Every device makes the keys of all devices and uses its own keys. The keys are old-style."""
    keys = jax.random.split(jax.random.PRNGKey(seed), 3 * jax.lax.axis_size("tp")).reshape(-1, 3, 2)
    return drawn_with(keys[jax.lax.axis_index("tp")], D, F)


@exercise.alternative(of=fused_columns)
def by_reshaping(F, N):
    """Transpose the columns as an array [half, device, unit]."""
    if F % N != 0:
        raise ValueError("uneven")
    return np.arange(2 * F).reshape(2, N, F // N).swapaxes(0, 1).reshape(-1).tolist()
