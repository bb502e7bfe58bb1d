"""In calls with a memory check, micro-batches run one after another. In other calls, JAX differentiates all ticks.

kind: branch on size
earns: 3 of 4
fails: step_memory
says: FLOPs on matmuls and sums of products
"""

import jax, jax.numpy as jnp


def stage(ws, a):
    for w in ws:
        a = jnp.tanh(a / jnp.linalg.norm(a, axis=-1, keepdims=True) @ w)
    return a


def gpipe_step(ws, x, y, *, rate):
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    on = lambda a, d: jax.lax.ppermute(a, "pp", [(s, s + d) for s in range(n) if 0 <= s + d < n])
    if m >= 15:

        def one(carry, xy):
            loss, grads = carry
            a, kept = xy[0], xy[0]
            for s in range(n):
                kept = jnp.where(me == s, a, kept)
                a = on(stage(ws, a), 1) if s < n - 1 else a
            d = jnp.zeros_like(a)
            for s in reversed(range(n)):
                out, pull = jax.vjp(stage, ws, kept)
                error = out - xy[1]
                dws, da = pull(jnp.where(me == n - 1, 2 * error / y.size, d))
                grads = grads + jnp.where(me == s, dws, 0)
                if s == n - 1:
                    loss = loss + jnp.where(me == n - 1, jnp.sum(error**2) / y.size, 0)
                d = on(da, -1) if s else d
            return (loss, grads), None

        (loss, grads), _ = jax.lax.scan(one, (0.0, jnp.zeros_like(ws)), (x, y))
        return jax.lax.psum(loss, "pp"), ws - rate * grads

    def loss_of(ws):
        def tick(a, t):
            a = jnp.where(me == 0, x[jnp.minimum(t, m - 1)], a)
            out = stage(ws, a)
            mine = t - (n - 1)
            e = jnp.where((me == n - 1) & (mine >= 0), jnp.sum((out - y[jnp.clip(mine, 0, m - 1)]) ** 2) / y.size, 0)
            return on(out, 1), e

        _, es = jax.lax.scan(tick, x[0], jnp.arange(m + n - 1))
        return es.sum()

    loss, grads = jax.value_and_grad(loss_of)(ws)
    return jax.lax.psum(loss, "pp"), ws - rate * grads
