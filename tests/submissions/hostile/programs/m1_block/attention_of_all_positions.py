"""The program gathers rows once, varying over tp. Each device computes the attention of all positions.

changes: honest.py
kind: work of other devices
earns: 2.5 of 5
fails: block_work block_forward block_backward block_long
says: FLOPs on matmuls and sums of products
"""


def heads_of(params, x):
    n = gather(jax.lax.pcast(norm(x, params["before"]), "tp", to="varying"))
    heads = attend(*jnp.einsum("btd,dchk->cbthk", n, params["qkv"]), 0)
    return jax.lax.dynamic_slice_in_dim(heads, jax.lax.axis_index("sp") * x.shape[1], x.shape[1], axis=1)
