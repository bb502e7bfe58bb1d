import jax
import jax.numpy as jnp

from grader.hardware import CHIPS
from i1_gpipe_forward import stage


def on(n):
    return [(s, s + 1) for s in range(n - 1)]


def tutorial_zeros_in_the_bubble(ws, x):
    """gpipe_forward: zeros_in_the_bubble"""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    held, outputs = jnp.zeros_like(x[0]), jnp.zeros_like(x)
    for tick in range(m + n - 1):
        inputs = jnp.where(me == 0, x[min(tick, m - 1)], held)
        made = stage(ws, inputs)
        if tick >= n - 1:
            outputs = outputs.at[tick - n + 1].set(made * (me == n - 1))
        held = jax.lax.ppermute(made, "pp", on(n))
    return jax.lax.select(me == n - 1, outputs, outputs * 0)[None]


def tutorial_masked_by_a_matmul(ws, x):
    """gpipe_forward: bubble_leaks_by_a_matmul"""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]

    def one(carry, tick):
        held, out = carry
        first = (me == 0).astype(x.dtype)
        made = stage(ws, first * x[jnp.clip(tick, 0, m - 1)] + (1 - first) * held)
        last = ((me == n - 1) & (tick >= n - 1)).astype(x.dtype)
        out = out.at[jnp.clip(tick - n + 1, 0, m - 1)].add(last * made)
        return (jax.lax.ppermute(made, "pp", on(n)), out), None

    (_, out), _ = jax.lax.scan(one, (jnp.zeros_like(x[0]), jnp.zeros_like(x)), jnp.arange(m + n - 1))
    return out[None]


def zeros_then_where(ws, x):
    """gpipe_forward: zeros_in_the_bubble"""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    held, outputs = 0 * x[0], []
    for tick in range(m + n - 1):
        made = stage(ws, jnp.where(me == 0, x[min(tick, m - 1)], held))
        outputs += [made] if tick >= n - 1 else []
        held = jax.lax.ppermute(made, "pp", on(n))
    return jnp.where(me == n - 1, jnp.stack(outputs), 0.0)[None]


def from_tick_0_with_zeros(ws, x):
    """gpipe_forward: outputs_from_tick_0"""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    held, outputs = jnp.zeros_like(x[0]), []
    for tick in range(m + n - 1):
        made = stage(ws, jnp.where(me == 0, x[min(tick, m - 1)], held))
        outputs.append(made)
        held = jax.lax.ppermute(made, "pp", on(n))
    return jnp.where(me == n - 1, jnp.stack(outputs[:m]), 0)[None]


def from_tick_0_with_ones(ws, x):
    """gpipe_forward: outputs_from_tick_0"""
    n, me = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")

    def one(held, new):
        made = stage(ws, jnp.where(me == 0, new, held))
        return jax.lax.ppermute(made, "pp", on(n)), made

    _, made = jax.lax.scan(one, jnp.ones_like(x[0]), x)
    return jnp.where(me == n - 1, made, 0)[None]


def m_ticks(ws, x):
    """gpipe_forward: stopped_after_m_ticks"""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    held, out = jnp.ones_like(x[0]), jnp.zeros_like(x)
    for tick in range(m):
        made = stage(ws, jnp.where(me == 0, x[tick], held))
        if tick >= n - 1:
            out = out.at[tick - n + 1].set(made)
        held = jax.lax.ppermute(made, "pp", on(n))
    return jnp.where(me == n - 1, out, 0)[None]


def all_return(ws, x):
    """gpipe_forward: everybody_returns"""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    held, out = x[0], []
    for tick in range(m + n - 1):
        made = stage(ws, jnp.where(me == 0, x[min(tick, m - 1)], held))
        out += [made] if tick >= n - 1 else []
        held = jax.lax.ppermute(made, "pp", on(n))
    return jnp.stack(out)[None]


def one_tick_more(ws, x):
    """gpipe_forward: forward_tick_too_many"""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]

    def one(held, tick):
        made = stage(ws, jnp.where(me == 0, x[jnp.minimum(tick, m - 1)], held))
        return jax.lax.ppermute(made, "pp", on(n)), made

    _, made = jax.lax.scan(one, jnp.ones_like(x[0]), jnp.arange(m + n))
    return jnp.where(me == n - 1, made[n - 1 : n - 1 + m], 0)[None]


def gathered_instead_of_permuted(ws, x):
    """gpipe_forward: none"""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    held, out = jnp.ones_like(x[0]), []
    for tick in range(m + n - 1):
        made = stage(ws, jnp.where(me == 0, x[min(tick, m - 1)], held))
        out += [made] if tick >= n - 1 else []
        held = jax.lax.all_gather(made, "pp")[(me - 1) % n]
    return jnp.where(me == n - 1, jnp.stack(out), 0)[None]


def every_stage_at_index_t(ws, x):
    """gpipe_forward: outputs_from_tick_0"""
    P_, s = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")
    M = x.shape[0]
    outs, a = jnp.zeros_like(x), jnp.ones_like(x[0])
    for t in range(M + P_ - 1):
        came = jnp.where(s == 0, x[min(t, M - 1)], a)
        out = stage(ws, came)
        outs = outs.at[min(t, M - 1)].set(jnp.where(s == P_ - 1, out, 0)) if t < M else outs
        a = jax.lax.ppermute(out, "pp", [(i, (i + 1) % P_) for i in range(P_)])
    return outs[None]


def handed_on_by_psum(ws, x):
    """gpipe_forward: forward_by_sum"""
    n, s = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")
    M = x.shape[0]
    a, outs = jnp.ones_like(x[0]), []
    for t in range(M + n - 1):
        out = stage(ws, jnp.where(s == 0, x[min(t, M - 1)], a))
        if t >= n - 1:
            outs.append(jnp.where(s == n - 1, out, 0))
        slots = jnp.zeros((n, *out.shape), out.dtype)
        slots = jax.lax.psum(jax.lax.dynamic_update_index_in_dim(slots, out, s, 0), "pp")
        a = slots[(s - 1) % n]
    return jnp.stack(outs)[None]


def one_after_another(ws, x):
    """gpipe_forward: one_micro_batch_at_a_time"""
    n, s = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")
    outs = []
    for m in range(x.shape[0]):
        a = x[m]
        for k in range(n):
            out = stage(ws, a)
            if k + 1 < n:
                a = jax.lax.ppermute(out, "pp", [(i, (i + 1) % n) for i in range(n)])
        outs.append(jnp.where(s == n - 1, out, 0))
    return jnp.stack(outs)[None]


def _pipe(ws, x, *, ticks=None, safe=True, masked=True, late=0):
    n, s = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")
    M = x.shape[0]
    arrived, outs = jnp.ones_like(x[0]) * safe, jnp.zeros_like(x)
    for t in range(ticks or M + n - 1):
        a = jnp.where(s == 0, x[min(t, M - 1)], arrived)
        if safe:
            a = jnp.where((t >= s) & (t - s < M), a, 1.0)
        out = stage(ws, a)
        i = t - n + 1 - late
        if 0 <= i < M:
            outs = outs.at[i].set(out)
        arrived = jax.lax.ppermute(out, "pp", [(d, d + 1) for d in range(n - 1)])
    return jnp.where(s == n - 1, outs, 0)[None] if masked else outs[None]


def zeros_are_normalised(ws, x):
    """gpipe_forward: zeros_in_the_bubble"""
    return _pipe(ws, x, safe=False)


def stops_after_m_ticks(ws, x):
    """gpipe_forward: stopped_after_m_ticks"""
    return _pipe(ws, x, ticks=x.shape[0])


def outputs_everywhere(ws, x):
    """gpipe_forward: everybody_returns"""
    return _pipe(ws, x, masked=False)


def result_sent_to_all(ws, x):
    """gpipe_forward: outputs_sent_to_all"""
    return jax.lax.psum(_pipe(ws, x), "pp")


def stored_a_tick_late(ws, x):
    """gpipe_forward: outputs_a_tick_late"""
    return _pipe(ws, x, late=1)


def whole_batch_from_device_to_device(ws, x):
    """gpipe_forward: batch_in_one_piece"""
    n, s = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")
    a = x.reshape(-1, x.shape[-1])
    for t in range(n):
        out = stage(ws, jnp.where(s == t, a, 1.0))
        a = jax.lax.ppermute(out, "pp", [(d, d + 1) for d in range(n - 1)]) if t < n - 1 else out
        if t < n - 1:
            a = jnp.where(s == t + 1, a, 1.0)
    return jnp.where(s == n - 1, a, 0).reshape(1, *x.shape)


def no_overlap_of_micro_batches(chip, P, M, T, D):
    """pipeline_time: time_one_at_a_time"""
    c = CHIPS[chip]
    return M * (P * 2 * 2 * T * D * D / c.bf16 + (P - 1) * 2 * T * D / c.ici)


def sends_are_free(chip, P, M, T, D):
    """pipeline_time: time_without_hops"""
    return (M + P - 1) * 2 * 2 * T * D * D / CHIPS[chip].bf16


def junk_of_one_device(P, M, T, D):
    """bubble_flops: bubble_of_one"""
    return (P - 1) * 3 * 2 * T * D * D


def _modulo(ws, x, take, place, begin=1.0):
    n, s, M = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    arrived, outs = jnp.full_like(x[0], begin), jnp.zeros_like(x)
    for t in range(M + n - 1):
        out = stage(ws, take(t, s, M, x, arrived))
        outs = outs.at[place(t, n, M)].set(out)
        arrived = jax.lax.ppermute(out, "pp", on(n))
    return jnp.where(s == n - 1, outs, 0)[None]


def outputs_modulo_m(ws, x):
    """gpipe_forward: outputs_in_other_places"""
    return _modulo(ws, x, lambda t, s, M, x, came: jnp.where(s == 0, x[t % M], came), lambda t, n, M: t % M)


def outputs_modulo_m_from_the_last_tick(ws, x):
    """gpipe_forward: outputs_in_other_places"""
    return _modulo(ws, x, lambda t, s, M, x, came: jnp.where(s == 0, x[t % M], came), lambda t, n, M: (t - n) % M)


def inputs_modulo_m_everywhere(ws, x):
    """gpipe_forward: every_stage_takes_x"""
    return _modulo(ws, x, lambda t, s, M, x, came: x[t % M], lambda t, n, M: (t - n + 1) % M)


def own_micro_batch_from_x(ws, x):
    """gpipe_forward: every_stage_takes_x"""
    return _modulo(ws, x, lambda t, s, M, x, came: x[(t - s) % M], lambda t, n, M: (t - n + 1) % M)


def inputs_of_the_next_tick(ws, x):
    """gpipe_forward: outputs_in_other_places"""
    return _modulo(
        ws, x, lambda t, s, M, x, came: jnp.where(s == 0, x[(t + 1) % M], came), lambda t, n, M: (t - n + 1) % M
    )
