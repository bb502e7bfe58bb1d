import jax
import jax.numpy as jnp

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
    """train: none
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
