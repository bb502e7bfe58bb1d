import jax
import jax.numpy as jnp

from i2_gpipe_backward import stage


def step_by(ws, x, y, rate, add=None, scale=None, finish=lambda g: g):
    """A step with its ticks written out. ``add(useful, grads, dws)`` adds gradients, ``scale`` divides the error."""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    add = add or (lambda useful, grads, dws: jnp.where(useful, grads + dws, grads))
    a, kept = x[0], []
    for tick in range(m + n - 1):
        kept.append(jnp.where(me == 0, x[min(tick, m - 1)], a))
        a = jax.lax.ppermute(stage(ws, kept[-1]), "pp", [(s, s + 1) for s in range(n - 1)])
    stash, d, loss, grads = jnp.stack(kept), x[0], 0.0, jnp.zeros_like(ws)
    for tick in range(m + n - 1):
        mine = tick - (n - 1 - me)
        slot, useful = jnp.clip(mine, 0, m - 1), (mine >= 0) & (mine < m)
        out, pull = jax.vjp(stage, ws, stash[slot + me])
        error = out - y[slot]
        loss += jnp.where(useful & (me == n - 1), jnp.sum(error**2) / y.size, 0)
        dws, d = pull(jnp.where(me == n - 1, 2 * error / (scale or y.size), d))
        d = jax.lax.ppermute(d, "pp", [(s + 1, s) for s in range(n - 1)])
        grads = add(useful, grads, dws)
    return jax.lax.psum(loss, "pp"), ws - rate * finish(grads)


def bubble_learnt(ws, x, y, *, rate):
    """gpipe_step: step_adds_junk"""
    return step_by(ws, x, y, rate, add=lambda useful, grads, dws: grads + dws)


def overwritten(ws, x, y, *, rate):
    """gpipe_step: only_the_last_learned"""
    return step_by(ws, x, y, rate, add=lambda useful, grads, dws: jnp.where(useful, dws, grads))


def divided_again(ws, x, y, *, rate):
    """gpipe_step: divided_twice"""
    return step_by(ws, x, y, rate, finish=lambda g: g / len(x))


def never_divided_by_m(ws, x, y, *, rate):
    """gpipe_step: scaled_for_the_log"""
    return step_by(ws, x, y, rate, scale=y.size // len(y))


def without_the_two(ws, x, y, *, rate):
    """gpipe_step: none"""
    return step_by(ws, x, y, rate, finish=lambda g: g / 2)


def summed_over_stages(ws, x, y, *, rate):
    """gpipe_step: none"""
    return step_by(ws, x, y, rate, finish=lambda g: jax.lax.psum(g, "pp"))
