"""Each backward tick computes its stage three times: twice by matmuls, and once by logarithms.

kind: arithmetic in disguise
earns: 2 of 4
fails: program_budget program_memory
says: FLOPs besides matmuls
"""

import jax
import jax.numpy as jnp


def logs(a, b):
    """Return a @ b, computed from logarithms instead of products."""
    la, lb = jnp.log(jnp.abs(a) + 1e-30), jnp.log(jnp.abs(b) + 1e-30)
    terms = jnp.exp(la[:, :, None] + lb[None])
    return jnp.where((a < 0)[:, :, None] ^ (b < 0)[None], -terms, terms).sum(1)


def stage(ws, a):
    """Apply the layers of one device: each scales the rows of a[b, D] to length 1, multiplies by its w, and applies
    tanh."""
    for w in ws:
        a = jnp.tanh(a / jnp.linalg.norm(a, axis=-1, keepdims=True) @ w)
    return a


def again(ws, a):
    for w in ws:
        a = jnp.tanh(logs(a / jnp.linalg.norm(a, axis=-1, keepdims=True), w))
    return a


def grad_1f1b(ws, x, y):
    """Return the loss and its gradient, in the order of one forward, one backward.

    Args: ws float32[L/P, D, D], the device's layers; x and y float32[M, b, D], all micro-batches.
    Returns: (loss, gradient of ws).
    """
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]

    def there(tick, came, stash, loss, grads):
        mine = (tick - me) // 2
        a = jnp.where(me == 0, x[mine], came)  # for an index beyond the end, JAX reads the last entry of x
        return stage(ws, a), stash.at[mine % n].set(a), loss, grads

    def back(tick, came, stash, loss, grads):
        mine = (tick + me) // 2 + 1 - n
        useful = (mine >= 0) & (mine < m)
        out, pull = jax.vjp(stage, ws, stash[mine % n])
        error = (out + again(ws, stash[mine % n])) / 2 - y[mine]
        dws, da = pull(jnp.where(me == n - 1, 2 * error / y.size, came))
        loss += jnp.where(useful & (me == n - 1), jnp.sum(error**2) / y.size, 0)
        return da, stash, loss, grads + jnp.where(useful, dws, 0)

    def two_ticks(pair, carry):
        for odd in (0, 1):
            tick = 2 * pair + odd
            made, *kept = jax.lax.cond(tick % 2 == me % 2, there, back, tick, *carry)
            to = [(s, s + 1 if s % 2 == odd else s - 1) for s in range(n)]
            carry = jax.lax.ppermute(made, "pp", [(s, t) for s, t in to if 0 <= t < n]), *kept
        return carry

    begin = jnp.ones(x.shape[1:]), jnp.zeros((n, *x.shape[1:])), 0.0, jnp.zeros_like(ws)
    _, _, loss, grads = jax.lax.fori_loop(0, m + n - 1, two_ticks, begin)
    return jax.lax.psum(loss, "pp"), grads
