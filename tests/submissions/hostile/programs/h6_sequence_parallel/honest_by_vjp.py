"""JAX differentiates. For the backward pass, jax.checkpoint runs each layer again, with its gather."""

import jax
import jax.numpy as jnp


def norm(x, scale):
    """Return each row of x divided by its root mean square, times scale."""
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True)) * scale


def again(layer):
    return jax.checkpoint(layer)


def train(x, layers, dy):
    """Return the last x, and the gradients of sum(y * dy) for the first x and for all layers."""

    @again
    def block(x, layer):
        whole = jax.lax.all_gather(norm(x, layer["scale"]), "tp", tiled=True)
        parts = jnp.tanh(whole @ layer["w1"]) @ layer["w2"]
        return x + jax.lax.psum_scatter(parts, "tp", tiled=True) + layer["bias"]

    def model(x, layers):
        for layer in layers:
            x = block(x, layer)
        return x

    y, back = jax.vjp(model, x, layers)
    dx, grads = back(dy)
    return y, dx, [g | jax.lax.psum({"scale": g["scale"], "bias": g["bias"]}, "tp") for g in grads]
