import jax
import jax.numpy as jnp


def stack(x, ws, dy, first=None, pass_on=None, last=None, slope=True):
    n, me, width = jax.lax.axis_size("tp"), jax.lax.axis_index("tp"), ws.shape[2]

    def own(a):
        return a.reshape(len(a), n, width)[:, me]

    def scattered(parts):
        return jax.lax.psum_scatter(parts, "tp", scatter_dimension=1, tiled=True)

    def summed(parts):
        return jax.lax.psum(parts, "tp")

    hs = [x]
    for w in ws:
        hs.append(jax.lax.all_gather(jnp.tanh(hs[-1] @ w), "tp", axis=1, tiled=True))
    d, grads = (first or own)(dy), []
    for i in reversed(range(len(ws))):
        d = d * (1 - own(hs[i + 1]) ** 2) if slope else d
        grads.append(hs[i].T @ d)
        parts = d @ ws[i].T
        d = (pass_on(parts, own) if pass_on else scattered(parts)) if i else (last or summed)(parts)
    return hs[-1], d, jnp.stack(grads[::-1])


def dy_scattered(x, ws, dy):
    """gather_tp: equal_cotangents_summed
    Statement: dy, which is equal on all devices, is summed over them."""
    return stack(x, ws, dy, first=lambda dy: jax.lax.psum_scatter(dy, "tp", scatter_dimension=1, tiled=True))


def all_reduced_each_layer(x, ws, dy):
    """gather_tp: all_reduced_then_cut
    Statement: an all-reduce and a slice for every layer."""
    return stack(x, ws, dy, pass_on=lambda parts, own: own(jax.lax.psum(parts, "tp")))


def dx_partial(x, ws, dy):
    """gather_tp: dx_left_partial
    Statement: dx is not summed."""
    return stack(x, ws, dy, last=lambda parts: parts)


def dh_partial(x, ws, dy):
    """gather_tp: never_reduced
    Statement: a device keeps its part of {dh} and does not sum it."""
    return stack(x, ws, dy, pass_on=lambda parts, own: own(parts))


def dx_averaged(x, ws, dy):
    """gather_tp: dx_averaged
    Statement: dx is averaged."""
    return stack(x, ws, dy, last=lambda parts: jax.lax.pmean(parts, "tp"))


def without_slope(x, ws, dy):
    """gather_tp: slope_left_out
    Statement: tanh' is left out."""
    return stack(x, ws, dy, slope=False)


def derived(x, ws, dy):
    """gather_tp: equal_cotangents_summed
    Statement: JAX derives the backward pass; copies of dy are added."""

    def run(x, ws):
        for w in ws:
            x = jax.lax.all_gather(jnp.tanh(x @ w), "tp", axis=1, tiled=True)
        return x

    y, back = jax.vjp(run, x, ws)
    dx, dws = back(dy)
    return y, jax.lax.psum(dx, "tp"), dws


def with_slope(x, ws, dy, slope):
    """Run the stack with ``slope(z, h, own input)`` in place of the derivative of tanh."""
    me, width = jax.lax.axis_index("tp"), ws.shape[2]

    def own(a):
        return jax.lax.dynamic_slice_in_dim(a, me * width, width, 1)

    h, kept = x, []
    for w in ws:
        z = h @ w
        kept.append((h, z))
        h = jax.lax.all_gather(jnp.tanh(z), "tp", axis=1, tiled=True)
    d, grads = own(dy), []
    for (before, z), w in zip(kept[::-1], ws[::-1], strict=True):
        d = d * slope(z, jnp.tanh(z), own(before))
        grads.insert(0, before.T @ d)
        parts = d @ w.T
        d = jax.lax.psum_scatter(parts, "tp", scatter_dimension=1, tiled=True) if len(grads) < len(ws) else parts
    return h, jax.lax.psum(d, "tp"), jnp.stack(grads)


def tanh_of_the_result(x, ws, dy):
    """gather_tp: slope_of_another_argument"""
    return with_slope(x, ws, dy, lambda z, h, before: 1 - jnp.tanh(h) ** 2)


def square_of_the_sum(x, ws, dy):
    """gather_tp: slope_of_another_argument"""
    return with_slope(x, ws, dy, lambda z, h, before: 1 - z**2)


def tanh_of_the_input(x, ws, dy):
    """gather_tp: slope_of_the_input"""
    return with_slope(x, ws, dy, lambda z, h, before: 1 - jnp.tanh(before) ** 2)


def square_of_the_input(x, ws, dy):
    """gather_tp: slope_of_the_input"""
    return with_slope(x, ws, dy, lambda z, h, before: 1 - before**2)


def square_left_out(x, ws, dy):
    """gather_tp: slope_without_square"""
    return with_slope(x, ws, dy, lambda z, h, before: 1 - h)
