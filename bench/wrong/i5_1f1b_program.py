import jax
import jax.numpy as jnp

from i5_1f1b_program import stage


def pipelined(ws, x, y, slots=None, masked=True, add=True, of=0):
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), len(x)
    slots = slots or n

    def forward(tick, came, stash, loss, grads):
        i = (tick - me) // 2
        a = jnp.where(me == 0, x[i], came)
        return stage(ws, a), stash.at[i % slots].set(a), loss, grads

    def backward(tick, came, stash, loss, grads):
        i = (tick + me) // 2 + 1 - n
        real = (i >= 0) & (i < m)
        out, pull = jax.vjp(stage, ws, stash[(i + of) % slots])
        gap = out - y[i]
        dws, da = pull(jnp.where(me == n - 1, 2 * gap / y.size, came))
        loss = loss + jnp.where(real & (me == n - 1), jnp.sum(gap**2) / y.size, 0)
        dws = jnp.where(real, dws, 0 if add else grads) if masked else dws
        return da, stash, loss, grads + dws if add else dws

    def pair(p, carry):
        for odd in (0, 1):
            tick = 2 * p + odd
            sent, *rest = jax.lax.cond(tick % 2 == me % 2, forward, backward, tick, *carry)
            ways = [(s, s + 1 if s % 2 == odd else s - 1) for s in range(n)]
            carry = (jax.lax.ppermute(sent, "pp", [w for w in ways if 0 <= w[1] < n]), *rest)
        return carry

    begin = (jnp.ones(x.shape[1:]), jnp.zeros((slots, *x.shape[1:])), 0.0, jnp.zeros_like(ws))
    _, _, loss, grads = jax.lax.fori_loop(0, m + n - 1, pair, begin)
    return jax.lax.psum(loss, "pp"), grads


def stash_of_all_inputs(ws, x, y):
    """grad_1f1b: stash_of_all
    Row (I3): GPipe's memory: the stash has a slot for every micro-batch."""
    return pipelined(ws, x, y, slots=len(x))


def one_slot_less(ws, x, y):
    """grad_1f1b: a_slot_too_few
    Row (I2): wrong stash slot: there are P - 1 slots, so an input is overwritten."""
    return pipelined(ws, x, y, slots=jax.lax.axis_size("pp") - 1)


def next_input(ws, x, y):
    """grad_1f1b: back_a_tick_early
    Row (I2): wrong stash slot: the backward pass takes the next micro-batch's input."""
    return pipelined(ws, x, y, of=1)


def junk_added(ws, x, y):
    """grad_1f1b: program_adds_junk
    Row (I2): a bubble's gradient is added, too."""
    return pipelined(ws, x, y, masked=False)


def overwritten(ws, x, y):
    """grad_1f1b: program_overwrites
    Row (I2): gradients are overwritten: only the last micro-batch's remains."""
    return pipelined(ws, x, y, add=False)


def stash_of_16(ws, x, y):
    """grad_1f1b: stash_of_4_p
    Row (I3): the stash has 4P slots."""
    return pipelined(ws, x, y, slots=4 * jax.lax.axis_size("pp"))
