"""Each device along sp computes attention from all positions, one head after the other.

kind: work of other devices
earns: 3.5 of 4.5
fails: step_work step_time
says: FLOPs on matmuls and sums of products
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def attention(q, k, v):
    """Of a device's own positions and heads, [B/dp, T/sp, H/tp, d], with all positions before them."""
    rows = q.shape[1]
    heads = tuple(jnp.moveaxis(jax.lax.all_gather(a, "sp", axis=1, tiled=True), 2, 0) for a in (q, k, v))

    @jax.checkpoint
    def of_one_head(qkv):
        q, k, v = qkv
        scores = jnp.einsum("btd,bsd->bts", q, k) / q.shape[-1] ** 0.5
        return jax.nn.softmax(jnp.where(jnp.tri(q.shape[1], dtype=bool), scores, -jnp.inf)) @ v

    every = jnp.moveaxis(jax.lax.map(of_one_head, heads), 0, 2)
    return jax.lax.dynamic_slice_in_dim(every, jax.lax.axis_index("sp") * rows, rows, axis=1)


def on_device(params, x):
    """The block, of what a device has."""
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
    """Each row of x divided by its root mean square, times scale."""
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True)) * scale


def train_step(params, x, y, *, mesh):
    """One step on the mean squared error, with its gradient clipped.

    Args: params, float32 arrays in layouts PARAMS; x, y float32[B, T, D] in layout ROWS.
    Returns: (new params in layouts PARAMS, the loss, the gradient's norm before clipping), both of all devices.
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
