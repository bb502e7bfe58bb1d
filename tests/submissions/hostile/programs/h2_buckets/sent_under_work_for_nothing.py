"""The program computes all gradients before it sends the first. Extra matmuls, times 0, overlap the all-reduces.

kind: overlap with work for nothing
earns: 1.25 of 1.5
fails: bucketed_overlap
says: the step takes
"""

import jax
import jax.numpy as jnp


def bucketed_grads(ws, x, y, *, plan):
    """Return the gradients of the sum of squares over all rows, in a list like ws.

    Args: ws: a list of float32[D_l, D_(l+1)], whole on every device; x float32[B/N, D_0], y float32[B/N, D_L]; plan: a list of
    layer numbers for each bucket. The axis is 'dp'.
    """

    def loss(ws):
        h = x
        for w in ws:
            h = jnp.tanh(h @ w)
        return jnp.sum((h - y) ** 2)

    grads = jax.grad(loss)(ws)
    sums = [jax.lax.psum(jnp.concatenate([grads[i].ravel() for i in bucket]), "dp") for bucket in plan]
    idle, _ = jax.lax.optimization_barrier((x, grads[0]))
    for _ in range(4):
        idle = jnp.tanh(idle @ ws[0] @ ws[0].T)
    for bucket, flat in zip(plan, sums, strict=True):
        for i in bucket:
            grads[i], flat = flat[: ws[i].size].reshape(ws[i].shape), flat[ws[i].size :]
    grads[0] += 0 * idle.sum()
    return grads
