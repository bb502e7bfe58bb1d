"""One all-reduce sums all buckets. For each other bucket, an all-reduce sums an empty array.

changes: honest.py
kind: a collective that nothing needs
earns: 0.5 of 1.5
fails: bucketed_budget bucketed_narrow bucketed_overlap
says: the all-reduces sum [0, 0, 444] bytes
"""


def bucketed_grads(ws, x, y, *, plan):
    """Return the gradients of the sum of squares over all rows, in a list like ws."""

    def loss(ws):
        h = x
        for w in ws:
            h = jnp.tanh(h @ w)
        return jnp.sum((h - y) ** 2)

    grads = jax.grad(loss)(ws)
    order = [i for bucket in plan for i in bucket]
    sums = [jax.lax.psum(grads[bucket[0]].ravel()[:0], "dp") for bucket in plan[1:]]
    flat = jax.lax.psum(jnp.concatenate([grads[i].ravel() for i in order]), "dp")
    flat = jnp.concatenate([*sums, flat])
    for i in order:
        grads[i], flat = flat[: ws[i].size].reshape(ws[i].shape), flat[ws[i].size :]
    return grads
