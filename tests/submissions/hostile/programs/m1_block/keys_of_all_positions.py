"""The program gathers rows once, varying over tp. Each device computes K and V of all positions.

changes: honest.py
kind: work of other devices
earns: 2.5 of 5
fails: block_work block_forward block_backward block_long
says: FLOPs on matmuls and sums of products
"""


def heads_of(params, x):
    n = jax.lax.pcast(norm(x, params["before"]), "tp", to="varying")
    q = jnp.einsum("btd,dhk->bthk", n, params["qkv"][:, 0])
    k, v = jnp.einsum("btd,dchk->cbthk", gather(n), params["qkv"][:, 1:])
    return attend(q, k, v, jax.lax.axis_index("sp") * x.shape[1])
