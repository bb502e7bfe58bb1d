"""The reference solution."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def attention(q, k, v):
    """Return attention of a device's own queries, [B/dp, T/sp, H/tp, d], to all positions up to each query's own."""
    k, v = (jax.lax.all_gather(a, "sp", axis=1, tiled=True) for a in (k, v))
    there = jnp.arange(k.shape[1])
    here = jax.lax.axis_index("sp") * q.shape[1] + jnp.arange(q.shape[1])
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    weights = jax.nn.softmax(jnp.where(there <= here[:, None], scores, -jnp.inf))
    return jnp.einsum("bhts,bshd->bthd", weights, v)


def on_device(params, x):
    """Return one device's part of the block's result."""
    q, k, v = jnp.einsum("btd,dchk->cbthk", norm(x, params["before"]), params["qkv"])
    x += jax.lax.psum(jnp.einsum("bthk,hkd->btd", attention(q, k, v), params["out"]), "tp")
    hidden = jax.nn.silu(norm(x, params["between"]) @ params["up"])
    return x + jax.lax.psum(hidden @ params["down"], "tp")


ROWS = P("dp", "sp")


PARAMS = {
    "before": P(),  # [D], scale of the norm before attention
    "qkv": P(None, None, "tp"),  # [D, 3, H, d]
    "out": P("tp"),  # [H, d, D]
    "between": P(),  # [D], scale of the norm before the MLP
    "up": P(None, "tp"),  # [D, F]
    "down": P("tp"),  # [F, D]
}


RATE = 0.1


LIMIT = 30.0


def norm(x, scale):
    """Return each row of x divided by its root mean square, times scale."""
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True)) * scale


def train_step(params, x, y, *, mesh):
    """Make one step on the mean squared error, with its gradient clipped.

    Args: params, float32 arrays in layouts PARAMS; x, y float32[B, T, D] in layout ROWS.
    Returns: (new params in layouts PARAMS, the loss, the gradient's norm before clipping); loss and norm are for the
    whole batch.
    """

    def local(params, x, y):
        def loss_of(params):
            return jnp.sum((on_device(params, x) - y) ** 2) / (y.size * mesh.shape["dp"] * mesh.shape["sp"])

        loss, grads = jax.value_and_grad(loss_of)(params)
        squares = {name: jnp.sum(g**2) for name, g in grads.items()}
        whole = squares.pop("before") + squares.pop("between")
        length = jnp.sqrt(jax.lax.psum(sum(squares.values()), "tp") + whole)
        new = jax.tree.map(lambda p, g: p - RATE * g * jnp.minimum(1, LIMIT / length), params, grads)
        return new, jax.lax.psum(loss, ("dp", "sp")), length

    specs = {"in_specs": (PARAMS, ROWS, ROWS), "out_specs": (PARAMS, P(), P())}
    return jax.shard_map(local, mesh=mesh, **specs)(params, x, y)
