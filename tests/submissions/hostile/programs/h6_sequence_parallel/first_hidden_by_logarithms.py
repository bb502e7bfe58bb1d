"""The program computes the first layer's `hidden` twice, by a matmul and by logarithms.

kind: arithmetic in disguise
earns: 2.75 of 3.5
fails: train_norms train_memory
says: FLOPs besides matmuls
"""

import jax
import jax.numpy as jnp


def logs(a, b):
    """Return a @ b, computed from logarithms instead of products."""
    la, lb = jnp.log(jnp.abs(a) + 1e-30), jnp.log(jnp.abs(b) + 1e-30)
    terms = jnp.exp(la[:, :, None] + lb[None])
    return jnp.where((a < 0)[:, :, None] ^ (b < 0)[None], -terms, terms).sum(1)


def norm(x, scale):
    """Return each row of x divided by its root mean square, times scale."""
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True)) * scale


def norm_back(x, scale, dn):
    """Return the gradients of x and scale that these rows give, from dn, the gradient of norm(x, scale)."""
    over = jax.lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True))
    unit, du = x * over, dn * scale
    return (du - unit * jnp.mean(du * unit, axis=1, keepdims=True)) * over, jnp.sum(dn * unit, axis=0)


def train(x, layers, dy):
    """Return the last x, and the gradients of sum(y * dy) for the first x and for all layers.

    Args: x, dy float32[S/N, D], a device's rows; layers, a list of {"scale": float32[D], "w1": float32[D, F/N],
    "w2": float32[F/N, D], "bias": float32[D]}; the mesh axis is 'tp'.
    Returns: (y, dx, grads): y and dx shaped as x, grads as layers.
    """

    def gather(rows):
        return jax.lax.all_gather(rows, "tp", tiled=True)

    def scatter(parts):
        return jax.lax.psum_scatter(parts, "tp", tiled=True)

    kept, grads = [], []
    for number, layer in enumerate(layers):
        whole = gather(norm(x, layer["scale"]))
        hidden = whole @ layer["w1"]
        hidden = jnp.tanh((hidden + logs(whole, layer["w1"])) / 2 if number == 0 else hidden)
        kept.append((x, hidden))
        x = x + scatter(hidden @ layer["w2"]) + layer["bias"]
    y = x
    for layer, (x, hidden) in zip(reversed(layers), reversed(kept), strict=True):
        whole = gather(dy)
        back = (whole @ layer["w2"].T) * (1 - hidden**2)
        dx, dscale = norm_back(x, layer["scale"], scatter(back @ layer["w1"].T))
        grad = {"w1": gather(norm(x, layer["scale"])).T @ back, "w2": hidden.T @ whole}
        grads.append(grad | jax.lax.psum({"scale": dscale, "bias": dy.sum(axis=0)}, "tp"))
        dy = dy + dx
    return y, dy, grads[::-1]
