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
