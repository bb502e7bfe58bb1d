"""I1: checks, misconceptions and alternatives."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from grader.exercise import Scenario, axis, normal
from grader.expect import (
    Failure,
    expect_bubble,
    expect_close,
    expect_flops,
    expect_only,
    expect_spec,
    expect_traffic,
    needed,
)
from grader.hardware import CHIPS, matmul_time
from i1_gpipe_forward import bubble_flops, exercise, gpipe_forward, learns, pipeline_time, stage, there


@exercise.helper
def all_layers(ws, x, d=None):
    """Return x after all layers in float64, or the gradients of ws and x if a cotangent d is given."""
    kept = []
    for w in ws:
        size = np.linalg.norm(x, axis=-1, keepdims=True)
        kept.append((x / size, size))
        x = np.tanh(x / size @ w)
    if d is None:
        return x
    grads = []
    for w, (a, size) in zip(ws[::-1], kept[::-1], strict=True):
        d = d * (1 - np.tanh(a @ w) ** 2)
        grads.insert(0, np.einsum("mbi,mbj->ij", a, d))
        d = d @ w.T
        d = (d - a * (a * d).sum(-1, keepdims=True)) / size
    return np.stack(grads), d


many = exercise.call(
    gpipe_forward,
    ws=normal("L", "D", "D", spec=PartitionSpec("pp")),
    x=normal("M", "B", "D"),
    meshes=[{"pp": 2}, {"pp": 4}],
    # D is so large that the FLOPs of the norms hardly change the share of the bubble.
    dims={"L": 2 * axis("pp"), "M": 12, "B": 3, "D": 100},
    hidden_dims={"L": 3 * axis("pp"), "M": 13, "B": 5, "D": 90},
)


@exercise.helper
def expect_outputs(seen):
    """Require the outputs on the last device, and zeros on the other devices."""
    due = np.zeros((seen.mesh["pp"], *seen.x.shape))
    due[-1] = all_layers(seen.ws, seen.x)
    expect_close(seen.out, due)


@exercise.check(there, points=1.5, public=True)
def forward_value(seen):
    """gpipe_forward: the last device has the outputs, the other devices have zeros"""
    expect_outputs(seen)
    expect_spec(seen.out, PartitionSpec("pp"))


@exercise.check(learns, points=1, public=True, after=forward_value)
def forward_gradients(seen):
    """gpipe_forward: the gradients of layers and inputs equal those of one device"""
    of_ws, of_x = all_layers(seen.ws, seen.x, seen.cotangent[-1])
    expect_close(seen.grads["ws"], of_ws)
    expect_close(seen.grads["x"], of_x)


@exercise.check(there, points=0.5, public=True, after=forward_value)
def forward_permutes(seen):
    """gpipe_forward: permutes and no other collective"""
    expect_only(seen, "permute")


@exercise.check(many, points=1, after=forward_value)
def forward_bubble(seen):
    """gpipe_forward: M + P - 1 ticks; each computes one stage and sends at most one micro-batch"""
    expect_outputs(seen)
    d, stages = seen.dims, seen.mesh["pp"]
    ticks, stage_flops = d["M"] + stages - 1, d["B"] * d["L"] / stages * (2 * d["D"] ** 2 + 5 * d["D"])  # 5: lengths
    if stages == 2:  # Wrong: M + P ticks, so P ticks are wasted instead of P - 1. This ratio, P / (P - 1), is
        # largest for P = 2.
        useful = d["M"] * d["B"] * d["L"] * 2 * d["D"] ** 2
        bubbles = (1 - useful / (stages * stage_flops * n) for n in (ticks, ticks + 1))
        expect_bubble(seen, useful=useful, at_most=needed(*bubbles))
    # Wrong: only one device computes at a time, on one micro-batch or on the whole batch.
    expect_flops(seen, at_most=needed(ticks * stage_flops, stages * d["M"] * stage_flops))
    tick, hops = 4 * d["B"] * d["D"], max(2, stages - 1) * d["M"]
    expect_traffic(seen, at_most=needed(ticks * tick, hops * tick))


def pairs(n, wrap=False):
    return [(s, (s + 1) % n) for s in range(n if wrap else n - 1)]


def _pipeline(
    ws, x, *,
    ticks=lambda n, m: m + n - 1,
    begin=lambda x: x[0],
    takes=lambda tick, me, n, x, held: jnp.where(me == 0, x[jnp.minimum(tick, len(x) - 1)], held),
    slot=lambda tick, n, m: jnp.clip(tick - (n - 1), 0, m - 1),
    keep=lambda tick, n, m, made, old: made,
    hand_on=lambda made, n: jax.lax.ppermute(made, "pp", pairs(n)),
    returned=lambda out, me, n: jnp.where(me == n - 1, out, 0),
):  # fmt: skip
    """Run the reference with one part changed."""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]

    def one_tick(tick, carry):
        held, out = carry
        made = stage(ws, takes(tick, me, n, x, held))
        at = slot(tick, n, m)
        return hand_on(made, n), out.at[at].set(keep(tick, n, m, made, out[at]))

    _, out = jax.lax.fori_loop(0, ticks(n, m), one_tick, (begin(x), jnp.zeros_like(x)))
    return returned(out, me, n)[None]


@exercise.misconception(fails=forward_value, breaks="the last device has the outputs")
def outputs_from_tick_0(ws, x):
    """You keep outputs from tick 0 on. Before tick P - 1 the last device has only junk. In tick t it has the output of micro-batch t - (P - 1)."""

    def slot(tick, n, m):
        return jnp.minimum(tick, m - 1)

    return _pipeline(ws, x, slot=slot, keep=lambda tick, n, m, made, old: jnp.where(tick < m, made, old))


@exercise.misconception(form_of=outputs_from_tick_0, breaks="the last device has the outputs")
def outputs_from_tick_0_after_ones(ws, x):
    """Like `outputs_from_tick_0`, but the buffer between the stages starts with ones."""
    return _pipeline(
        ws,
        x,
        begin=lambda x: jnp.ones_like(x[0]),
        slot=lambda tick, n, m: jnp.minimum(tick, m - 1),
        keep=lambda tick, n, m, made, old: jnp.where(tick < m, made, old),
    )


@exercise.misconception(fails=forward_value, breaks="the last device has the outputs")
def stopped_after_m_ticks(ws, x):
    """You stop after M ticks, when the first device is done. The last micro-batch still has to pass the other devices: run M + P - 1 ticks."""
    return _pipeline(ws, x, ticks=lambda n, m: m)


@exercise.misconception(form_of=stopped_after_m_ticks, breaks="the last device has the outputs")
def stopped_after_m_ticks_without_junk(ws, x):
    """Like `stopped_after_m_ticks`, but outputs are kept from tick P - 1 on."""
    return _pipeline(
        ws,
        x,
        ticks=lambda n, m: m,
        keep=lambda tick, n, m, made, old: jnp.where(tick >= n - 1, made, old),
    )


@exercise.misconception(fails=forward_value, breaks="the last device has the outputs")
def bubble_leaks_by_a_matmul(ws, x):
    """You mask junk by a multiplication. Here a device computes NaN from zeros, and 0 · NaN is NaN. Choose with jnp.where, or fill the bubble with ones."""

    def keep(tick, n, m, made, old):
        useful = (tick >= n - 1).astype(made.dtype)
        return useful * made + (1 - useful) * old

    return _pipeline(
        ws, x, begin=lambda x: jnp.zeros_like(x[0]), keep=keep,
        returned=lambda out, me, n: out * (me == n - 1),
    )  # fmt: skip


def alike(found, due):
    return np.allclose(found, due, rtol=0, atol=1e-3)


def own_stage_only(seen):
    """For `gives`: require that each output of the last device comes from a micro-batch and the last device's layers."""
    layers = len(seen.ws) // seen.mesh["pp"]
    made = all_layers(seen.ws[-layers:], seen.x)
    if not all(any(alike(one, of) for of in made) for one in seen.out.value[-1]):
        raise Failure("this mistake gives outputs of one stage")


@exercise.misconception(fails=forward_value, breaks="the last device has the outputs")
def all_work_at_once(ws, x):
    """You let every device compute in the ticks 0 to M - 1. In tick t device s has micro-batch t - s, so device s computes in the ticks s to s + M - 1."""

    def takes(tick, me, n, x, held):
        return jnp.where(me == 0, x[jnp.minimum(tick, len(x) - 1)], jnp.where(tick < len(x), held, 1.0))

    return _pipeline(ws, x, takes=takes)


@exercise.misconception(fails=forward_value, gives=own_stage_only, breaks="the last device has the outputs")
def every_stage_takes_x(ws, x):
    """Every device takes its input from x. Only the first device does. The other devices take the array that arrives from the device before them."""
    return _pipeline(ws, x, takes=lambda tick, me, n, x, held: x[jnp.minimum(tick, len(x) - 1)])


@exercise.misconception(fails=forward_value, breaks="the last device has the outputs")
def first_eats_the_last(ws, x):
    """Your first device takes the output of the last device. Give it a new micro-batch in each tick, and ignore the array that arrives over the ring."""

    def takes(tick, me, n, x, held):
        return jnp.where((me == 0) & (tick == 0), x[0], held)

    return _pipeline(ws, x, takes=takes, hand_on=lambda made, n: jax.lax.ppermute(made, "pp", pairs(n, wrap=True)))


def own_outputs_elsewhere(seen):
    """For `gives`: require the outputs on the last device. The array of every other device must be neither zeros nor the outputs."""
    *others, last = seen.out.value
    due = all_layers(seen.ws, seen.x)
    if not alike(last, due) or any(alike(one, 0) or alike(one, due) for one in others):
        raise Failure("this mistake returns other arrays")


def outputs_everywhere(seen):
    """For `gives`: require the outputs on every device."""
    if not alike(seen.out.value, all_layers(seen.ws, seen.x)):
        raise Failure("this mistake returns the outputs on every device")


def next_outputs(seen):
    """For `gives`: require that the last device returns the output of the next micro-batch in place of each output.

    The first output is in no place.
    """
    last, due = seen.out.value[-1], all_layers(seen.ws, seen.x)
    if not alike(last[:-1], due[1:]) or alike(last[-1], due[0]):
        raise Failure("this mistake returns other outputs")


def rotated_outputs(seen):
    """For `gives`: require all outputs on the last device, each the same number of places away from its own place.

    The number may be 0 in some runs, as for the place t % M if M divides P - 1.
    """
    *others, last = seen.out.value
    due = all_layers(seen.ws, seen.x)
    if not alike(others, 0) or not any(alike(last, np.roll(due, places, axis=0)) for places in range(len(due))):
        raise Failure("this mistake rotates the outputs")


@exercise.misconception(fails=forward_value, gives=own_outputs_elsewhere, breaks="the other devices have zeros")
def everybody_returns(ws, x):
    """Every device returns its own output. Only the last device has the result: return zeros on the other devices."""
    return _pipeline(ws, x, returned=lambda out, me, n: out)


@exercise.misconception(fails=forward_value, gives=outputs_everywhere, breaks="the other devices have zeros")
def outputs_sent_to_all(ws, x):
    """You sent the outputs to all devices. Only the last device returns the outputs: return zeros on the other devices, and send nothing."""
    return jax.lax.psum(_pipeline(ws, x), "pp")


@exercise.misconception(fails=forward_value, gives=next_outputs, breaks="the last device has the outputs")
def outputs_a_tick_late(ws, x):
    """You keep the outputs from tick P on. The last device has its first output in tick P - 1. In tick t it has the output of micro-batch t - (P - 1)."""

    def slot(tick, n, m):
        return jnp.clip(tick - n, 0, m - 1)

    return _pipeline(ws, x, slot=slot, keep=lambda tick, n, m, made, old: jnp.where(tick >= n, made, old))


@exercise.misconception(fails=forward_value, gives=rotated_outputs, breaks="the last device has the outputs")
def outputs_in_other_places(ws, x):
    """All outputs are right, but in other places. In tick t the first device takes x[t], and the last device has the output of micro-batch t - (P - 1). So t % M is not the output's place."""
    return _pipeline(ws, x, slot=lambda tick, n, m: tick % m)


def not_finite(seen):
    """For `gives`: require NaN or infinite numbers in a gradient."""
    if all(np.isfinite(seen.grads[name].value).all() for name in ("ws", "x")):
        raise Failure("this mistake gives NaN")


@exercise.misconception(
    fails=forward_gradients,
    gives=not_finite,
    breaks="JAX's gradients of `ws` and `x` through your ticks equal those of one device",
)
def zeros_in_the_bubble(ws, x):
    """Your bubble begins with zeros, and stage divides by their norm, which gives NaN. The NaN shows only in the gradient, because 0 · NaN is NaN. Give idle devices an array with a norm above 0, or choose with jnp.where before stage."""
    return _pipeline(ws, x, begin=lambda x: jnp.zeros_like(x[0]))


@exercise.misconception(fails=[forward_permutes, forward_bubble], breaks="permutes and no other collective")
def forward_by_sum(ws, x):
    """You send by a sum over all devices. For each receiver, all devices but one add zeros. Only the neighbour needs the array: use ppermute."""

    def hand_on(made, n):
        me = jax.lax.axis_index("pp")
        return jax.lax.psum(jnp.where(jnp.arange(n)[:, None, None] == me + 1, made, 0), "pp")[me]

    return _pipeline(ws, x, hand_on=hand_on)


@exercise.misconception(fails=forward_bubble, breaks="M + P − 1 ticks")
def forward_tick_too_many(ws, x):
    """Your pipeline runs one tick too many. The last micro-batch leaves the last device in tick M + P - 2, counted from 0."""
    return _pipeline(
        ws, x, ticks=lambda n, m: m + n, keep=lambda tick, n, m, made, old: jnp.where(tick < m + n - 1, made, old)
    )


@exercise.misconception(fails=forward_bubble, breaks="each computes one stage and sends at most one micro-batch")
def batch_in_one_piece(ws, x):
    """You send the whole batch from device to device, so only one device does useful work in each tick. Cut the batch into micro-batches."""
    n, me = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")
    a = x
    for s in range(n):
        a = stage(ws, a)
        if s < n - 1:
            a = jnp.where(me == 0, x, jax.lax.ppermute(a, "pp", pairs(n)))
    return jnp.where(me == n - 1, a, 0)[None]


@exercise.misconception(fails=forward_bubble, breaks="M + P − 1 ticks")
def one_micro_batch_at_a_time(ws, x):
    """You send a micro-batch through all devices before the next micro-batch begins. This takes P · M ticks. Start each micro-batch one tick after the previous one."""

    def takes(tick, me, n, x, held):
        return jnp.where(me == 0, x[tick // n], held)

    return _pipeline(ws, x, ticks=lambda n, m: n * m, takes=takes, slot=lambda tick, n, m: tick // n)


@exercise.misconception(form_of=one_micro_batch_at_a_time)
def one_micro_batch_after_the_other(ws, x):
    """Like `one_micro_batch_at_a_time`, without a hop after the last device."""
    n, me = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")
    out = []
    for a in x:
        for s in range(n):
            a = jax.lax.ppermute(stage(ws, a), "pp", pairs(n, wrap=True)) if s < n - 1 else stage(ws, a)
        out.append(jnp.where(me == n - 1, a, 0))
    return jnp.stack(out)[None]


@exercise.alternative(of=gpipe_forward)
def forward_unrolled(ws, x):
    """A Python loop unrolls the ticks. Outputs are stacked at the end."""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    held, outputs = jnp.ones_like(x[0]), []
    for tick in range(m + n - 1):
        made = stage(ws, jnp.where(me == 0, x[min(tick, m - 1)], held))
        if tick >= n - 1:
            outputs.append(made)
        held = jax.lax.ppermute(made, "pp", pairs(n))
    return (jnp.stack(outputs) * (me == n - 1))[None]


@exercise.alternative(of=gpipe_forward)
def forward_in_a_scan(ws, x):
    """Scan over inputs that are padded with junk. Permutes wrap around. The first outputs are junk and are dropped."""
    n, me = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")

    def one_tick(held, new):
        made = stage(ws, jnp.where(me == 0, new, held))
        return jax.lax.ppermute(made, "pp", pairs(n, wrap=True)), made

    padded = jnp.concatenate([x, jnp.broadcast_to(x[-1:], (n - 1, *x.shape[1:]))])
    _, made = jax.lax.scan(one_tick, x[0], padded)
    return jnp.where(me == n - 1, made[n - 1 :], jnp.zeros_like(x))[None]


@exercise.alternative(of=gpipe_forward)
def forward_masked(ws, x):
    """The bubble holds zeros, which the program masks before use. Devices compute no stage in the bubble."""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    held, out = jnp.zeros_like(x[0]), jnp.zeros_like(x)
    for tick in range(m + n - 1):
        mine = tick - me
        useful, at = (mine >= 0) & (mine < m), jnp.clip(mine, 0, m - 1)
        a = jnp.where(useful, jnp.where(me == 0, x[at], held), 1.0)
        made = jax.lax.cond(useful, lambda a: stage(ws, a), lambda a: a, a)
        out = out.at[at].add(jnp.where(useful & (me == n - 1), made, 0))
        held = jax.lax.ppermute(jnp.where(useful, made, 0), "pp", pairs(n))
    return out[None]


@exercise.misconception(of=pipeline_time)
def time_without_filling(chip, P, M, T, D):
    """You counted M ticks. After M ticks the last micro-batch still has P - 1 devices to pass."""
    return M * matmul_time(4 * T * D**2, chip) + (M - 1) * 2 * T * D / CHIPS[chip].ici


@exercise.misconception(of=pipeline_time)
def time_without_hops(chip, P, M, T, D):
    """You left out the hops, or overlapped them with matmuls. Here a hop waits for the matmul, and the next matmul waits for the hop."""
    return (M + P - 1) * matmul_time(4 * T * D**2, chip)


@exercise.misconception(of=pipeline_time)
def time_of_one_hop_more(chip, P, M, T, D):
    """You counted a hop after the last tick. The last output stays on its device, so there is one hop fewer than
    ticks."""
    return (M + P - 1) * (matmul_time(4 * T * D**2, chip) + 2 * T * D / CHIPS[chip].ici)


@exercise.misconception(of=pipeline_time)
def time_of_one_tick_more(chip, P, M, T, D):
    """You counted M + P ticks. The first micro-batch passes P devices in P ticks. Each of the other M - 1 micro-batches ends one tick after the previous micro-batch."""
    return (M + P) * matmul_time(4 * T * D**2, chip) + (M + P - 1) * 2 * T * D / CHIPS[chip].ici


@exercise.misconception(of=pipeline_time)
def time_one_at_a_time(chip, P, M, T, D):
    """You sent one micro-batch after the other through all devices. Each micro-batch starts a tick after the previous one."""
    return M * (P * matmul_time(4 * T * D**2, chip) + (P - 1) * 2 * T * D / CHIPS[chip].ici)


@exercise.misconception(of=bubble_flops)
def bubble_of_one(P, M, T, D):
    """You counted one device. Each of the P devices has a bubble of P - 1 ticks."""
    return (P - 1) * 3 * 2 * T * D**2


@exercise.misconception(of=bubble_flops)
def bubble_and_work(P, M, T, D):
    """You counted all FLOPs of the devices. M of the M + P - 1 ticks are useful."""
    return P * (M + P - 1) * 3 * 2 * T * D**2


@exercise.misconception(of=bubble_flops)
def bubble_at_the_start(P, M, T, D):
    """You counted idle ticks only while the pipeline fills. Equally many ticks are idle while it drains."""
    return P * (P - 1) / 2 * 3 * 2 * T * D**2


exercise.scenario(
    pipeline_time,
    lambda chip, P, M, T, D: Scenario(
        chip=chip, mesh={"pp": P}, arrays=[((2 * P, D, D), PartitionSpec("pp"))], least=P * 1e-6
    ),
)
exercise.scenario(
    bubble_flops, lambda P, M, T, D: Scenario(mesh={"pp": P}, arrays=[((3 * P, D, D), PartitionSpec("pp"))])
)
