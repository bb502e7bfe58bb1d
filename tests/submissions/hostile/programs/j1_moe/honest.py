"""The reference solution."""

import jax

import jax.numpy as jnp

from jax.sharding import PartitionSpec as P

TOKENS = P(("dp", "ep"), None)

EXPERTS = P("ep", None, None)


def moe(x, route, w, *, k, cap):
    """Return each token's results from its k experts, weighted by its gates and added.

    Args: blocks of x float32[S, D] ((dp, ep), -), of route float32[S, E] ((dp, ep), -), of w float32[E, D, F] (ep, -, -).
    Returns: a block of float32[S, F] ((dp, ep), -).
    """
    gates, experts = jax.lax.top_k(jax.nn.softmax(route), k)
    expert, gate = (experts.T.ravel(), gates.T.ravel())
    chosen = jax.nn.one_hot(expert, route.shape[1], dtype=int)
    slot = jnp.cumsum(chosen, axis=0)[jnp.arange(len(expert)), expert] - 1
    slots = jnp.zeros((route.shape[1], cap, x.shape[1])).at[expert, slot].set(jnp.tile(x, (k, 1)), mode="drop")
    here = jax.lax.all_to_all(slots, "ep", split_axis=0, concat_axis=1, tiled=True)
    made = jnp.tanh(jnp.einsum("ecd,edf->ecf", here, w))
    home = jax.lax.all_to_all(made, "ep", split_axis=1, concat_axis=0, tiled=True)
    results = home.at[expert, slot].get(mode="fill", fill_value=0)
    return (gate[:, None] * results).reshape(k, len(x), -1).sum(0)
