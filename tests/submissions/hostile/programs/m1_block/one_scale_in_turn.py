"""Two all-reduces sum the gradient of one scale, first over dp, then over sp.

changes: honest.py
kind: sums of one axis after the other
earns: 3.75 of 5
fails: block_backward block_long
says: over dp or sp in the backward pass, the budget is
"""


def on_device(params, x):
    """Return one device's part of the block's result."""
    turned = jax.lax.pcast(jax.lax.pcast(params["before"], "dp", to="varying"), "sp", to="varying")
    params = params | {"before": turned}
    x = x + jax.lax.psum(jnp.einsum("bthk,hkd->btd", heads_of(params, x), params["out"]), "tp")
    return x + jax.lax.psum(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"], "tp")
