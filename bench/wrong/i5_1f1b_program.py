import jax
import jax.numpy as jnp
from jax import lax

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


def send(a, by):
    n = lax.axis_size("pp")
    return lax.ppermute(a, "pp", [(i, i + by) for i in range(n) if 0 <= i + by < n])


def always_both(
    ws,
    x,
    y,
    *,
    slots=None,
    slot=None,
    mask=jnp.where,
    guard=True,
    back_at=0,
    down=-1,
    extra=0,
    target=None,
    size=None,
    everyone=False,
):
    """Compute stage and vjp in each tick, and choose by jnp.where."""
    n, s, m = lax.axis_size("pp"), lax.axis_index("pp"), x.shape[0]
    slots = slots or n
    slot = slot or (lambda i: i % slots)
    size = size or y.size

    def tick(t, carry):
        act, d, stash, dw, loss = carry
        i, j = (t - s) // 2, (t - (2 * n - 1 - s) - back_at) // 2
        f = ((t - s) % 2 == 0) & (i >= 0) & (i < m)
        b = ((t - s - back_at) % 2 == 1) & (j >= 0) & (j < m)
        at = jnp.clip(j, 0, m - 1)
        a = jnp.where(s == 0, x[jnp.clip(i, 0, m - 1)], act)
        free = f if guard else (t - s) % 2 == 0
        stash = stash.at[slot(i)].set(jnp.where(free, a, stash[slot(i)]))
        out, back = jax.vjp(stage, ws, jnp.where((t - s) % 2 == 0, a, stash[slot(j)]))
        error = out - y[at if target is None else jnp.clip(target(i, j), 0, m - 1)]
        gw, ga = back(jnp.where(s == n - 1, 2 * error / size, d))
        counts = b if everyone else b & (s == n - 1)
        loss = loss + jnp.where(counts, jnp.sum(error**2) / size, 0.0)
        return send(out, 1), send(ga, down), stash, dw + mask(b, gw, 0), loss

    zero = jnp.zeros_like(x[0])
    start = zero, zero, jnp.zeros((slots, *zero.shape)), jnp.zeros_like(ws), jnp.float32(0)
    *_, dw, loss = lax.fori_loop(0, 2 * (m + n - 1) + extra, tick, start)
    return loss, dw


def both_in_one_tick(ws, x, y, slots):
    n, s, m = lax.axis_size("pp"), lax.axis_index("pp"), len(x)

    def tick(t, carry):
        act, d, stash, dw, loss = carry
        i, j = t - s, t - (2 * n - 2 - s)
        a = jnp.where(s == 0, x[jnp.clip(i, 0, m - 1)], act)
        ok = (i >= 0) & (i < m)
        stash = stash.at[i % slots].set(jnp.where(ok, a, stash[i % slots]))
        sent = stage(ws, a)
        ok = (j >= 0) & (j < m)
        out, back = jax.vjp(stage, ws, stash[j % slots])
        e = out - y[jnp.clip(j, 0, m - 1)]
        gw, ga = back(jnp.where(s == n - 1, 2 * e / y.size, d))
        loss += jnp.where(ok & (s == n - 1), jnp.sum(e**2), 0)
        return send(sent, 1), send(ga, -1), stash, dw + jnp.where(ok, gw, 0), loss

    zero = jnp.zeros_like(x[0])
    start = zero, zero, jnp.zeros((slots, *zero.shape)), jnp.zeros_like(ws), 0.0
    *_, dw, loss = lax.fori_loop(0, m + 2 * n - 2, tick, start)
    return lax.psum(loss, "pp") / y.size, dw


def both_with_p_slots(ws, x, y):
    """grad_1f1b: a_slot_too_few
    F and B in one tick, but a stash of P inputs: an input is overwritten."""
    return both_in_one_tick(ws, x, y, lax.axis_size("pp"))


def stash_of_all(ws, x, y):
    """grad_1f1b: stash_of_all
    A stash of M inputs."""
    loss, dw = always_both(ws, x, y, slots=len(x), slot=lambda i: jnp.clip(i, 0, len(x) - 1))
    return lax.psum(loss, "pp"), dw


def stash_of_4p(ws, x, y):
    """grad_1f1b: stash_of_4_p
    A stash of 4P inputs."""
    loss, dw = always_both(ws, x, y, slots=4 * lax.axis_size("pp"))
    return lax.psum(loss, "pp"), dw


def one_slot_too_few(ws, x, y):
    """grad_1f1b: a_slot_too_few
    A stash of P - 1 inputs."""
    loss, dw = always_both(ws, x, y, slots=lax.axis_size("pp") - 1)
    return lax.psum(loss, "pp"), dw


def junk_added_2(ws, x, y):
    """grad_1f1b: program_adds_junk
    Gradients of junk are added."""
    loss, dw = always_both(ws, x, y, mask=lambda ok, g, _: g)
    return lax.psum(loss, "pp"), dw


def junk_times_zero_2(ws, x, y):
    """grad_1f1b: program_adds_junk
    Gradients of junk are multiplied by 0."""
    loss, dw = always_both(ws, x, y, mask=lambda ok, g, _: g * ok)
    return lax.psum(loss, "pp"), dw


def backward_one_tick_late(ws, x, y):
    """grad_1f1b: none
    B one tick too late."""
    loss, dw = always_both(ws, x, y, back_at=2, extra=2)
    return lax.psum(loss, "pp"), dw


def gradients_up(ws, x, y):
    """grad_1f1b: all_to_the_right
    Gradients are sent to the next device."""
    loss, dw = always_both(ws, x, y, down=1)
    return lax.psum(loss, "pp"), dw


def not_summed(ws, x, y):
    """grad_1f1b: loss_on_the_last_alone
    The loss is only on the last device."""
    return always_both(ws, x, y)


def averaged(ws, x, y):
    """grad_1f1b: program_loss_averaged
    Pmean of the loss."""
    loss, dw = always_both(ws, x, y)
    return lax.pmean(loss, "pp"), dw


def losses_of_all(ws, x, y):
    """grad_1f1b: program_loss_of_every_stage
    All devices' outputs count in the loss."""
    loss, dw = always_both(ws, x, y, everyone=True)
    return lax.psum(loss, "pp"), dw


def means_summed(ws, x, y):
    """grad_1f1b: program_sum_of_means
    Loss and gradient are sums over micro-batches of means."""
    loss, dw = always_both(ws, x, y, size=y[0].size)
    return lax.psum(loss, "pp"), dw


def gradients_summed(ws, x, y):
    """grad_1f1b: program_gradients_of_all_stages
    The gradient is summed over pp."""
    return lax.psum(always_both(ws, x, y), "pp")


def two_more_ticks(ws, x, y):
    """grad_1f1b: a_round_too_many
    2 (M + P) ticks."""
    loss, dw = always_both(ws, x, y, extra=2)
    return lax.psum(loss, "pp"), dw


def all_f_then_all_b(ws, x, y):
    """grad_1f1b: stash_of_all
    GPipe: all F, then all B."""
    n, s, m = lax.axis_size("pp"), lax.axis_index("pp"), len(x)

    def f(t, carry):
        a, stash = carry
        i = jnp.clip(t - s, 0, m - 1)
        a = jnp.where(s == 0, x[i], a)
        return send(stage(ws, a), 1), stash.at[i].set(jnp.where((t >= s) & (t - s < m), a, stash[i]))

    _, stash = lax.fori_loop(0, m + n - 1, f, (x[0], jnp.zeros_like(x)))

    def b(t, carry):
        d, dw, loss = carry
        i = t - (n - 1 - s)
        ok = (i >= 0) & (i < m)
        i = jnp.clip(i, 0, m - 1)
        out, back = jax.vjp(stage, ws, stash[i])
        gw, ga = back(jnp.where(s == n - 1, 2 * (out - y[i]) / y.size, d))
        loss += jnp.where(ok & (s == n - 1), jnp.sum((out - y[i]) ** 2), 0)
        return send(ga, -1), dw + jnp.where(ok, gw, 0), loss

    _, dw, loss = lax.fori_loop(0, m + n - 1, b, (x[0], jnp.zeros_like(ws), 0.0))
    return lax.psum(loss, "pp") / y.size, dw


def in_order(
    ws,
    x,
    y,
    *,
    read=lambda i, j: j,
    back=lambda t, s, n: t - (2 * n - 1 - s),
    vjp=jax.vjp,
    each=lambda loss: loss,
    told=lambda loss: lax.psum(loss, "pp"),
    due=lambda last, e, d: jnp.where(last, e, d),
):
    """A cond in each tick."""
    n, s, m = lax.axis_size("pp"), lax.axis_index("pp"), len(x)

    def tick(carry, t):
        act, d, stash, dw, loss = carry
        i, j = (t - s) // 2, back(t, s, n) // 2

        def f(stash, dw):
            a = jnp.where(s == 0, x[jnp.clip(i, 0, m - 1)], act)
            ok = (i >= 0) & (i < m)
            stash = lax.dynamic_update_index_in_dim(stash, jnp.where(ok, a, stash[i % n]), i % n, 0)
            return stage(ws, a), jnp.zeros_like(d), stash, dw, 0.0

        def b(stash, dw):
            ok = (j >= 0) & (j < m)
            out, pull = vjp(stage, ws, stash[read(i, j) % n])
            e = out - y[jnp.clip(j, 0, m - 1)]
            gw, ga = pull(due(s == n - 1, 2 * e / y.size, d))
            return (
                jnp.zeros_like(act),
                ga,
                stash,
                jnp.where(ok, dw + gw, dw),
                jnp.where(ok & (s == n - 1), jnp.sum(e**2), 0),
            )

        act, d, stash, dw, more = lax.cond((t - s) % 2 == 0, f, b, stash, dw)
        return (send(act, 1), send(d, -1), stash, dw, loss + each(more)), None

    one = jnp.ones_like(x[0])
    start = one, one, jnp.ones((n, *one.shape)), jnp.zeros_like(ws), 0.0
    (*_, dw, loss), _ = lax.scan(tick, start, jnp.arange(2 * (m + n - 1)))
    return told(loss) / y.size, dw


def reads_the_slot_of_f(ws, x, y):
    """grad_1f1b: back_a_tick_early
    B reads the slot of the F before it."""
    return in_order(ws, x, y, read=lambda i, j: i)


def sign_of_s(ws, x, y):
    """grad_1f1b: none
    B of micro-batch i in tick 2P - 1 + s + 2i."""
    return in_order(ws, x, y, back=lambda t, s, n: t - (2 * n - 1 + s))


def loss_summed_in_each_tick(ws, x, y):
    """grad_1f1b: program_sums_in_each_tick
    An all-reduce of the loss in each tick."""
    return in_order(ws, x, y, each=lambda loss: lax.psum(loss, "pp"), told=lambda loss: loss)


def error_on_all_devices(ws, x, y):
    """grad_1f1b: program_errors_on_all_devices
    Each device begins its backward pass from the error of its own output."""
    return in_order(ws, x, y, due=lambda last, e, d: e)


def no_factor_two(ws, x, y):
    """grad_1f1b: program_gives_half
    The gradient of the square without the 2."""
    return in_order(ws, x, y, due=lambda last, e, d: jnp.where(last, e / 2, d))
