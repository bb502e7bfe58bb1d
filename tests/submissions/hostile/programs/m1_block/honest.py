"""An honest program."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

ROWS = P("dp", "sp")
PARAMS = {
    "before": P(),  # [D], scale of the norm before attention
    "qkv": P(None, None, "tp"),  # [D, 3, H, d]
    "out": P("tp"),  # [H, d, D]
    "between": P(),  # [D], scale of the norm before the MLP
    "up": P(None, "tp"),  # [D, F]
    "down": P("tp"),  # [F, D]
}


def norm(x, scale):
    """Return each row of x divided by its root mean square, times scale."""
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True)) * scale


def gather(a):
    return jax.lax.all_gather(a, "sp", axis=1, tiled=True)


def attend(q, k, v, first):
    """Return the attention of queries. The first query has position `first`."""
    here = first + jnp.arange(q.shape[1])
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    weights = jax.nn.softmax(jnp.where(jnp.arange(k.shape[1]) <= here[:, None], scores, -jnp.inf))
    return jnp.einsum("bhts,bshd->bthd", weights, v)


def heads_of(params, x):
    q, k, v = jnp.einsum("btd,dchk->cbthk", norm(x, params["before"]), params["qkv"])
    return attend(q, gather(k), gather(v), jax.lax.axis_index("sp") * x.shape[1])


def on_device(params, x):
    """Return one device's part of the block's result."""
    x = x + jax.lax.psum(jnp.einsum("bthk,hkd->btd", heads_of(params, x), params["out"]), "tp")
    return x + jax.lax.psum(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"], "tp")


def block(params, x, *, mesh):
    """Return the block's result, in layout ROWS.

    Args: params, float32 arrays in layouts PARAMS; x float32[B, T, D] in layout ROWS.
    Returns: float32[B, T, D] in layout ROWS.
    """
    return jax.shard_map(on_device, mesh=mesh, in_specs=(PARAMS, ROWS), out_specs=ROWS)(params, x)
