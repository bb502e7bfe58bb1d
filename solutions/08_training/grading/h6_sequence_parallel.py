"""H6: checks, misconceptions and alternatives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from grader.exercise import Scenario, array, integers, like, normal
from grader.expect import (
    Failure,
    between,
    expect_close,
    expect_flops,
    expect_independent,
    expect_memory,
    expect_no_collectives,
    expect_only,
    expect_other_flops,
    expect_traffic,
    needed,
)
from h6_sequence_parallel import (
    LAYER,
    LAYERS,
    ROWS,
    block_bytes,
    drop,
    exercise,
    kept_bytes,
    norm,
    norm_back,
    train,
)

# -- what is asked ---------------------------------------------------------------------------


@exercise.helper
def weights(rng, shape):
    """Draw weights so small that a matmul's results are about 1."""
    return rng.standard_normal(shape) / shape[0] ** 0.5


layer = {
    "scale": normal("D"),
    "w1": array("D", "F", spec=LAYER["w1"], draw=weights),
    "w2": array("F", "D", spec=LAYER["w2"], draw=weights),
    "bias": normal("D"),
}
TRAIN = {
    "x": normal("S", "D", spec=ROWS),
    "layers": [layer] * LAYERS,
    "dy": normal("S", "D", spec=ROWS),
    "returns": ("y", "dx", like("layers", "grads")),
}
trained = exercise.call(
    train,
    **TRAIN,
    dims={"S": 60, "D": 90, "F": 20},
    hidden_dims={"S": 100, "D": 117, "F": 20},
)
on_a_ring = exercise.call(
    train,
    **TRAIN,
    meshes=[{"tp": 8}],
    dims={"S": 120, "D": 60, "F": 8},
    hidden_dims={"S": 136, "D": 61, "F": 8},
)


@exercise.helper
def exactly(seed):
    """Return a declaration of the argument ``seed`` with this value."""
    return array(dtype="int32", draw=lambda rng, shape: np.full(shape, seed))


DROP = {"x": normal("S", "D", spec=ROWS), "static": {"rate": 0.25}, "returns": "x", "dims": {"S": 60, "D": 120}}
HIDDEN = {"S": 100, "D": 105}
dropped = exercise.call(drop, **DROP, seed=integers(0, 2**30), hidden_static={"rate": 0.4}, steps=2, hidden_dims=HIDDEN)
one_seed = exercise.call(drop, **DROP, seed=exactly(1), hidden_static={"rate": 0.4}, steps=2, hidden_dims=HIDDEN)
next_seed = exercise.call(drop, **DROP, seed=exactly(2), hidden_static={"rate": 0.4}, hidden_dims=HIDDEN)
far_seed = exercise.call(drop, **DROP, seed=exactly(1001), hidden_static={"rate": 0.4}, hidden_dims=HIDDEN)


@exercise.helper
def on_one_device(x, layers, dy):
    """Return y, dx and the gradients of the layers in float64."""
    kept, grads = [], []
    for layer in layers:
        rms = np.sqrt((x**2).mean(axis=1, keepdims=True))
        hidden = np.tanh(x / rms * layer["scale"] @ layer["w1"])
        kept.append((x / rms, rms, hidden))
        x = x + hidden @ layer["w2"] + layer["bias"]
    for layer, (unit, rms, hidden) in zip(layers[::-1], kept[::-1], strict=True):
        back = (dy @ layer["w2"].T) * (1 - hidden**2)
        dn = back @ layer["w1"].T
        du = dn * layer["scale"]
        grad = {
            "scale": (dn * unit).sum(0),
            "w1": (unit * layer["scale"]).T @ back,
            "w2": hidden.T @ dy,
            "bias": dy.sum(0),
        }
        grads.insert(0, grad)
        dy = dy + (du - unit * (du * unit).mean(axis=1, keepdims=True)) / rms
    return x, dy, grads


# -- checks ------------------------------------------------------------------------------------


def sizes_of(seen):
    """Return the devices along tp, the size of [S, D], and the bytes that a device sends to gather it."""
    n, whole = seen.mesh["tp"], seen.dims["S"] * seen.dims["D"]
    return n, whole, 4 * whole * (n - 1) / n


@exercise.check(trained, points=0.5, public=True)
def train_forward(seen):
    """train: y equals the y of one device"""
    expect_close(seen.out[0], on_one_device(seen.x, seen.layers, seen.dy)[0])


@exercise.check(trained, points=0.5, public=True)
def train_dx(seen):
    """train: the gradient of x equals the gradient of one device"""
    expect_close(seen.out[1], on_one_device(seen.x, seen.layers, seen.dy)[1])


@exercise.check(trained, points=1)
def train_gradients(seen):
    """train: the gradients of the layers equal those of one device, on every device"""
    expect_close(seen.out[2], on_one_device(seen.x, seen.layers, seen.dy)[2])


def expect_sent(seen):
    """Require per layer at most 3 all-gathers and 2 reduce-scatters of [S, D], and all-reduces of 2 D numbers."""
    n, _, gathered = sizes_of(seen)
    expect_only(seen, "all_gather", "reduce_scatter", "all_reduce")
    # All gathers of a program are of [S, D] and send equal bytes, so S, D and N cancel. A layer needs 3: of norm(x) in
    # both passes, and of dy. If a program repeats a gather in each of L layers, it sends 4 L / (3 L) = 4/3 of the bytes.
    # If it repeats one gather in all, it sends (3 L + 1) / (3 L) <= 4/3 of the bytes.
    layers, near = LAYERS * gathered, "with any sizes, a layer has 3 gathers, or 4 if one is repeated"
    expect_traffic(seen.only(kind="reduce_scatter"), at_most=needed(2 * layers, 3 * layers), axis="tp")
    expect_traffic(seen.only(kind="all_gather"), at_most=needed(3 * layers, 4 * layers, near=near))
    sums = 2 * LAYERS * 2 * seen.dims["D"] * 4 * (n - 1) / n
    expect_traffic(seen.only(kind="all_reduce"), at_most=needed(sums, 2 * sums))  # wrong: summed twice


@exercise.check(trained, points=0.75, after=[train_forward, train_dx, train_gradients])
def train_traffic(seen):
    """train: per layer at most 3 all-gathers and 2 reduce-scatters of [S, D], and all-reduces of 2 D numbers"""
    expect_sent(seen)


many_units = exercise.call(
    train,
    **TRAIN,
    meshes=[{"tp": 8}],
    dims={"S": 40, "D": 44, "F": 120},
    hidden_dims={"S": 56, "D": 45, "F": 120},
)


@exercise.check([on_a_ring, many_units], points=0.25, after=train_traffic)
def train_norms(wide, many_units):
    """train: a device normalizes only its own rows; it computes at most one matmul of a layer twice, and sends no
    more bytes than the previous check allows"""
    for seen in (wide, many_units):
        expect_close(seen.out[2], on_one_device(seen.x, seen.layers, seen.dy)[2])
        expect_sent(seen)
        n, whole, _ = sizes_of(seen)
        # Elementwise multiplications count as FLOPs of matmuls, too: hence 30 more FLOPs for each number.
        each, units = LAYERS * whole / n, seen.dims["F"]
        few = 36 if seen is wide else 75  # with few units, a norm of all rows in one pass exceeds the budget
        most = (14 * units + few) * each  # one matmul is computed again
        right, wrong = (12 * units + 30) * each, (16 * units + 36) * each
        # All matmuls of a layer have 2 S D F / N FLOPs, so S, D and N cancel, and the ratio tends to 16/12 for large F.
        # Measured: 1.33 with F=120, 1.34 with F=8. One repeated matmul is allowed: `hidden` may be computed again.
        near = "with any sizes, a layer has 6 matmuls, or 8 if two are repeated"
        expect_flops(seen, at_most=needed(right, wrong, at=most, near=near))
        # The grader counts an elementwise multiplication as 2 FLOPs of a matmul, so a right program has no other FLOPs.
        # Wrong: three operations correct each addition of a matmul.
        other = needed(0, 3 * (units - 1) * each, at=(2 * units + 80) * whole / n)
        expect_other_flops(seen, at_most=other)


@exercise.check(on_a_ring, points=0.5, after=train_norms)
def train_memory(seen):
    """train: for each layer a device keeps only its rows and its `hidden`"""
    expect_close(seen.out[2], on_one_device(seen.x, seen.layers, seen.dy)[2])
    n, whole, _ = sizes_of(seen)
    hidden, rows = seen.dims["S"] * seen.dims["F"] / n, whole / n
    weights = 2 * seen.dims["D"] * seen.dims["F"] / n + 2 * seen.dims["D"]  # of one layer
    right = 2 * whole + LAYERS * rows + 2 * weights  # `hidden` may be computed again
    # A right program may hold three arrays [S, D] at once: dy, norm(x) and the sums of a matmul. So a program that keeps
    # the gathered rows of one layer is within the budget, and a program that keeps those of two layers exceeds it.
    most, wrong = ((n * whole + LAYERS * (rows + hidden) + 2 * weights) for n in (3.6, 4))
    expect_memory(seen, at_most=between(4 * right, 4 * wrong, at=4 * most), by="program", arguments=False)


@exercise.check(dropped, points=0.25, public=True)
def drop_value(seen):
    """drop: for every seed a share of about `rate` of the numbers becomes 0, and the other numbers become x / (1 - rate);
    copies stay equal; no communication"""
    for step in seen.steps:  # the second call drops numbers that the first left, with a different seed
        kept, left = step.out.value != 0, step.x != 0
        expect_close(step.out, np.where(kept, step.x / (1 - seen.rate), 0))
        share = float(kept[left].mean())
        if not abs(share - (1 - seen.rate)) < 0.08:
            raise Failure(f"{share:.0%} of the numbers are kept", expected=1 - seen.rate, actual=share)
    expect_no_collectives(seen)


@exercise.check([one_seed, next_seed, far_seed, dropped], points=0.25, public=True, after=drop_value)
def drop_rows(one_seed, next_seed, far_seed, other_seeds):
    """drop: two rows, seeds or devices along tp have independent masks, and no mask depends on the numbers in x"""
    first, second = (step.out.value != 0 for step in one_seed.steps)  # the second drops numbers that the first left
    if not np.array_equal(first, second):
        lost = int((first & ~second).sum())
        raise Failure(f"with the same seed, other numbers in x get a different mask: {lost} more numbers are dropped")
    masks = len(np.unique(first, axis=0))
    if masks < one_seed.dims["S"]:
        raise Failure(f"{len(first)} rows have {masks} different masks", expected=len(first), actual=masks)
    rate, n = one_seed.rate, one_seed.mesh["tp"]
    seeds = {f"seed {step.seed}": step for step in (one_seed.steps[0], next_seed, far_seed, *other_seeds.steps)}
    kept = {seed: np.where(step.x != 0, (step.out.value != 0) - (1 - rate), 0) for seed, step in seeds.items()}
    expect_independent({f"row {row}": mask for row, mask in enumerate(first)})
    expect_independent({"the even rows": first[0::2], "the odd rows": first[1::2]})
    expect_independent(
        {
            f"the masks of device tp={device} for {seed}": mask
            for seed, masks in kept.items()
            for device, mask in enumerate(np.split(masks, n))
        }
    )


# -- misconceptions ----------------------------------------------------------------------------


def gather(rows):
    return jax.lax.all_gather(rows, "tp", tiled=True)


def scatter(parts):
    return jax.lax.psum_scatter(parts, "tp", tiled=True)


def own_rows(whole):
    rows = whole.shape[0] // jax.lax.axis_size("tp")
    return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("tp") * rows, rows)


def all_reduce_then_own_rows(parts):
    return own_rows(jax.lax.psum(parts, "tp"))


def summed(grads):
    return grads | jax.lax.psum({name: grads[name] for name in ("scale", "bias")}, "tp")


def written(
    x,
    layers,
    dy,
    scatter=scatter,
    grads_of=summed,
    inside=False,
    residual=True,
    due_of=None,
    dn_of=None,
    up=scatter,
    again=False,
    rows_of=lambda x, scale: gather(norm(x, scale)),
    slope=lambda hidden: 1 - hidden**2,
    hold=0,
    matmul=jnp.matmul,
    normed=lambda x, scale: x,
    dbias_of=lambda dy, due, dx: dy.sum(axis=0),
):
    """Run the solution with the given changes. The gathered rows of the first ``hold`` layers are kept."""
    kept, grads = [], []
    for i, layer in enumerate(layers):
        whole = gather(norm(x, layer["scale"]))
        hidden = jnp.tanh(matmul(whole, layer["w1"]))
        kept.append((x, hidden, whole if i < hold else None))
        parts = hidden @ layer["w2"]
        x = x + (scatter(parts + layer["bias"]) if inside else scatter(parts) + layer["bias"])
    y = x
    for layer, (x, hidden, held) in zip(reversed(layers), reversed(kept), strict=True):
        hidden = jnp.tanh(gather(norm(x, layer["scale"])) @ layer["w1"]) if again else hidden
        due = gather(dy)
        back = (due @ layer["w2"].T) * slope(hidden)
        dx, dscale = norm_back(normed(x, layer["scale"]), layer["scale"], up(back @ layer["w1"].T))
        if dn_of:
            dscale = norm_back(x, layer["scale"], dn_of(back @ layer["w1"].T))[1]
        whole = rows_of(x, layer["scale"]) if held is None else held
        due = due_of(dy) if due_of else due
        dbias = dbias_of(dy, due, dy + dx)
        grads.append(grads_of({"scale": dscale, "w1": whole.T @ back, "w2": hidden.T @ due, "bias": dbias}))
        dy = dy + dx if residual else dx
    return y, dy, grads[::-1]


def differentiated(x, layers, dy, down=scatter, wrap=lambda block: block, wrap_all=lambda model: model):
    """Let JAX differentiate the layers. ``down`` reduces the results of the second matmul; ``wrap`` changes a layer,
    and ``wrap_all`` changes the function of all layers."""

    @wrap
    def block(x, layer):
        return x + down(jnp.tanh(gather(norm(x, layer["scale"])) @ layer["w1"]) @ layer["w2"]) + layer["bias"]

    @wrap_all
    def model(x, layers):
        for layer in layers:
            x = block(x, layer)
        return x

    y, back = jax.vjp(model, x, layers)
    dx, grads = back(dy)
    return y, dx, [summed(grad) for grad in grads]


@exercise.misconception(of=train, fails=train_gradients, breaks="those of one device")
def pieces_not_added(x, layers, dy):
    """Each device has the gradients of scale and bias from its own rows only. Add these parts with a psum over tp."""
    return written(x, layers, dy, grads_of=lambda grads: grads)


@exercise.misconception(of=train, fails=train_gradients, breaks="those of one device")
def bias_not_added(x, layers, dy):
    """You added the parts of the scale's gradient, but not those of the bias's gradient. Each device added the bias to its own rows only: sum the bias's gradient over tp too."""
    return written(x, layers, dy, grads_of=lambda grads: grads | {"scale": jax.lax.psum(grads["scale"], "tp")})


@exercise.misconception(of=train, fails=train_gradients, breaks="those of one device")
def scale_not_added(x, layers, dy):
    """You added the parts of the bias's gradient, but not those of the scale's gradient. Each device normalized its own rows only: sum the scale's gradient over tp too."""
    return written(x, layers, dy, grads_of=lambda grads: grads | {"bias": jax.lax.psum(grads["bias"], "tp")})


@exercise.misconception(of=train, fails=train_gradients, breaks="those of one device")
def pieces_averaged(x, layers, dy):
    """You averaged the gradients of scale and bias, which makes them N times too small. Average copies, but add parts."""
    mean = partial(jax.lax.pmean, axis_name="tp")
    return written(x, layers, dy, grads_of=lambda g: g | {"scale": mean(g["scale"]), "bias": mean(g["bias"])})


@exercise.misconception(of=train, fails=train_gradients, breaks="those of one device")
def scale_averaged(x, layers, dy):
    """You averaged the gradient of scale, which makes it N times too small. Average copies, but add parts."""
    return written(x, layers, dy, grads_of=lambda g: summed(g) | {"scale": jax.lax.pmean(g["scale"], "tp")})


@exercise.misconception(of=train, fails=train_gradients, breaks="those of one device")
def bias_averaged(x, layers, dy):
    """You averaged the gradient of bias, which makes it N times too small. Average copies, but add parts."""
    return written(x, layers, dy, grads_of=lambda g: summed(g) | {"bias": jax.lax.pmean(g["bias"], "tp")})


@exercise.misconception(of=train, fails=train_gradients, breaks="those of one device")
def weights_added_too(x, layers, dy):
    """You summed gradients of weights over tp. Each device has its own columns of w1 and rows of w2, and used all rows of x: add nothing."""
    return written(x, layers, dy, grads_of=lambda grads: jax.lax.psum(grads, "tp"))


@exercise.misconception(form_of=weights_added_too)
def w1_added_too(x, layers, dy):
    """Like `weights_added_too`, for w1 alone."""
    return written(x, layers, dy, grads_of=lambda g: summed(g) | {"w1": jax.lax.psum(g["w1"], "tp")})


@exercise.misconception(form_of=weights_added_too)
def w2_added_too(x, layers, dy):
    """Like `weights_added_too`, for w2 alone."""
    return written(x, layers, dy, grads_of=lambda g: summed(g) | {"w2": jax.lax.psum(g["w2"], "tp")})


@exercise.misconception(of=train, fails=train_gradients, breaks="those of one device")
def bias_from_all_rows(x, layers, dy):
    """You computed the gradient of bias from the gathered rows of dy, and then added these sums over tp: the result is N times too large. Compute it from the device's own rows, then add."""
    return written(x, layers, dy, dbias_of=lambda dy, due, dx: due.sum(axis=0))


@exercise.misconception(of=train, fails=train_gradients, breaks="those of one device")
def bias_of_the_layer_before(x, layers, dy):
    """You computed the gradient of bias from the gradient of the layer's x. The bias is added to the layer's result: use the dy with which the layer's backward pass begins."""
    return written(x, layers, dy, dbias_of=lambda dy, due, dx: dx.sum(axis=0))


@exercise.misconception(of=train, fails=train_gradients, breaks="`layers`, returned gradients of Σ(y · dy)")
def gradients_in_backward_order(x, layers, dy):
    """Your list of gradients begins with the last layer. Return the gradients in the order of `layers`."""
    y, dx, grads = written(x, layers, dy)
    return y, dx, grads[::-1]


@exercise.misconception(of=train, fails=[train_dx, train_gradients], breaks="those of one device")
def norm_back_of_the_norm(x, layers, dy):
    """You passed norm(x) to norm_back. Its first argument is x, the rows before the norm."""
    return written(x, layers, dy, normed=norm)


@exercise.misconception(of=train, fails=[train_dx, train_gradients], breaks="those of one device")
def tanh_slope_without_the_square(x, layers, dy):
    """Your derivative of tanh is wrong. For hidden = tanh(u) the derivative is 1 - hidden**2."""
    return written(x, layers, dy, slope=lambda hidden: 1 - hidden)


@exercise.misconception(form_of=tanh_slope_without_the_square)
def tanh_slope_at_hidden(x, layers, dy):
    """Like `tanh_slope_without_the_square`, with the derivative of tanh at hidden instead of u."""
    return written(x, layers, dy, slope=lambda hidden: 1 - jnp.tanh(hidden) ** 2)


@exercise.misconception(of=train, fails=train_gradients, breaks="those of one device")
def w1_from_own_rows(x, layers, dy):
    """You computed the gradient of w1 from the device's own rows of norm(x). In the forward pass w1 multiplied all rows: gather norm(x) again, and use all rows."""

    def own(x, scale):
        rows = norm(x, scale)
        every = jnp.zeros((len(x) * jax.lax.axis_size("tp"), x.shape[1]))
        return jax.lax.dynamic_update_slice_in_dim(every, rows, jax.lax.axis_index("tp") * len(x), 0)

    return written(x, layers, dy, rows_of=own)


@exercise.misconception(of=train, fails=[train_dx, train_gradients], breaks="those of one device")
def tanh_slope_forgotten(x, layers, dy):
    """Your backward pass leaves out the derivative of tanh. Multiply the gradient of hidden by 1 - hidden**2."""
    return written(x, layers, dy, slope=jnp.ones_like)


@exercise.misconception(of=train, fails=[train_dx, train_forward, train_gradients], breaks="those of one device")
def sums_not_added(x, layers, dy):
    """You kept your own rows of hidden @ w2. Each device multiplied its own units only, so these are parts of sums: add the parts of all devices with a reduce-scatter."""
    return written(x, layers, dy, scatter=own_rows)


@exercise.misconception(form_of=sums_not_added)
def sums_never_added(x, layers, dy):
    """Like `sums_not_added`, in both passes."""
    return written(x, layers, dy, scatter=own_rows, up=own_rows)


@exercise.misconception(form_of=sums_not_added)
def sums_not_added_in_a_vjp(x, layers, dy):
    """Like `sums_not_added`, but JAX differentiates the layers."""
    return differentiated(x, layers, dy, down=own_rows)


@exercise.misconception(of=train, fails=[train_dx, train_gradients], breaks="those of one device")
def sums_not_added_backward(x, layers, dy):
    """Your backward pass kept the device's own rows of the norm's gradient. Each device has the gradient from its own units only: add the parts of all devices with a reduce-scatter."""
    return written(x, layers, dy, up=own_rows)


@exercise.misconception(of=train, fails=[train_dx, train_forward, train_gradients], breaks="those of one device")
def bias_inside_the_sum(x, layers, dy):
    """You added the bias before the reduce-scatter, which adds it N times. Add it after the reduce-scatter, to the device's own rows."""
    return written(x, layers, dy, inside=True)


@exercise.misconception(of=train, fails=[train_dx, train_gradients], breaks="those of one device")
def residual_forgotten(x, layers, dy):
    """Your gradient goes back through the block only. The layer also adds x to the block's output, so dy itself is part of the gradient of x."""
    return written(x, layers, dy, residual=False)


@exercise.misconception(of=train, fails=[train_dx, train_forward, train_gradients], breaks="x ← x + tanh")
def residual_left_out(x, layers, dy):
    """You left out x in the forward pass. A layer adds x to the result of its matmuls."""

    def without(block):
        return jax.checkpoint(lambda x, layer: block(x, layer) - x)

    return differentiated(x, layers, dy, wrap=without)


@exercise.misconception(of=train, fails=train_traffic, breaks="2 reduce-scatters of [S, D]")
def all_reduced_then_cut(x, layers, dy):
    """You all-reduced and kept your own rows. A reduce-scatter sends half the bytes and gives each device only its own rows."""
    return written(x, layers, dy, scatter=all_reduce_then_own_rows, up=all_reduce_then_own_rows)


@exercise.misconception(form_of=all_reduced_then_cut)
def all_reduced_then_cut_forward(x, layers, dy):
    """Like `all_reduced_then_cut`, in the forward pass alone."""
    return written(x, layers, dy, scatter=all_reduce_then_own_rows)


@exercise.misconception(form_of=all_reduced_then_cut)
def all_reduced_then_cut_backward(x, layers, dy):
    """Like `all_reduced_then_cut`, in the backward pass alone."""
    return written(x, layers, dy, up=all_reduce_then_own_rows)


@exercise.misconception(of=train, fails=train_traffic, breaks="2 reduce-scatters of [S, D]")
def scattered_for_each_use(x, layers, dy):
    """You reduce-scattered the norm's gradient twice, for x and for scale. Reduce-scatter the gradient once and use the result for both."""
    return written(x, layers, dy, dn_of=scatter)


@exercise.misconception(of=train, fails=train_traffic, breaks="2 reduce-scatters of [S, D]")
def one_checkpoint_around_all(x, layers, dy):
    """You put one checkpoint around all layers, so the backward pass runs the whole forward pass again, with its collectives. Put jax.checkpoint around each layer."""
    return differentiated(x, layers, dy, wrap_all=jax.checkpoint)


@exercise.misconception(of=train, fails=train_traffic, breaks="2 reduce-scatters of [S, D]")
def whole_rows_between_layers(x, layers, dy):
    """Between layers you hold all rows of x on every device. Keep a device's own rows, and gather norm(x) before the first matmul of each layer."""

    @jax.checkpoint
    def block(x, layer):
        return x + gather(scatter(jnp.tanh(norm(x, layer["scale"]) @ layer["w1"]) @ layer["w2"])) + layer["bias"]

    def model(x, layers):
        x = gather(x)
        for layer in layers:
            x = block(x, layer)
        return own_rows(x)

    y, back = jax.vjp(model, x, layers)
    dx, grads = back(dy)
    return y, dx, [summed(grad) for grad in grads]


@exercise.misconception(of=train, fails=train_traffic, breaks="at most 3 all-gathers")
def gathered_for_each_use(x, layers, dy):
    """You gather four times for each layer. Gather dy once, for the MLP units and for w2's gradient, and gather norm(x) only once more in the backward pass."""
    return written(x, layers, dy, due_of=gather)


@exercise.misconception(of=train, fails=train_traffic, breaks="at most 3 all-gathers")
def gathered_for_each_matmul(x, layers, dy):
    """Your backward pass gathers norm(x) and dy again for each matmul that uses them. Gather each of them once, and use the result twice."""
    return written(x, layers, dy, due_of=gather, again=True)


@exercise.misconception(of=train, fails=train_memory, breaks="gathered rows [S, D] of at most one layer")
def gathered_rows_kept(x, layers, dy):
    """You hold the gathered rows of all layers at once: an array [S, D] for each layer, on each device. Keep only the device's own rows of x, and gather one layer's rows again when its backward pass begins. If JAX differentiates the layers, put jax.checkpoint around each layer, with its gather inside."""
    return differentiated(x, layers, dy)


@exercise.misconception(of=train, fails=train_memory, breaks="gathered rows [S, D] of at most one layer")
def gathered_rows_of_two_kept(x, layers, dy):
    """You kept the gathered rows of some layers for the backward pass: an array [S, D] for each of them, on each device. Keep only the device's own rows of x for each layer, and gather again."""
    return written(x, layers, dy, hold=2)


@exercise.misconception(of=train, fails=train_traffic, breaks="all-reduces of 2·D numbers")
def sums_averaged_again(x, layers, dy):
    """You reduced the gradients of scale and bias twice. After the psum all devices have equal sums, and the pmean only
    sends them again."""
    again = lambda grads: grads | jax.lax.pmean({name: grads[name] for name in ("scale", "bias")}, "tp")  # noqa: E731
    return written(x, layers, dy, grads_of=lambda grads: again(summed(grads)))


@exercise.misconception(of=train, fails=train_norms, breaks="at most one matmul of a layer runs twice")
def layers_run_again(x, layers, dy):
    """Your backward pass runs the whole layer again, with its second matmul. Compute at most `hidden` again: the
    gradients do not need the result of the second matmul."""
    kept, grads = [], []
    block = lambda whole, w1, w2: jnp.tanh(whole @ w1) @ w2  # noqa: E731
    for layer in layers:
        kept.append(x)
        x = x + scatter(block(gather(norm(x, layer["scale"])), layer["w1"], layer["w2"])) + layer["bias"]
    y = x
    for layer, x in zip(reversed(layers), reversed(kept), strict=True):
        _, back = jax.vjp(block, gather(norm(x, layer["scale"])), layer["w1"], layer["w2"])
        dn, dw1, dw2 = back(gather(dy))
        dx, dscale = norm_back(x, layer["scale"], scatter(dn))
        grads.append(summed({"scale": dscale, "w1": dw1, "w2": dw2, "bias": dy.sum(axis=0)}))
        dy = dy + dx
    return y, dy, grads[::-1]


@exercise.misconception(of=train, fails=train_norms, breaks="a device normalizes only its own rows")
def normed_after_the_gather(x, layers, dy):
    """You gathered x and normalized all rows, so every device repeats the same work. Normalize a device's own rows, then gather."""
    kept, grads = [], []
    for layer in layers:
        hidden = jnp.tanh(norm(gather(x), layer["scale"]) @ layer["w1"])
        kept.append((x, hidden))
        x = x + scatter(hidden @ layer["w2"]) + layer["bias"]
    y = x
    for layer, (x, hidden) in zip(reversed(layers), reversed(kept), strict=True):
        due, whole = gather(dy), gather(x)
        back = (due @ layer["w2"].T) * (1 - hidden**2)
        dx, dscale = norm_back(whole, layer["scale"], back @ layer["w1"].T)
        grad = {
            "scale": dscale,
            "w1": norm(whole, layer["scale"]).T @ back,
            "w2": hidden.T @ due,
            "bias": dy.sum(axis=0),
        }
        grads.append(summed(grad))
        dy = dy + scatter(dx)
    return y, dy, grads[::-1]


@exercise.misconception(form_of=normed_after_the_gather)
def normed_after_the_second_gather(x, layers, dy):
    """Like `normed_after_the_gather`, in the backward pass alone, for the gradient of w1."""
    return written(x, layers, dy, rows_of=lambda x, scale: norm(gather(x), scale))


def with_corrected_sums(a, w):
    """Return a @ w. Each addition of a sum corrects the rounding error of the addition before it."""

    def add(state, factors):
        total, lost = state
        term = factors[0][:, None] * factors[1] - lost
        new = total + term
        return (new, (new - total) - term), None

    none = jnp.zeros((len(a), w.shape[1]))
    return jax.lax.scan(add, (none, none), (a.T, w))[0][0]


@exercise.misconception(of=train, fails=train_norms)
def rounding_errors_corrected(x, layers, dy):
    """You wrote a matmul as a loop that corrects the rounding error of each addition. These corrections are three more operations for each term of a sum. Use `@`, which is exact enough."""
    return written(x, layers, dy, matmul=with_corrected_sums)


@exercise.misconception(of=drop, fails=drop_rows, breaks="two rows, seeds or devices along tp have independent masks")
def device_added_to_the_seed(x, seed, *, rate):
    """You computed the key's seed from the seed and the device's index, so a device has the masks that another device has for another seed. Fold the index into the key of the seed."""
    key = jax.random.key(seed + jax.lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


@exercise.misconception(of=drop, fails=drop_rows, form_of=device_added_to_the_seed)
def thousand_per_device_added_to_the_seed(x, seed, *, rate):
    """Like `device_added_to_the_seed`, but the seed grows by 1000 for each device."""
    key = jax.random.key(seed + 1000 * jax.lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


@exercise.misconception(of=drop, fails=drop_rows, form_of=device_added_to_the_seed)
def seed_multiplied_for_each_device(x, seed, *, rate):
    """Like `device_added_to_the_seed`, but the seed is multiplied by a number of the device."""
    key = jax.random.key(seed * (1 + jax.lax.axis_index("tp")))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


@exercise.misconception(of=drop, fails=drop_rows, breaks="two rows, seeds or devices along tp have independent masks")
def dropped_alike(x, seed, *, rate):
    """Every device used the same key, so rows on different devices get the same masks. Fold the device's index along tp into the key."""
    return jnp.where(jax.random.bernoulli(jax.random.key(seed), 1 - rate, x.shape), x / (1 - rate), 0)


def in_pairs(compare):
    """Return a function for ``gives=``. The function requires that ``compare(a, b)`` is true for the masks of each pair of
    neighbours, and that not all devices have equal masks."""

    def given(*calls):
        for seen in calls:
            first = seen.steps[0] if seen.steps else seen
            kept = np.split(first.out.value != 0, seen.mesh["tp"])
            pairs = zip(kept[0:-1:2], kept[1::2], strict=True)
            if all(np.array_equal(kept[0], one) for one in kept) or not all(compare(a, b) for a, b in pairs):
                raise Failure("this mistake gives other masks")

    return given


@exercise.misconception(
    of=drop,
    fails=drop_rows,
    gives=in_pairs(lambda a, b: np.all(a | b)),
    breaks="two rows, seeds or devices along tp have independent masks",
)
def dropped_by_u_and_1_minus_u(x, seed, *, rate):
    """On every second device you use 1 - u in place of the random numbers u of a neighbour. Each of the two devices keeps all numbers that the other device drops, so their masks are not independent. Draw new numbers on each device."""
    me = jax.lax.axis_index("tp")
    u = jax.random.uniform(jax.random.fold_in(jax.random.key(seed), me // 2), x.shape)
    return jnp.where(jnp.where(me % 2 == 0, u, 1 - u) < rate, 0, x / (1 - rate))


@exercise.misconception(form_of=dropped_by_u_and_1_minus_u)
def dropped_by_one_u_and_1_minus_u(x, seed, *, rate):
    """Like `dropped_by_u_and_1_minus_u`, with numbers u that are equal on all devices."""
    u = jax.random.uniform(jax.random.key(seed), x.shape)
    return jnp.where(jnp.where(jax.lax.axis_index("tp") % 2 == 0, u, 1 - u) < rate, 0, x / (1 - rate))


@exercise.misconception(
    of=drop,
    fails=drop_rows,
    gives=in_pairs(np.array_equal),
    breaks="two rows, seeds or devices along tp have independent masks",
)
def dropped_alike_in_pairs(x, seed, *, rate):
    """Two neighbours along tp use one key, so their rows get the same masks. Fold the whole index along tp into the key."""
    key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp") // 2)
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def one_mask_moved(moved):
    """Return ``drop`` with one mask for all devices: ``moved(mask, index)`` gives the mask of a device."""

    def found(x, seed, *, rate):
        mask = jax.random.bernoulli(jax.random.key(seed), 1 - rate, x.shape)
        return jnp.where(moved(mask, jax.lax.axis_index("tp")), x / (1 - rate), 0)

    return found


@exercise.misconception(
    of=drop,
    fails=drop_rows,
    breaks="two rows, seeds or devices along tp have independent masks (a shifted copy is not independent)",
)
def dropped_by_shifted_rows(x, seed, *, rate):
    """You drew one mask for all devices, and each device moves it by its index. Moved copies of a mask drop numbers in the same pattern. Fold the index into the key, and draw a new mask on each device."""
    return one_mask_moved(lambda mask, me: jnp.roll(mask, me, axis=0))(x, seed, rate=rate)


@exercise.misconception(form_of=dropped_by_shifted_rows)
def dropped_by_shifted_columns(x, seed, *, rate):
    """Like `dropped_by_shifted_rows`, along the columns."""
    return one_mask_moved(lambda mask, me: jnp.roll(mask, me, axis=1))(x, seed, rate=rate)


@exercise.misconception(form_of=dropped_by_shifted_rows)
def dropped_by_a_mirrored_mask(x, seed, *, rate):
    """Like `dropped_by_shifted_rows`, but every second device reads the mask backwards."""
    return one_mask_moved(lambda mask, me: jnp.where(me % 2 == 0, mask, mask[::-1, ::-1]))(x, seed, rate=rate)


@exercise.misconception(form_of=dropped_by_shifted_rows)
def dropped_by_a_transposed_mask(x, seed, *, rate):
    """Like `dropped_by_shifted_rows`, but every second device writes the mask column by column."""
    turned = lambda mask: mask.reshape(mask.shape[::-1]).T  # noqa: E731
    return one_mask_moved(lambda mask, me: jnp.where(me % 2 == 0, mask, turned(mask)))(x, seed, rate=rate)


@exercise.misconception(of=drop, fails=drop_rows, breaks="two rows, seeds or devices along tp have independent masks")
def dropped_alike_in_rows(x, seed, *, rate):
    """You drew one mask and used it for all rows of a device. Draw a number for each row and column."""
    key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x[:1].shape), x / (1 - rate), 0)


@exercise.misconception(of=drop, fails=drop_rows, breaks="two rows, seeds or devices along tp have independent masks")
def dropped_by_one_shifted_mask(x, seed, *, rate):
    """You shift one mask by the seed. Then training steps drop numbers in the same pattern. Draw a new mask for each seed."""
    key = jax.random.fold_in(jax.random.key(0), jax.lax.axis_index("tp"))
    kept = jnp.roll(jax.random.bernoulli(key, 1 - rate, x.shape), seed % x.shape[1], axis=1)
    return jnp.where(kept, x / (1 - rate), 0)


@exercise.misconception(of=drop, fails=drop_rows, breaks="not on values")
def dropped_by_value(x, seed, *, rate):
    """You made the mask from the numbers in x. Equal numbers are then dropped together, and x decides what is dropped. Make the mask from the seed and the position."""
    mixed = (jax.lax.bitcast_convert_type(x, jnp.uint32) ^ jnp.uint32(seed)) * jnp.uint32(2654435761)
    mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(2246822519)
    share = (mixed ^ (mixed >> 13)) >> 8
    return jnp.where(share >= rate * 2**24, x / (1 - rate), 0)


@exercise.misconception(of=drop, fails=drop_value, breaks="copies of a row stay equal")
def dropped_apart_on_copies(x, seed, *, rate):
    """You folded in a device's index along all axes, so devices with the same rows drop different numbers. Only tp cuts x: fold in only the index along tp."""
    key = jax.random.key(seed)
    for axis in jax.typeof(x).sharding.mesh.axis_names:
        key = jax.random.fold_in(key, jax.lax.axis_index(axis))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


@exercise.misconception(of=drop, fails=drop_value, breaks="copies of a row stay equal; nothing is sent")
def dropped_from_all_rows(x, seed, *, rate):
    """You gathered all rows, drew one mask for them and kept your own rows. Fold the device's index along tp into the key, and draw the mask of your own rows. Then nothing has to be sent."""
    rows = gather(x)
    kept = jnp.where(jax.random.bernoulli(jax.random.key(seed), 1 - rate, rows.shape), rows / (1 - rate), 0)
    return jax.lax.dynamic_slice_in_dim(kept, jax.lax.axis_index("tp") * len(x), len(x))


@exercise.misconception(of=drop, fails=drop_value, breaks="divides the others by 1 − `rate`")
def dropped_unscaled(x, seed, *, rate):
    """You did not scale the numbers that you keep. Divide them by 1 - rate, so that the mean stays the same."""
    key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x, 0)


@exercise.misconception(of=drop, fails=drop_value, breaks="a share of about `rate` becomes 0")
def kept_with_rate(x, seed, *, rate):
    """You kept the numbers that you should drop. jax.random.bernoulli takes the probability of True: pass 1 - rate."""
    key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, rate, x.shape), x / (1 - rate), 0)


def kept_divided_by(divisor):
    """Return a function for ``gives=``. The function requires that some numbers are 0, and that the others are the
    numbers in x divided by ``divisor(rate)``."""

    def given(seen):
        for step in seen.steps:
            kept = step.out.value != 0
            due = np.where(kept, step.x / divisor(seen.rate), 0)
            if kept.all() or not kept.any() or not np.allclose(step.out.value, due, rtol=1e-4, atol=1e-6):
                raise Failure("this mistake gives other numbers")

    return given


@exercise.misconception(
    of=drop, fails=drop_value, gives=kept_divided_by(lambda rate: rate), breaks="divides the others by 1 − `rate`"
)
def dropped_and_divided_by_rate(x, seed, *, rate):
    """You divided the numbers that you keep by rate. A number is kept with probability 1 - rate: divide by 1 - rate. jax.random.bernoulli takes the probability of True."""
    key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, rate, x.shape), x / rate, 0)


@exercise.misconception(
    of=drop,
    fails=drop_value,
    gives=kept_divided_by(lambda rate: 1 / (1 - rate)),
    breaks="divides the others by 1 − `rate`",
)
def dropped_and_multiplied(x, seed, *, rate):
    """You multiplied the numbers that you keep by 1 - rate. Divide them by 1 - rate, so that the mean stays the same."""
    key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x * (1 - rate), 0)


@exercise.misconception(of=drop, fails=drop_value, breaks="masks depend on seed and place")
def dropped_without_the_seed(x, seed, *, rate):
    """Your mask does not depend on the seed, so each step drops the same numbers. Make the key from the seed."""
    key = jax.random.fold_in(jax.random.key(0), jax.lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


@exercise.misconception(of=block_bytes)
def block_bytes_of_two_pairs(S, D, N):
    """You counted a gather and a reduce-scatter in each pass. A device does not keep the gathered rows, so the backward pass gathers them again."""
    return 4 * 2 * S * D * (N - 1) / N


@exercise.misconception(of=block_bytes)
def block_bytes_of_numbers(S, D, N):
    """You counted numbers, not their bytes. A bfloat16 has two bytes."""
    return 5 * S * D * (N - 1) / N


@exercise.misconception(of=block_bytes)
def block_bytes_forward(S, D, N):
    """You counted the forward pass alone. The backward pass gathers twice and reduce-scatters once."""
    return 2 * 2 * S * D * (N - 1) / N


@exercise.misconception(of=block_bytes)
def block_bytes_all_reduced(S, D, N):
    """You counted twice the bytes: each collective as an all-reduce, or 4 bytes per number. A gather or a reduce-scatter sends (N-1)/N of the array, and a bfloat16 has 2 bytes."""
    return 2 * 5 * 2 * S * D * (N - 1) / N


@exercise.misconception(of=block_bytes)
def block_bytes_of_own_rows(S, D, N):
    """You counted one shard for each collective. A device sends N - 1 shards: its own shard, and the shards that it passes on."""
    return 5 * 2 * S * D / N


@exercise.misconception(of=block_bytes)
def block_bytes_of_whole_arrays(S, D, N):
    """You counted the whole array for each collective. A device sends (N - 1)/N of it."""
    return 5 * 2 * S * D


@exercise.misconception(of=block_bytes)
def block_bytes_of_six(S, D, N):
    """You counted six collectives. The forward pass has one gather and one reduce-scatter, and the backward pass has two gathers and one reduce-scatter."""
    return 6 * 2 * S * D * (N - 1) / N


@exercise.misconception(of=kept_bytes)
def kept_bytes_whole(S, D, F, L, N):
    """You kept all of x, or the gathered rows. A device keeps only its own rows of x, and gathers again."""
    return 2 * L * S * (D + F / N)


@exercise.misconception(of=kept_bytes)
def kept_bytes_of_whole_hidden(S, D, F, L, N):
    """You kept all columns of `hidden`. A device computes only its own F/N columns of `hidden`."""
    return 2 * L * S * (D / N + F)


@exercise.misconception(of=kept_bytes)
def kept_bytes_of_float32(S, D, F, L, N):
    """You counted four bytes for each number. A bfloat16 has two bytes."""
    return 4 * L * S * (D + F) / N


@exercise.misconception(of=kept_bytes)
def kept_bytes_of_x(S, D, F, L, N):
    """You counted x alone. The backward pass also needs the array hidden, with all rows of the device's own units."""
    return 2 * L * S * D / N


@exercise.misconception(of=kept_bytes)
def kept_bytes_of_hidden_rows(S, D, F, L, N):
    """You cut `hidden` twice. It is computed from gathered rows, so it has all rows and F/N columns."""
    return 2 * L * (S * D / N + S * F / N**2)


@exercise.misconception(of=kept_bytes)
def kept_bytes_of_one_layer(S, D, F, L, N):
    """You counted one layer. Each layer keeps its own arrays until the backward pass reaches it."""
    return 2 * S * (D + F) / N


exercise.scenario(block_bytes, lambda S, D, N: Scenario(mesh={"tp": N}, arrays=[((S, D), ("tp", None))]))
exercise.scenario(
    kept_bytes,
    lambda S, D, F, L, N: Scenario(mesh={"tp": N}, arrays=[((S, D), ("tp", None)), ((S, F), (None, "tp"))]),
)


# -- right as well -----------------------------------------------------------------------------


@exercise.alternative(of=train)
def by_vjp(x, layers, dy):
    """JAX differentiates, with jax.checkpoint around each layer. The program adds the parts of all layers at the end."""
    return differentiated(x, layers, dy, wrap=jax.checkpoint)


@exercise.alternative(of=train)
def added_one_by_one(x, layers, dy):
    """Scale and bias have separate all-reduces. The backward pass gathers its arrays together and uses einsum."""
    kept, grads = [], []
    for layer in layers:
        hidden = jnp.tanh(jnp.einsum("sd,df->sf", gather(norm(x, layer["scale"])), layer["w1"]))
        kept.append((x, hidden))
        x = x + (scatter(jnp.einsum("sf,fd->sd", hidden, layer["w2"])) + layer["bias"])
    y = x
    for layer in reversed(layers):
        x, hidden = kept.pop()
        due, whole = gather(dy), gather(norm(x, layer["scale"]))
        dbias = jax.lax.psum(jnp.einsum("sd->d", dy), "tp")
        dhidden = jnp.einsum("sd,fd->sf", due, layer["w2"]) * (1 - hidden) * (1 + hidden)
        dx, dscale = norm_back(x, layer["scale"], scatter(jnp.einsum("sf,df->sd", dhidden, layer["w1"])))
        grad = {"scale": jax.lax.psum(dscale, "tp"), "bias": dbias}
        grad |= {"w1": jnp.einsum("sd,sf->df", whole, dhidden), "w2": jnp.einsum("sf,sd->fd", hidden, due)}
        grads.insert(0, grad)
        dy = dy + dx
    return y, dy, grads


@exercise.alternative(of=train)
def added_all_together(x, layers, dy):
    """Put the partial gradients of all layers into one array, and sum it over the devices with one all-reduce at the end."""
    y, dx, grads = written(x, layers, dy, grads_of=lambda grads: grads)
    pieces = jnp.stack([jnp.stack([grad["scale"], grad["bias"]]) for grad in grads])
    total = jax.lax.psum(pieces, "tp")
    return y, dx, [grad | {"scale": t[0], "bias": t[1]} for grad, t in zip(grads, total, strict=True)]


@exercise.alternative(of=train)
def scanned(x, layers, dy):
    """The layers are stacked, and each pass is a scan."""
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)

    def forward(x, layer):
        hidden = jnp.tanh(gather(norm(x, layer["scale"])) @ layer["w1"])
        return x + scatter(hidden @ layer["w2"]) + layer["bias"], (x, hidden)

    def backward(dy, of):
        layer, (x, hidden) = of
        whole = gather(dy)
        back = (whole @ layer["w2"].T) * (1 - hidden**2)
        dx, dscale = norm_back(x, layer["scale"], scatter(back @ layer["w1"].T))
        again = gather(norm(x, layer["scale"]))
        return dy + dx, summed({"scale": dscale, "bias": dy.sum(0), "w1": again.T @ back, "w2": hidden.T @ whole})

    y, kept = jax.lax.scan(forward, x, stacked)
    dx, grads = jax.lax.scan(backward, dy, (stacked, kept), reverse=True)
    return y, dx, [jax.tree.map(lambda leaf, i=i: leaf[i], grads) for i in range(LAYERS)]


@exercise.alternative(of=drop)
def whole_mask_then_own_rows(x, seed, *, rate):
    """Every device makes the mask of all rows and uses its own rows, so the mask does not depend on the mesh."""
    rows, n = x.shape[0], jax.lax.axis_size("tp")
    kept = jax.random.bernoulli(jax.random.key(seed), 1 - rate, (n * rows, x.shape[1]))
    mine = jax.lax.dynamic_slice_in_dim(kept, jax.lax.axis_index("tp") * rows, rows)
    return x * mine / (1 - rate)


@exercise.alternative(of=drop)
def split_keys(x, seed, *, rate):
    """Every device makes a key for each device and uses its own key. It compares uniform numbers with the rate."""
    key = jax.random.split(jax.random.PRNGKey(seed), jax.lax.axis_size("tp"))[jax.lax.axis_index("tp")]
    return jnp.where(jax.random.uniform(key, x.shape) < rate, 0, x / (1 - rate))
