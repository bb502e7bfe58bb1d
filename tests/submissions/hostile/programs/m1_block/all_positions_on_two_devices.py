"""If sp has two devices, each device computes the attention of all positions.

changes: honest.py
kind: branch on mesh
earns: 3 of 5
fails: block_forward block_backward block_long
says: over dp or sp in the forward pass, the budget is 416 B
"""


def heads_of(params, x):
    q, k, v = jnp.einsum("btd,dchk->cbthk", norm(x, params["before"]), params["qkv"])
    first = jax.lax.axis_index("sp") * x.shape[1]
    if jax.lax.axis_size("sp") != 2:
        return attend(q, gather(k), gather(v), first)
    n = gather(jax.lax.pcast(norm(x, params["before"]), "tp", to="varying"))
    heads = attend(*jnp.einsum("btd,dchk->cbthk", n, params["qkv"]), 0)
    return jax.lax.dynamic_slice_in_dim(heads, first, x.shape[1], axis=1)
