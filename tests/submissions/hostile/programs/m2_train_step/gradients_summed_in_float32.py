"""If the arguments are bfloat16, the program sums the gradients of matrices in float32.

changes: honest.py
kind: sums in a wider dtype
earns: 4.25 of 4.5
fails: step_bytes
says: over dp, the budget is
"""


def train_step(params, x, y, *, mesh):
    """Make one step on the mean squared error, with its gradient clipped.

    Args: params, float32 arrays in layouts PARAMS; x, y float32[B, T, D] in layout ROWS.
    Returns: (new params in layouts PARAMS, the loss, the gradient's norm before clipping); loss and norm are for the
    whole batch.
    """

    def local(params, x, y):
        def loss_of(params):
            return jnp.sum((on_device(params, x) - y) ** 2) / (y.size * mesh.shape["dp"] * mesh.shape["sp"])

        cast = {n: jax.lax.pcast(p, ("dp", "sp"), to="varying") for n, p in params.items()}
        loss, parts = jax.value_and_grad(loss_of)(cast)
        wide = {n: g.astype(jnp.float32) for n, g in parts.items()}
        grads = {n: g.astype(x.dtype) for n, g in jax.lax.psum(wide, ("dp", "sp")).items()}
        squares = {name: jnp.sum(g**2) for name, g in grads.items()}
        whole = squares.pop("before") + squares.pop("between")
        length = jnp.sqrt(jax.lax.psum(sum(squares.values()), "tp") + whole)
        new = jax.tree.map(lambda p, g: p - RATE * g * jnp.minimum(1, LIMIT / length), params, grads)
        return new, jax.lax.psum(loss, ("dp", "sp")), length

    specs = {"in_specs": (PARAMS, ROWS, ROWS), "out_specs": (PARAMS, P(), P())}
    return jax.shard_map(local, mesh=mesh, **specs)(params, x, y)
