import jax
import jax.numpy as jnp

from grader.hardware import CHIPS
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


def _run(ws, x, y, *, slots=None, ticks=None, mask=True, scale=None, whole_loss=True, back=-1):
    n, s = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")
    M, last = x.shape[0], s == n - 1
    slots = slots or n
    size = scale or x.size

    def tick(t, carry):
        stash, act, cot, grads, loss = carry
        i, j = (t - s) // 2, (t - 2 * n + 1 + s) // 2

        def forward(_):
            at = jnp.clip(i, 0, M - 1)
            a = jnp.where(s == 0, x[at], act)
            kept = jnp.where((i >= 0) & (i < M), a, stash[at % slots])
            return stash.at[at % slots].set(kept), stage(ws, a), jnp.zeros_like(a), grads, loss

        def backward(_):
            at = jnp.clip(j, 0, M - 1)
            out, pull = jax.vjp(stage, ws, stash[at % slots])
            error = out - y[at]
            dws, da = pull(jnp.where(last, 2 * error / size, cot))
            fine = (j >= 0) & (j < M)
            part = jnp.sum(error**2) / size
            more = grads + (jnp.where(fine, dws, 0) if mask else dws * fine)
            return stash, jnp.zeros_like(out), da, more, loss + jnp.where(fine & last, part, 0)

        stash, out, da, grads, loss = jax.lax.cond((t - s) % 2 == 0, forward, backward, None)
        act = jax.lax.ppermute(out, "pp", [(d, d + 1) for d in range(n - 1)])
        if back < 0:
            cot = jax.lax.ppermute(da, "pp", [(d + 1, d) for d in range(n - 1)])
        else:
            cot = jax.lax.ppermute(da, "pp", [(d, (d + 1) % n) for d in range(n)])
        return stash, act, cot, grads, loss

    zero = jnp.zeros_like(x[0])
    start = jnp.zeros((slots, *x.shape[1:])), zero, zero, jnp.zeros_like(ws), jnp.zeros(())
    _, _, _, grads, loss = jax.lax.fori_loop(0, ticks or 2 * (M + n - 1), tick, start)
    return (jax.lax.psum(loss, "pp") if whole_loss else loss), grads


def junk_times_zero(ws, x, y):
    """grad_1f1b: program_adds_junk"""
    return _run(ws, x, y, mask=False)


def keeps_every_input(ws, x, y):
    """grad_1f1b: stash_of_all"""
    return _run(ws, x, y, slots=x.shape[0])


def means_of_micro_batches_added(ws, x, y):
    """grad_1f1b: program_sum_of_means"""
    return _run(ws, x, y, scale=x[0].size)


def loss_stays_on_the_last_device(ws, x, y):
    """grad_1f1b: loss_on_the_last_alone"""
    return _run(ws, x, y, whole_loss=False)


def gradients_go_to_the_next_device(ws, x, y):
    """grad_1f1b: all_to_the_right"""
    return _run(ws, x, y, back=1)


def two_ticks_too_many(ws, x, y):
    """grad_1f1b: a_round_too_many"""
    return _run(ws, x, y, ticks=2 * (x.shape[0] + jax.lax.axis_size("pp")))


def stash_of_gpipe(M, P, T, D):
    """stash_saved: stash_of_gpipe"""
    return M * T * D * 2


def nothing_computed_again(chip, M, P, T, D):
    """lock_step_time: time_of_own_programs"""
    f = 2 * 2 * T * D * D / CHIPS[chip].bf16
    return 2 * (M + P - 1) * 2 * f


def as_long_as_gpipe(chip, M, P, T, D):
    """lock_step_time: time_of_own_programs"""
    f = 2 * 2 * T * D * D / CHIPS[chip].bf16
    return (M + P - 1) * 4 * f


def _forward(chip, T, D):
    return 2 * 2 * T * D * D / CHIPS[chip].bf16


def both_in_each_tick(chip, M, P, T, D):
    """lock_step_time: ticks_of_both"""
    return 2 * (M + P - 1) * (1 + 3) * _forward(chip, T, D)


def fewer_ticks_of_both(chip, M, P, T, D):
    """lock_step_time: fewer_ticks_of_both"""
    return (M + 2 * P - 2) * 4 * _forward(chip, T, D)


def ticks_of_a_forward(chip, M, P, T, D):
    """lock_step_time: ticks_of_a_forward"""
    return 2 * (M + P - 1) * _forward(chip, T, D)


def one_layer(chip, M, P, T, D):
    """lock_step_time: time_of_half_the_ticks"""
    return 2 * (M + P - 1) * 3 * _forward(chip, T, D) / 2


def two_ticks_more(chip, M, P, T, D):
    """lock_step_time: two_ticks_more"""
    return 2 * (M + P) * 3 * _forward(chip, T, D)


def fills_twice(chip, M, P, T, D):
    """lock_step_time: fills_twice"""
    return 2 * (M + 2 * (P - 1)) * 3 * _forward(chip, T, D)
