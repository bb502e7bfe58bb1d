import jax
import jax.numpy as jnp
from jax import lax

from h6_sequence_parallel import norm, norm_back


def gather(rows):
    return jax.lax.all_gather(rows, "tp", tiled=True)


def scatter(parts):
    return jax.lax.psum_scatter(parts, "tp", tiled=True)


def cut(parts):
    rows = parts.shape[0] // jax.lax.axis_size("tp")
    return jax.lax.dynamic_slice_in_dim(jax.lax.psum(parts, "tp"), jax.lax.axis_index("tp") * rows, rows)


def steps(x, layers, dy, scale=None, bias=None, down=scatter, up=scatter, keep=0):
    def summed(g):
        return jax.lax.psum(g, "tp")

    held = []
    for p in layers:
        wide = gather(norm(x, p["scale"]))
        hidden = jnp.tanh(wide @ p["w1"])
        held.append((x, hidden, wide if len(held) < keep else None))
        x = x + down(hidden @ p["w2"]) + p["bias"]
    grads, d = [], dy
    for p, (rows, hidden, wide) in list(zip(layers, held, strict=True))[::-1]:
        every = gather(d)
        inner = (every @ p["w2"].T) * (1 - hidden * hidden)
        dx, dscale = norm_back(rows, p["scale"], up(inner @ p["w1"].T))
        seen = gather(norm(rows, p["scale"])) if wide is None else wide
        grads.insert(0, {"w1": seen.T @ inner, "w2": hidden.T @ every})
        grads[0]["scale"] = (scale or summed)(dscale)
        grads[0]["bias"] = (bias or summed)(d.sum(0))
        d = d + dx
    return x, d, grads


def own(g):
    return g


def averaged(g):
    return jax.lax.pmean(g, "tp")


def scale_not_summed(x, layers, dy):
    """train: scale_not_added
    Row: the gradients of the norms' scales are not summed."""
    return steps(x, layers, dy, scale=own)


def bias_not_summed(x, layers, dy):
    """train: bias_not_added
    Row: the gradient of the bias is not summed."""
    return steps(x, layers, dy, bias=own)


def neither_summed(x, layers, dy):
    """train: pieces_not_added
    Row: the gradients of scale and bias are not summed."""
    return steps(x, layers, dy, scale=own, bias=own)


def scale_averaged(x, layers, dy):
    """train: scale_averaged
    Row: the gradient of the scale is averaged."""
    return steps(x, layers, dy, scale=averaged)


def both_averaged(x, layers, dy):
    """train: pieces_averaged
    Row: the gradients of scale and bias are averaged."""
    return steps(x, layers, dy, scale=averaged, bias=averaged)


def all_reduced_forward(x, layers, dy):
    """train: all_reduced_then_cut
    Row: an all-reduce and a slice in the forward pass."""
    return steps(x, layers, dy, down=cut)


def all_reduced_backward(x, layers, dy):
    """train: all_reduced_then_cut
    Row: an all-reduce and a slice in the backward pass."""
    return steps(x, layers, dy, up=cut)


def all_reduced_both(x, layers, dy):
    """train: all_reduced_then_cut
    Row: an all-reduce and a slice in both passes."""
    return steps(x, layers, dy, down=cut, up=cut)


def gathered_rows_kept(x, layers, dy):
    """train: gathered_rows_kept
    Row: the gathered rows are kept."""
    return steps(x, layers, dy, keep=len(layers))


def derived(x, layers, dy):
    """train: gathered_rows_kept
    Row: the gathered rows are kept: JAX derives the backward pass of the whole stack."""

    def run(x, layers):
        for p in layers:
            x = x + scatter(jnp.tanh(gather(norm(x, p["scale"])) @ p["w1"]) @ p["w2"]) + p["bias"]
        return x

    y, back = jax.vjp(run, x, layers)
    dx, grads = back(dy)
    for g in grads:
        g["scale"], g["bias"] = jax.lax.psum((g["scale"], g["bias"]), "tp")
    return y, dx, grads


def one_key(x, seed, *, rate):
    """drop: dropped_alike
    Row: one dropout key for all devices."""
    keep = jax.random.uniform(jax.random.PRNGKey(seed), x.shape) >= rate
    return keep * x / (1 - rate)


def seed_plus_device(x, seed, *, rate):
    """drop: device_added_to_the_seed
    Row: keys that meet again: the seed plus the device's index."""
    key = jax.random.key(seed + jax.lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, rate, x.shape), 0, x / (1 - rate))


def same_row_of_keys(x, seed, *, rate):
    """drop: dropped_alike
    Row: one key for each row of the device, equal on all devices."""
    keys = jax.random.split(jax.random.key(seed), len(x))
    keep = jax.vmap(lambda key, row: jax.random.bernoulli(key, 1 - rate, row.shape))(keys, x)
    return jnp.where(keep, x / (1 - rate), 0)


def u_and_1_minus_u(x, seed, *, rate):
    """drop: dropped_by_u_and_1_minus_u
    Row: odd devices use 1 - u for the numbers u of the even devices."""
    me = jax.lax.axis_index("tp")
    u = jax.random.uniform(jax.random.split(jax.random.key(seed), 4)[me // 2], x.shape)
    return jnp.where((jnp.where(me % 2 == 1, 1 - u, u)) >= rate, x / (1 - rate), 0)


def one_u_and_1_minus_u(x, seed, *, rate):
    """drop: dropped_by_u_and_1_minus_u
    Row: odd devices use 1 - u for numbers u that all devices draw alike."""
    u = jax.random.uniform(jax.random.PRNGKey(seed), x.shape)
    odd = jax.lax.axis_index("tp") % 2 == 1
    return jnp.where(u < rate, 0, x / (1 - rate)) * (1 - odd) + odd * jnp.where(1 - u < rate, 0, x / (1 - rate))


def one_key_for_two_devices(x, seed, *, rate):
    """drop: dropped_alike_in_pairs
    Row: two neighbours have one key."""
    keys = jax.random.split(jax.random.key(seed), jax.lax.axis_size("tp"))
    keep = jax.random.uniform(keys[jax.lax.axis_index("tp") // 2], x.shape) > rate
    return jnp.where(keep, x / (1 - rate), 0)


def shifted_by_the_index(x, seed, *, rate):
    """drop: dropped_by_shifted_rows
    Row: one mask, which each device shifts by its index."""
    keep = jax.random.uniform(jax.random.PRNGKey(seed), x.shape) > rate
    return jnp.where(jnp.roll(keep, 7 * jax.lax.axis_index("tp"), axis=1), x / (1 - rate), 0)


def mask_backwards(x, seed, *, rate):
    """drop: dropped_by_shifted_rows
    Row: odd devices read the mask backwards."""
    keep = jax.random.uniform(jax.random.PRNGKey(seed), x.shape) > rate
    keep = jax.lax.cond(jax.lax.axis_index("tp") % 2 == 1, lambda m: m[::-1, ::-1], lambda m: m, keep)
    return jnp.where(keep, x / (1 - rate), 0)


def mask_transposed(x, seed, *, rate):
    """drop: dropped_by_shifted_rows
    Row: odd devices write the mask column by column."""
    keep = jax.random.uniform(jax.random.PRNGKey(seed), x.shape) > rate
    odd = jax.lax.axis_index("tp") % 2 == 1
    return jnp.where(jnp.where(odd, keep.reshape(keep.shape[::-1]).T, keep), x / (1 - rate), 0)


def two_layers_kept(x, layers, dy):
    """train: gathered_rows_of_two_kept
    Row: the gathered rows of the first two layers are kept."""
    return steps(x, layers, dy, keep=2)


def rows_of(whole, rows):
    return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("tp") * rows, rows)


def by_vjp(x, layers, dy, act=jnp.tanh, down=scatter, finish=None):
    # JAX derives each layer's backward pass; `finish` reduces a layer's gradients

    def block(x, p):
        return x + down(act(gather(norm(x, p["scale"])) @ p["w1"]) @ p["w2"]) + p["bias"]

    pulls = []
    for p in layers:
        x, pull = jax.vjp(jax.checkpoint(block), x, p)
        pulls.append(pull)
    grads = []
    for pull in reversed(pulls):
        dy, g = pull(dy)
        g = g | {name: jax.lax.psum(g[name], "tp") for name in ("scale", "bias")}
        grads.insert(0, finish(g) if finish else g)
    return x, dy, grads


def by_hand(x, layers, dy, slope=lambda h: 1 - h**2, dw1=None, down=scatter, up=scatter, parts=None):
    # as `steps`, with another derivative of tanh, another gradient of w1, or other reductions
    held = []
    for p in layers:
        held.append((x, jnp.tanh(gather(norm(x, p["scale"])) @ p["w1"])))
        x = x + down(held[-1][1] @ p["w2"]) + p["bias"]
    y, grads = x, []
    for p, (x, hidden) in zip(layers[::-1], held[::-1], strict=True):
        every = gather(dy)
        inner = (every @ p["w2"].T) * slope(hidden)
        dx, dscale = norm_back(x, p["scale"], up(inner @ p["w1"].T))
        own = norm(x, p["scale"])
        g = {"w1": dw1(own, inner) if dw1 else gather(own).T @ inner, "w2": hidden.T @ every}
        g["scale"], g["bias"] = (jax.lax.psum(one, "tp") for one in (dscale, jnp.sum(dy, 0)))
        grads = [parts(g) if parts else g, *grads]
        dy = dy + dx
    return y, dy, grads


def no_tanh_slope(x, layers, dy):
    """train: tanh_slope_forgotten
    The backward pass leaves the derivative of tanh out."""
    return by_hand(x, layers, dy, slope=jnp.ones_like)


def no_tanh_slope_by_rule(x, layers, dy):
    """train: tanh_slope_forgotten
    A custom rule for tanh passes the cotangent on."""
    act = jax.custom_vjp(jnp.tanh)
    act.defvjp(lambda z: (jnp.tanh(z), None), lambda _, g: (g,))
    return by_vjp(x, layers, dy, act=act)


def slope_of_the_input(x, layers, dy):
    """train: tanh_slope_without_the_square
    The derivative of tanh is taken at hidden, not at the input of tanh."""
    return by_hand(x, layers, dy, slope=lambda h: 1 - jnp.tanh(h) ** 2)


def dw1_of_own_rows(x, layers, dy):
    """train: w1_from_own_rows
    The gradient of w1 has only the device's own rows."""
    return by_hand(x, layers, dy, dw1=lambda own, inner: own.T @ rows_of(inner, len(own)))


def dw1_of_own_rows_placed(x, layers, dy):
    """train: w1_from_own_rows
    norm(x) is put into zeros, not gathered."""

    def dw1(own, inner):
        empty = jnp.zeros((len(inner), own.shape[1]))
        placed = jax.lax.dynamic_update_slice_in_dim(empty, own, jax.lax.axis_index("tp") * len(own), 0)
        return jnp.einsum("sd,sf->df", placed, inner)

    return by_hand(x, layers, dy, dw1=dw1)


def dw1_summed(x, layers, dy):
    """train: weights_added_too
    The gradient of w1 is summed over tp, too."""
    return by_hand(x, layers, dy, dw1=lambda own, inner: jax.lax.psum(gather(own).T @ inner, "tp"))


def dw1_summed_by_vjp(x, layers, dy):
    """train: weights_added_too
    The gradient of w1 is summed over tp, too."""
    return by_vjp(x, layers, dy, finish=lambda g: g | {"w1": jax.lax.psum(g["w1"], "tp")})


def dw2_summed(x, layers, dy):
    """train: weights_added_too
    The gradient of w2 is summed over tp, too."""
    return by_vjp(x, layers, dy, finish=lambda g: g | {"w2": jax.lax.psum(g["w2"], "tp")})


def weights_averaged(x, layers, dy):
    """train: none
    The gradients of w1 and w2 are averaged over tp."""
    mean = lambda g: jax.lax.pmean(g, "tp")  # noqa: E731
    return by_hand(x, layers, dy, parts=lambda g: g | {"w1": mean(g["w1"]), "w2": mean(g["w2"])})


def kept_own_rows(parts):
    return rows_of(parts, len(parts) // jax.lax.axis_size("tp"))


def no_scatter_forward(x, layers, dy):
    """train: sums_not_added
    The forward pass keeps a device's rows of its own sums."""
    return by_hand(x, layers, dy, down=kept_own_rows)


def no_scatter_backward(x, layers, dy):
    """train: sums_not_added_backward
    The backward pass keeps a device's rows of its own sums."""
    return by_hand(x, layers, dy, up=kept_own_rows)


def no_scatter_at_all(x, layers, dy):
    """train: sums_not_added
    Both passes keep a device's rows of its own sums."""
    return by_hand(x, layers, dy, down=kept_own_rows, up=kept_own_rows)


def no_scatter_forward_reshaped(x, layers, dy):
    """train: sums_not_added
    As `no_scatter_forward`, by a reshape."""
    own = lambda parts: parts.reshape(jax.lax.axis_size("tp"), -1, parts.shape[1])[jax.lax.axis_index("tp")]  # noqa: E731
    return by_hand(x, layers, dy, down=own)


def no_scatter_by_vjp(x, layers, dy):
    """train: sums_not_added
    As `no_scatter_forward`; JAX derives the backward pass."""
    return by_vjp(x, layers, dy, down=kept_own_rows)


def rows_of_2(x):
    return lax.psum_scatter(x, "tp", scatter_dimension=0, tiled=True)


def all_of(x):
    return lax.all_gather(x, "tp", axis=0, tiled=True)


def total(x):
    return lax.psum(x, "tp")


def by_hand_2(
    x,
    layers,
    dy,
    *,
    small=total,
    keep_gathered=False,
    late_bias=True,
    residual=True,
    weights=lambda w: w,
    whole_bias=False,
    slope=lambda h: 1 - h * h,
    back=rows_of_2,
):
    kept = []
    for layer in layers:
        n = all_of(norm(x, layer["scale"]))
        hidden = jnp.tanh(n @ layer["w1"])
        kept.append((x, hidden, n if keep_gathered else None))
        out = hidden @ layer["w2"]
        x = x + rows_of_2(out) + layer["bias"] if late_bias else x + rows_of_2(out + layer["bias"])
    y, grads = x, []
    for layer, (x, hidden, n) in zip(reversed(layers), reversed(kept)):
        whole = all_of(dy)
        inner = (whole @ layer["w2"].T) * slope(hidden)
        if n is None:
            n = all_of(norm(x, layer["scale"]))
        dx, dscale = norm_back(x, layer["scale"], back(inner @ layer["w1"].T))
        grads.append(
            {
                "scale": small(dscale),
                "w1": weights(n.T @ inner),
                "w2": weights(hidden.T @ whole),
                "bias": small((whole if whole_bias else dy).sum(axis=0)),
            }
        )
        dy = dy + dx if residual else dx
    return y, dy, grads[::-1]


def by_vjp_2(x, layers, dy, one_layer, scale=total, bias=total):
    def model(x, layers):
        for layer in layers:
            x = one_layer(x, layer)
        return x

    y, back = jax.vjp(model, x, layers)
    dx, grads = back(dy)
    return y, dx, [g | {"scale": scale(g["scale"]), "bias": bias(g["bias"])} for g in grads]


def one_layer(x, p):
    n = all_of(norm(x, p["scale"]))
    return x + rows_of_2(jnp.tanh(n @ p["w1"]) @ p["w2"]) + p["bias"]


def parts_of_scale(x, layers, dy):
    """train: scale_not_added
    Gradient of scale is not summed over tp."""
    return by_vjp_2(x, layers, dy, jax.checkpoint(one_layer), scale=lambda g: g)


def nothing_summed(x, layers, dy):
    """train: pieces_not_added
    Gradients of scale and bias are not summed over tp."""
    return by_hand_2(x, layers, dy, small=lambda g: g)


def averaged_2(x, layers, dy):
    """train: pieces_averaged
    Gradients of scale and bias are averaged_2 over tp."""
    return by_hand_2(x, layers, dy, small=lambda g: lax.pmean(g, "tp"))


def bias_before_scatter(x, layers, dy):
    """train: bias_inside_the_sum
    Bias is added before the reduce-scatter, N times."""
    return by_hand_2(x, layers, dy, late_bias=False)


def bias_from_whole_dy(x, layers, dy):
    """train: bias_from_all_rows
    Gradient of bias from the gathered rows, then summed: N times too large."""
    return by_hand_2(x, layers, dy, whole_bias=True)


def keeps_n(x, layers, dy):
    """train: gathered_rows_kept
    Keeps the gathered rows of each layer."""
    return by_hand_2(x, layers, dy, keep_gathered=True)


def no_checkpoint(x, layers, dy):
    """train: gathered_rows_kept
    Keeps the gathered rows of each layer (jax.vjp without checkpoint)."""
    return by_vjp_2(x, layers, dy, one_layer)


def no_residual(x, layers, dy):
    """train: residual_forgotten
    The backward pass forgets the residual."""
    return by_hand_2(x, layers, dy, residual=False)


def weights_summed(x, layers, dy):
    """train: weights_added_too
    Gradients of w1 and w2 are summed over tp too."""
    return by_hand_2(x, layers, dy, weights=total)


def gathers_then_norms(x, layers, dy):
    """train: normed_after_the_gather
    Gathers x and normalizes all rows on each device."""

    def layer(x, p):
        n = norm(all_of(x), p["scale"])
        return x + rows_of_2(jnp.tanh(n @ p["w1"]) @ p["w2"]) + p["bias"]

    return by_vjp_2(x, layers, dy, jax.checkpoint(layer))


def reduces_then_slices(x, layers, dy):
    """train: all_reduced_then_cut
    All-reduce and a slice instead of a reduce-scatter."""

    def own(full):
        return lax.dynamic_slice_in_dim(lax.psum(full, "tp"), lax.axis_index("tp") * x.shape[0], x.shape[0])

    hidden, inputs = [], []
    for p in layers:
        inputs.append(x)
        hidden.append(jnp.tanh(all_of(norm(x, p["scale"])) @ p["w1"]))
        x = x + own(hidden[-1] @ p["w2"]) + p["bias"]
    y, grads = x, [{}] * len(layers)
    for i in range(len(layers) - 1, -1, -1):
        p = layers[i]
        d = all_of(dy)
        db = lax.psum(jnp.sum(dy, 0), "tp")
        dw2 = hidden[i].T @ d
        du = d @ p["w2"].T * (1 - hidden[i] ** 2)
        dw1 = all_of(norm(inputs[i], p["scale"])).T @ du
        dx, ds = norm_back(inputs[i], p["scale"], own(du @ p["w1"].T))
        grads[i] = {"scale": lax.psum(ds, "tp"), "w1": dw1, "w2": dw2, "bias": db}
        dy = dy + dx
    return y, dy, grads


def back_not_summed(x, layers, dy):
    """train: sums_not_added_backward
    In the backward pass a device slices its rows of its own part of dn, without a sum."""

    def mine(dn):
        return lax.dynamic_slice_in_dim(dn, lax.axis_index("tp") * x.shape[0], x.shape[0])

    return by_hand_2(x, layers, dy, back=mine)


def one_checkpoint(x, layers, dy):
    """train: one_checkpoint_around_all
    One checkpoint around all layers: the backward pass runs all collectives again."""

    @jax.checkpoint
    def model(x, layers):
        for p in layers:
            x = one_layer(x, p)
        return x

    y, back = jax.vjp(model, x, layers)
    dx, grads = back(dy)
    for g in grads:
        g["scale"], g["bias"] = lax.psum((g["scale"], g["bias"]), "tp")
    return y, dx, grads


def whole_between(x, layers, dy):
    """train: whole_rows_between_layers
    As in H5, x is whole between the blocks."""

    @jax.checkpoint
    def layer(full, p):
        n = norm(full, p["scale"])
        return full + all_of(rows_of_2(jnp.tanh(n @ p["w1"]) @ p["w2"])) + p["bias"]

    i, b = lax.axis_index("tp"), x.shape[0]

    def model(x, layers):
        full = all_of(x)
        for p in layers:
            full = layer(full, p)
        return lax.dynamic_slice_in_dim(full, i * b, b)

    y, back = jax.vjp(model, x, layers)
    dx, grads = back(dy)
    for g in grads:
        g["scale"], g["bias"] = lax.psum((g["scale"], g["bias"]), "tp")
    return y, dx, grads


def derivative_from_hidden_only(x, layers, dy):
    """train: tanh_slope_without_the_square
    Tanh' is 1 - hidden, without the square."""
    return by_hand_2(x, layers, dy, slope=lambda h: 1 - h)


def equal_keys(x, seed, *, rate):
    """drop: dropped_alike
    All devices use one key."""
    keep = jax.random.uniform(jax.random.PRNGKey(seed), x.shape) >= rate
    return jnp.where(keep, x / (1 - rate), 0.0)


def adds_the_device(x, seed, *, rate):
    """drop: device_added_to_the_seed
    Seed + device: device 1 of seed 0 equals device 0 of seed 1."""
    key = jax.random.key(seed + lax.axis_index("tp"))
    return x * jax.random.bernoulli(key, 1 - rate, x.shape) / (1 - rate)


def folds_dp_too(x, seed, *, rate):
    """drop: dropped_apart_on_copies
    The key depends on the device along dp too, so copies differ."""
    key = jax.random.key(seed)
    for axis in ("dp", "tp"):
        key = jax.random.fold_in(key, lax.axis_index(axis))
    return jnp.where(jax.random.uniform(key, x.shape) < rate, 0, x / (1 - rate))


def keeps_rate(x, seed, *, rate):
    """drop: kept_with_rate
    Keeps a share of rate instead of dropping it."""
    key = jax.random.fold_in(jax.random.key(seed), lax.axis_index("tp"))
    mask = jax.random.bernoulli(key, rate, x.shape)
    return jnp.where(mask, x / (1 - rate), 0)


def keeps_rate_and_divides_by_it(x, seed, *, rate):
    """drop: dropped_and_divided_by_rate
    Keeps a share of rate and divides by rate."""
    key = jax.random.fold_in(jax.random.key(seed), lax.axis_index("tp"))
    return x * jax.random.bernoulli(key, rate, x.shape) / rate


def not_divided(x, seed, *, rate):
    """drop: dropped_unscaled
    Not divided by 1 - rate."""
    key = jax.random.fold_in(jax.random.PRNGKey(seed), lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x, 0)


def whole_rows(x, seed, *, rate):
    """drop: none
    Drops whole rows."""
    key = jax.random.fold_in(jax.random.key(seed), lax.axis_index("tp"))
    keep = jax.random.bernoulli(key, 1 - rate, (x.shape[0], 1))
    return jnp.where(keep, x / (1 - rate), 0)


def equal_rows(x, seed, *, rate):
    """drop: dropped_alike_in_rows
    All rows of a device have one mask."""
    key = jax.random.fold_in(jax.random.key(seed), lax.axis_index("tp"))
    keep = jax.random.bernoulli(key, 1 - rate, x.shape[1:])
    return jnp.where(keep, x / (1 - rate), 0)


def rolled(x, seed, *, rate):
    """drop: dropped_by_shifted_rows
    One mask, rolled by the device's number."""
    keep = jax.random.bernoulli(jax.random.key(seed), 1 - rate, x.shape)
    return jnp.where(jnp.roll(keep, lax.axis_index("tp"), axis=0), x / (1 - rate), 0)


def seed_left_out(x, seed, *, rate):
    """drop: dropped_without_the_seed
    The seed is not used."""
    key = jax.random.key(lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def drops_gathered_rows(x, seed, *, rate):
    """drop: dropped_from_all_rows
    Gathers the rows, drops with one mask, takes its rows: sends."""
    full = all_of(x)
    keep = jax.random.bernoulli(jax.random.key(seed), 1 - rate, full.shape)
    full = jnp.where(keep, full / (1 - rate), 0)
    return lax.dynamic_slice_in_dim(full, lax.axis_index("tp") * x.shape[0], x.shape[0])


def each_block(x, p):
    n = all_of(norm(x, p["scale"]))
    hidden = jnp.tanh(n @ p["w1"])
    return x + rows_of_2(hidden @ p["w2"]) + p["bias"], hidden


def backwards(x, layers, dy, *, order=lambda grads: grads[::-1], norm_of=lambda x, p: x, early=True):
    inputs, hiddens = [], []
    for p in layers:
        inputs.append(x)
        x, hidden = each_block(x, p)
        hiddens.append(hidden)
    grads = []
    for p, own, hidden in reversed(list(zip(layers, inputs, hiddens))):
        d = all_of(dy)
        down = jnp.einsum("sf,sd->fd", hidden, d)
        du = jnp.einsum("sd,fd->sf", d, p["w2"]) * (1 - hidden**2)
        dn = rows_of_2(jnp.einsum("sf,df->sd", du, p["w1"]))
        dx, ds = norm_back(norm_of(own, p), p["scale"], dn)
        later = dy + dx
        sums = jnp.stack([ds, (dy if early else later).sum(0)])
        ds, db = lax.psum(sums, "tp")
        up = jnp.einsum("sd,sf->df", all_of(norm(own, p["scale"])), du)
        grads.append({"scale": ds, "w1": up, "w2": down, "bias": db})
        dy = later
    return x, dy, order(grads)


def grads_in_backward_order(x, layers, dy):
    """train: gradients_in_backward_order
    The gradients are in the order of the backward pass: the last layer is first."""
    return backwards(x, layers, dy, order=lambda grads: grads)


def norm_back_of_the_norm(x, layers, dy):
    """train: norm_back_of_the_norm
    norm_back gets norm(x), not x."""
    return backwards(x, layers, dy, norm_of=lambda x, p: norm(x, p["scale"]))


def bias_from_the_next_dy(x, layers, dy):
    """train: bias_of_the_layer_before
    The bias's gradient sums the gradient of x, not dy."""
    return backwards(x, layers, dy, early=False)


def gathers_hidden(x, layers, dy):
    """train: none
    Gathers hidden and w2 over tp, so that no sum is needed: each device does the second matmul for its own rows."""

    def layer(x, p):
        hidden = lax.all_gather(jnp.tanh(all_of(norm(x, p["scale"])) @ p["w1"]), "tp", axis=1, tiled=True)
        w2 = all_of(p["w2"])
        i = lax.axis_index("tp") * len(x)
        return x + lax.dynamic_slice_in_dim(hidden, i, len(x)) @ w2 + p["bias"]

    return by_vjp_2(x, layers, dy, jax.checkpoint(layer))


def no_forward_residual(x, layers, dy):
    """train: residual_left_out
    The forward pass leaves out x itself."""

    def layer(x, p):
        return rows_of_2(jnp.tanh(all_of(norm(x, p["scale"])) @ p["w1"]) @ p["w2"]) + p["bias"]

    return by_vjp_2(x, layers, dy, jax.checkpoint(layer))


def seed_of_the_device(x, seed, *, rate):
    """drop: device_added_to_the_seed
    The seed times the device's number."""
    key = jax.random.key(seed * (1 + lax.axis_index("tp")))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def divided_by_rate(x, seed, *, rate):
    """drop: dropped_and_multiplied
    The numbers are multiplied by 1 - rate."""
    key = jax.random.fold_in(jax.random.key(seed), lax.axis_index("tp"))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x * (1 - rate), 0)
