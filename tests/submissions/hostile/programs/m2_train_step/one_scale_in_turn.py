"""Two all-reduces sum the gradient of one scale, first over dp, then over sp.

changes: honest.py
kind: sums of one axis after the other
earns: 4 of 4.5
fails: step_traffic step_bytes
says: over dp or sp, the budget is
"""


def on_device(params, x):
    """Return one device's part of the block's result."""
    turned = jax.lax.pcast(jax.lax.pcast(params["before"], "dp", to="varying"), "sp", to="varying")
    q, k, v = jnp.einsum("btd,dchk->cbthk", norm(x, turned), params["qkv"])
    x += jax.lax.psum(jnp.einsum("bthk,hkd->btd", attention(q, k, v), params["out"]), "tp")
    hidden = jax.nn.silu(norm(x, params["between"]) @ params["up"])
    return x + jax.lax.psum(hidden @ params["down"], "tp")
