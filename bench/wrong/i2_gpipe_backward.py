import jax
import jax.numpy as jnp
from jax import lax

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
    """gpipe_step: half_of_the_gradient"""
    return step_by(ws, x, y, rate, finish=lambda g: g / 2)


def summed_over_stages(ws, x, y, *, rate):
    """gpipe_step: gradients_of_all_stages"""
    return step_by(ws, x, y, rate, finish=lambda g: jax.lax.psum(g, "pp"))


def shifted(a, by=1):
    n = lax.axis_size("pp")
    return lax.ppermute(a, "pp", [(i, (i + by) % n) for i in range(n)])


def put(stash, i, a, ok):
    i = jnp.clip(i, 0, len(stash) - 1)
    return stash.at[i].set(jnp.where(ok, a, stash[i]))


def forward(ws, x, ticks=None, keep_output=False, late=0):
    n, s, m = lax.axis_size("pp"), lax.axis_index("pp"), len(x)

    def tick(t, carry):
        a, stash = carry
        i = t - s
        a = jnp.where(s == 0, x[jnp.clip(i, 0, m - 1)], a)
        out = stage(ws, a)
        return shifted(out), put(stash, i - late, out if keep_output else a, (i >= 0) & (i < m))

    return lax.fori_loop(0, ticks or m + n - 1, tick, (jnp.zeros_like(x[0]), jnp.zeros_like(x)))[1]


def backward(ws, y, stash, ticks=None, direction=-1, which=None, mask=jnp.where, loss_mask=True, slope=2.0, size=None):
    n, s, m = lax.axis_size("pp"), lax.axis_index("pp"), len(y)
    size = size or y.size

    def tick(t, carry):
        d, dw, loss = carry
        i = t - (n - 1 - s) if which is None else which(t, s, n)
        ok = (i >= 0) & (i < m)
        at = jnp.clip(i, 0, m - 1)
        out, back = jax.vjp(stage, ws, stash[at])
        error = out - y[at]
        gw, ga = back(jnp.where(s == n - 1, slope * error / size, d))
        last = ok & (s == n - 1) if loss_mask else ok
        return shifted(ga, direction), dw + mask(ok, gw, 0), loss + jnp.where(last, jnp.sum(error**2) / size, 0.0)

    start = jnp.zeros_like(y[0]), jnp.zeros_like(ws), jnp.float32(0)
    return lax.fori_loop(0, ticks or m + n - 1, tick, start)[1:]


def junk_added(ws, x, y, *, rate):
    """gpipe_step: step_adds_junk
    Gradients of junk are added."""
    dw, loss = backward(ws, y, forward(ws, x), mask=lambda ok, g, _: g)
    return lax.psum(loss, "pp"), ws - rate * dw


def updates_each_tick(ws, x, y, *, rate):
    """gpipe_step: learned_on_the_way
    Updates ws after each micro-batch."""
    n, s, m = lax.axis_size("pp"), lax.axis_index("pp"), x.shape[0]
    stash = forward(ws, x)

    def tick(t, carry):
        ws, d, loss = carry
        i = t - (n - 1 - s)
        ok = (i >= 0) & (i < m)
        i = jnp.clip(i, 0, m - 1)
        out, back = jax.vjp(stage, ws, stash[i])
        gw, ga = back(jnp.where(s == n - 1, 2 * (out - y[i]) / y.size, d))
        loss += jnp.where(ok & (s == n - 1), jnp.sum((out - y[i]) ** 2), 0)
        return ws - rate * jnp.where(ok, gw, 0), shifted(ga, -1), loss

    ws, _, loss = lax.fori_loop(0, m + n - 1, tick, (ws, jnp.zeros_like(x[0]), 0.0))
    return lax.psum(loss, "pp") / y.size, ws


def sum_over_micro_batches(ws, x, y, *, rate):
    """gpipe_step: sum_of_means
    Loss and gradient are sums over micro-batches of means."""
    dw, loss = backward(ws, y, forward(ws, x), size=y[0].size)
    return lax.psum(loss, "pp"), ws - rate * dw


def gradient_of_one_micro_batch_mean(ws, x, y, *, rate):
    """gpipe_step: scaled_for_the_log
    The gradient is not divided by M, the loss is."""
    dw, loss = backward(ws, y, forward(ws, x), size=y[0].size)
    return lax.psum(loss, "pp") / len(x), ws - rate * dw


def loss_averaged(ws, x, y, *, rate):
    """gpipe_step: loss_averaged
    Pmean of the loss."""
    dw, loss = backward(ws, y, forward(ws, x))
    return lax.pmean(loss, "pp"), ws - rate * dw


def loss_of_all_devices(ws, x, y, *, rate):
    """gpipe_step: loss_of_every_stage
    All devices' outputs count in the loss."""
    dw, loss = backward(ws, y, forward(ws, x), loss_mask=False)
    return lax.psum(loss, "pp"), ws - rate * dw


def loss_not_summed(ws, x, y, *, rate):
    """gpipe_step: loss_of_the_last_alone
    Only the last device has the loss."""
    dw, loss = backward(ws, y, forward(ws, x))
    return loss, ws - rate * dw


def forward_order(ws, x, y, *, rate):
    """gpipe_step: back_as_there
    In the backward pass device s takes micro-batch t - s, as in the forward pass."""
    dw, loss = backward(ws, y, forward(ws, x), which=lambda t, s, n: t - s)
    return lax.psum(loss, "pp"), ws - rate * dw


def wrong_direction(ws, x, y, *, rate):
    """gpipe_step: gradients_to_the_next
    Gradients go to the next device."""
    dw, loss = backward(ws, y, forward(ws, x), direction=1)
    return lax.psum(loss, "pp"), ws - rate * dw


def keeps_outputs(ws, x, y, *, rate):
    """gpipe_step: outputs_kept
    The stash holds the outputs of the stage."""
    dw, loss = backward(ws, y, forward(ws, x, keep_output=True))
    return lax.psum(loss, "pp"), ws - rate * dw


def no_factor_two(ws, x, y, *, rate):
    """gpipe_step: half_of_the_gradient
    The gradient of the square without the 2."""
    dw, loss = backward(ws, y, forward(ws, x), slope=1.0)
    return lax.psum(loss, "pp"), ws - rate * dw


def gradients_summed(ws, x, y, *, rate):
    """gpipe_step: gradients_of_all_stages
    Gradients of ws are summed over pp."""
    dw, loss = backward(ws, y, forward(ws, x))
    loss, dw = lax.psum((loss, dw), "pp")
    return loss, ws - rate * dw


def one_tick_too_many(ws, x, y, *, rate):
    """gpipe_step: a_tick_too_many
    M + P ticks in each pass."""
    ticks = len(x) + lax.axis_size("pp")
    dw, loss = backward(ws, y, forward(ws, x, ticks), ticks)
    return lax.psum(loss, "pp"), ws - rate * dw


def outputs_stashed_too(ws, x, y, *, rate):
    """gpipe_step: outputs_sent_to_all
    Outputs of all micro-batches are kept and sent to all devices."""
    n, s, m = lax.axis_size("pp"), lax.axis_index("pp"), x.shape[0]

    def f(carry, t):
        a, stash, outs = carry
        a = jnp.where(s == 0, x[jnp.clip(t, 0, m - 1)], a)
        ok = (t >= s) & (t - s < m)
        out = stage(ws, a)
        return (shifted(out), put(stash, t - s, a, ok), put(outs, t - s, out, ok)), None

    zeros = jnp.zeros_like(x)
    (_, stash, outs), _ = lax.scan(f, (zeros[0], zeros, zeros), jnp.arange(m + n - 1))
    outs = lax.psum(jnp.where(s == n - 1, outs, 0), "pp")
    dw, _ = backward(ws, y, stash)
    return jnp.mean((outs - y) ** 2), ws - rate * dw


def gradient_of_each_micro_batch(ws, x, y, *, rate):
    """gpipe_step: gradients_of_every_micro_batch
    Keeps a gradient for each tick and adds them after the loop."""
    n, s, m = lax.axis_size("pp"), lax.axis_index("pp"), x.shape[0]
    stash = forward(ws, x)

    def b(d, t):
        i = t - (n - 1 - s)
        ok = (i >= 0) & (i < m)
        i = jnp.clip(i, 0, m - 1)
        out, back = jax.vjp(stage, ws, stash[i])
        gw, ga = back(jnp.where(s == n - 1, 2 * (out - y[i]) / y.size, d))
        return shifted(ga, -1), (jnp.where(ok, gw, 0), jnp.where(ok & (s == n - 1), jnp.mean((out - y[i]) ** 2), 0))

    _, (gws, losses) = lax.scan(b, jnp.zeros_like(x[0]), jnp.arange(m + n - 1))
    return lax.psum(losses.sum() / m, "pp"), ws - rate * gws.sum(axis=0)


def grad_of_the_loop(ws, x, y, *, rate):
    """gpipe_step: left_to_jax, gradients_of_every_micro_batch
    Jax.grad of the forward loop: keeps the values inside the layers."""
    n, s, m = lax.axis_size("pp"), lax.axis_index("pp"), x.shape[0]

    def loss(ws):
        def f(carry, t):
            a, total = carry
            i = t - (n - 1)
            a = jnp.where(s == 0, x[jnp.clip(t, 0, m - 1)], jnp.where((t >= s) & (t - s < m), a, 1.0))
            out = stage(ws, a)
            ok = (s == n - 1) & (i >= 0)
            return (shifted(out), total + jnp.where(ok, jnp.sum((out - y[jnp.clip(i, 0, m - 1)]) ** 2), 0)), None

        return lax.scan(f, (jnp.ones_like(x[0]), 0.0), jnp.arange(m + n - 1))[0][1] / y.size

    value, gradient = jax.value_and_grad(loss)(ws)
    return lax.psum(value, "pp"), ws - rate * gradient


def stash_one_tick_off(ws, x, y, *, rate):
    """gpipe_step: masked_by_a_matmul
    The stash is written one place too early."""
    dw, loss = backward(ws, y, forward(ws, x, late=1))
    return lax.psum(loss, "pp"), ws - rate * dw


def adds_the_gradient(ws, x, y, *, rate):
    """gpipe_step: stepped_uphill
    W + rate * gradient."""
    dw, loss = backward(ws, y, forward(ws, x))
    return lax.psum(loss, "pp"), ws + rate * dw


def scans(ws, x, y, rate, *, vjp=jax.vjp, told=lambda loss: lax.psum(loss, "pp"), each=lambda loss: loss, guard="gw"):
    """A scan whose ys are the stash."""
    n, s, m = lax.axis_size("pp"), lax.axis_index("pp"), x.shape[0]

    def f(a, t):
        a = jnp.where(s == 0, x[jnp.clip(t, 0, m - 1)], a)
        return shifted(stage(ws, a)), a

    _, stash = lax.scan(f, jnp.ones_like(x[0]), jnp.arange(m + n - 1))

    def b(carry, t):
        d, dw, loss = carry
        i = t - (n - 1 - s)
        ok = (i >= 0) & (i < m)
        i = jnp.clip(i, 0, m - 1)
        out, back = vjp(stage, ws, stash[i + s])
        gw, ga = back(jnp.where(s == n - 1, 2 * (out - y[i]) / y.size, d))
        if guard == "gw":
            gw = jnp.where(ok, gw, 0)
        else:
            ga = jnp.where(ok, ga, 0)
        loss += each(jnp.where(ok & (s == n - 1), jnp.sum((out - y[i]) ** 2) / y.size, 0))
        return (shifted(ga, -1), dw + gw, loss), None

    (_, dw, loss), _ = lax.scan(b, (jnp.ones_like(x[0]), jnp.zeros_like(ws), 0.0), jnp.arange(m + n - 1))
    return told(loss), ws - rate * dw


def stage_and_vjp(ws, x, y, *, rate):
    """gpipe_step: stage_twice_in_a_tick
    A backward tick computes the output with stage, and again in jax.vjp."""
    return scans(ws, x, y, rate, vjp=lambda f, w, a: (f(w, a), jax.vjp(f, w, a)[1]))


def loss_summed_in_each_tick(ws, x, y, *, rate):
    """gpipe_step: loss_summed_in_each_tick
    An all-reduce of the loss in each tick."""
    return scans(ws, x, y, rate, told=lambda loss: loss, each=lambda loss: lax.psum(loss, "pp"))


def only_sent_gradients_masked(ws, x, y, *, rate):
    """gpipe_step: step_adds_junk
    The gradient that is sent is masked, the gradient of ws is not."""
    return scans(ws, x, y, rate, guard="ga")


def grad_of_a_checkpointed_loop(ws, x, y, *, rate):
    """gpipe_step: left_to_jax
    jax.grad of the loop with a checkpoint around each stage: right, or nearly."""
    n, s, m = lax.axis_size("pp"), lax.axis_index("pp"), x.shape[0]

    def loss(ws):
        def f(carry, t):
            a, total = carry
            i = t - (n - 1)
            a = jnp.where(s == 0, x[jnp.clip(t, 0, m - 1)], a)
            out = jax.checkpoint(stage)(ws, a)
            ok = (s == n - 1) & (i >= 0)
            return (shifted(out), total + jnp.where(ok, jnp.sum((out - y[jnp.clip(i, 0, m - 1)]) ** 2), 0)), None

        return lax.scan(f, (jnp.ones_like(x[0]), 0.0), jnp.arange(m + n - 1))[0][1] / y.size

    value, gradient = jax.value_and_grad(loss)(ws)
    return lax.psum(value, "pp"), ws - rate * gradient
