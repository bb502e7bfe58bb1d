"""I5: checks, misconceptions and alternatives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from grader.exercise import Scenario, axis, like, normal
from grader.expect import (
    Failure,
    between,
    expect_close,
    expect_flops,
    expect_memory,
    expect_only,
    expect_other_flops,
    expect_spec,
    expect_step_time,
    expect_traffic,
    needed,
)
from grader.hardware import HOP_TIME, matmul_time
from i5_1f1b_program import call, exercise, grad_1f1b, lock_step_time, stage, stash_saved


@exercise.helper
def unsharded(ws, x, y):
    """Return the loss of all micro-batches at once, and its gradient for ws, in float64."""
    kept = []
    for w in ws:
        size = np.linalg.norm(x, axis=-1, keepdims=True)
        kept.append((x / size, size))
        x = np.tanh(x / size @ w)
    loss, grads, d = ((x - y) ** 2).mean(), [], 2 * (x - y) / y.size
    for w, (a, size) in zip(ws[::-1], kept[::-1], strict=True):
        d = d * (1 - np.tanh(a @ w) ** 2)
        grads.insert(0, np.einsum("mbi,mbj->ij", a, d))
        d = d @ w.T
        d = (d - a * (a * d).sum(-1, keepdims=True)) / size
    return loss, np.stack(grads)


@exercise.check(call, points=2, public=True)
def program_value(seen):
    """grad_1f1b: the loss and the gradients equal those of one device"""
    expect_close(seen.out, unsharded(seen.ws, seen.x, seen.y))
    expect_spec(seen.out[1], PartitionSpec("pp"))


def expect_ticks(seen, too_many):
    """Require at most the bytes and FLOPs of 2 (M + P - 1) ticks, and one all-reduce of a number. A wrong program sends
    `too_many` times the bytes of these ticks."""
    d, n = seen.dims, seen.mesh["pp"]
    layers, ticks, micro = d["L"] // n, 2 * (d["M"] + n - 1), d["B"] * d["D"]
    expect_only(seen, "permute", "all_reduce")
    number, sent, both = 2 * 4 * (n - 1) / n, ticks * 4 * micro, d["M"] + 2 * (n - 1)  # ticks with F and B in each
    wrong = min(ticks, micro) * number  # wrong: a number in each tick, or an array of a micro-batch
    expect_traffic(seen.only(kind="all_reduce"), at_most=needed(number, wrong))
    expect_traffic(seen, at_most=needed(sent, too_many * 2 * sent, at=2 * sent + 8))  # F and B may be sent together
    each, one = ticks * layers * micro, both * layers * micro
    right, wrong = one * (8 * d["D"] + 23), each * (14 * d["D"] + 43)  # wrong: each backward pass runs twice
    expect_flops(
        seen, at_most=needed(right, wrong, at=each * (4 * 2 * d["D"] + 30))
    )  # 30: lengths of rows and the like
    # All operations of `both_in_a_tick`, counted. A tick adds the gradients of `layers` layers to an array of all layers:
    # (layers · D)². Its other terms are elementwise operations minus 1 for each multiplication of two numbers, which
    # counts as 2 FLOPs of a matmul; 26 are for indices. Wrong: each addition of a matmul is corrected.
    right = both * ((layers * d["D"]) ** 2 + (3 - 2 * layers) * micro + 4 * layers * d["B"] + 26)
    wrong = 9.7 * each * d["D"]  # measured: 3 operations for each of a matmul's additions, and 0.7 for the rest
    expect_other_flops(seen, at_most=needed(right, wrong, at=each * 2 * d["D"]))


@exercise.check(call, points=1, after=program_value)
def program_budget(seen):
    """grad_1f1b: 2 (M + P - 1) ticks with at most two permutes each, and one all-reduce of a number"""
    ticks = 2 * (seen.dims["M"] + seen.mesh["pp"] - 1)
    expect_ticks(seen, too_many=(ticks + 2) / ticks)  # a round too many
    n = seen.mesh["pp"]
    if n == 4:
        both, ticks = seen.dims["M"] + 2 * (n - 1), 2 * (seen.dims["M"] + n - 1)  # ticks with F and B in each
        right, wrong = (both + 4.1) * HOP_TIME, (2 * ticks + 4.3) * HOP_TIME  # 4: of the all-reduce
        most = between(right, wrong, at=(ticks + 5.2) * HOP_TIME, unit=HOP_TIME)
        expect_step_time(seen, on="v5e:2x2", at_most=most)


long = exercise.call(
    grad_1f1b,
    ws=normal("L", "D", "D", spec=PartitionSpec("pp")),
    x=normal("M", "B", "D"),
    y=normal("M", "B", "D"),
    meshes=[{"pp": 4}],
    returns=("loss", like("ws")),
    dims={"L": 2 * axis("pp"), "M": 63, "B": 10, "D": 6},
    hidden_dims={"L": axis("pp"), "M": 71, "B": 14, "D": 5},
)


@exercise.check(long, points=1, after=[program_value, program_budget])
def program_memory(seen):
    """grad_1f1b: in 2 (M + P - 1) ticks, with a stash of about P inputs"""
    expect_close(seen.out, unsharded(seen.ws, seen.x, seen.y))
    expect_ticks(seen, too_many=1.5)  # a gather in place of a permute
    d, stages = seen.dims, seen.mesh["pp"]
    micro, weights = 4 * d["B"] * d["D"], 4 * d["D"] ** 2 * d["L"] // stages
    tick = 5.6 * micro + 2 * weights  # the arrays of a tick, besides the stash
    # With F and B in one tick, a program may hold 2P - 1 inputs twice. With F and B in ticks of their own, a program never
    # copies a stash of 4P inputs.
    most = (4 * stages + 2) * micro + 2 * weights
    budget = between(right=stages * micro + tick, wrong=4 * stages * micro + tick, at=most)
    expect_memory(seen, at_most=budget, by="program", arguments=False)


def ring(step):
    n = jax.lax.axis_size("pp")
    return [(s, s + step) for s in range(n) if 0 <= s + step < n]


def went_back(ws, a, due, came, last, size, apply=None):
    """Return the error of a stage's output, and the gradients of ws and a. The last device computes the gradients from
    the error, and the other devices compute them from the received gradient."""
    out, pull = jax.vjp(apply or stage, ws, a)
    error = out - due
    return error, *pull(jnp.where(last, 2 * error / size, came))


def _grads(
    ws, x, y, *,
    slots=lambda n, m: n,
    slot=lambda mine, n, m: mine % n,
    read=None,
    back_at=lambda tick, me, n: (tick - (2 * n - 1 - me)) // 2,
    per=lambda y: y.size,
    add=lambda useful, grads, dws: grads + jnp.where(useful, dws, 0),
    hand_on=lambda made: (jax.lax.ppermute(made, "pp", ring(1)), jax.lax.ppermute(made, "pp", ring(-1))),
    ticks=lambda n, m: 2 * (m + n - 1),
    choose=jax.lax.cond,
    go_back=went_back,
    apply=lambda ws, a: stage(ws, a),
    squares=jnp.sum,
    came=lambda x: x[0],
    told=lambda loss: jax.lax.psum(loss, "pp"),
    counts=lambda useful, last: useful & last,
    each=lambda loss: loss,
    keep=lambda useful, a, old: a,
):  # fmt: skip
    """Run the reference with two permutes in every tick, and one part changed."""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]

    def there(tick, on, off, stash, loss, grads):
        mine = (tick - me) // 2
        a = jnp.where(me == 0, x[jnp.clip(mine, 0, m - 1)], on)
        own = slot(mine, n, m)
        return apply(ws, a), stash.at[own].set(keep((mine >= 0) & (mine < m), a, stash[own])), loss, grads

    def back(tick, on, off, stash, loss, grads):
        mine = back_at(tick, me, n)
        useful = (mine >= 0) & (mine < m)
        due = y[mine]
        error, dws, da = go_back(ws, stash[(read or slot)(mine, n, m)], due, off, me == n - 1, per(y))
        loss += each(jnp.where(counts(useful, me == n - 1), squares(error**2) / y.size, 0))
        return da, stash, loss, add(useful, grads, dws)

    def a_tick(tick, carry):
        made, *kept = choose((tick - me) % 2 == 0, there, back, tick, *carry)
        return *hand_on(made), *kept

    none = jnp.zeros_like(squares(x[0]))
    begin = came(x), came(x), jnp.zeros((slots(n, m), *x.shape[1:])), none, jnp.zeros_like(ws)
    _, _, _, loss, grads = jax.lax.fori_loop(0, ticks(n, m), a_tick, begin)
    return jnp.sum(told(loss)), grads


def _both(chosen, there, back, *carry):
    return jax.tree.map(lambda a, b: jnp.where(chosen, a, b), there(*carry), back(*carry))


@exercise.misconception(fails=program_memory, breaks="a stash of about P inputs")
def stash_of_all(ws, x, y):
    """You keep the inputs of all M micro-batches, as GPipe does. Run each backward as soon as you can. Then a slot is free again, and P slots are enough: `i % P`."""
    return _both_in_a_tick(ws, x, y, slots=len(x))


@exercise.misconception(fails=program_memory, breaks="a stash of about P inputs")
def stash_of_4_p(ws, x, y):
    """Your stash has more slots than a device ever uses. At most P inputs wait for their backward pass, so P slots are enough: `i % P`. With F and B in one tick, 2P - 1 slots are enough."""
    return _both_in_a_tick(ws, x, y, slots=4 * jax.lax.axis_size("pp"))


@exercise.misconception(form_of=stash_of_4_p)
def stash_of_4_p_in_order(ws, x, y):
    """Like `stash_of_4_p`, in the order of the grid."""
    return _grads(ws, x, y, slots=lambda n, m: 4 * n, slot=lambda mine, n, m: mine % (4 * n))


@exercise.misconception(form_of=stash_of_all)
def stash_of_all_in_order(ws, x, y):
    """Like `stash_of_all`, in the order of the grid."""
    return _grads(ws, x, y, slots=lambda n, m: m, slot=lambda mine, n, m: mine % m)


def _both_in_a_tick(ws, x, y, *, slots=0, put=lambda stash, slot, a, useful: stash.at[slot].set(a)):
    """Run F and B in every tick, with a stash of 2P - 1 inputs or of ``slots``.

    Args:
        put: writes an input into a slot of the stash; ``useful``: the input belongs to a micro-batch.
    """
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    slots = slots or 2 * n - 1

    def a_tick(tick, carry):
        on, off, stash, loss, grads = carry
        a = jnp.where(me == 0, x[jnp.clip(tick - me, 0, m - 1)], on)
        stash = put(stash, (tick - me) % slots, a, (tick >= me) & (tick - me < m))
        made = stage(ws, a)
        mine = tick - (2 * (n - 1) - me)
        useful = (mine >= 0) & (mine < m)
        out, pull = jax.vjp(stage, ws, stash[mine % slots])
        error = out - y[jnp.clip(mine, 0, m - 1)]
        dws, da = pull(jnp.where(me == n - 1, 2 * error / y.size, off))
        loss += jnp.where(useful & (me == n - 1), jnp.sum(error**2) / y.size, 0)
        handed = jax.lax.ppermute(made, "pp", ring(1)), jax.lax.ppermute(da, "pp", ring(-1))
        return *handed, stash, loss, grads + jnp.where(useful, dws, 0)

    begin = x[0], x[0], jnp.zeros((slots, *x.shape[1:])), 0.0, jnp.zeros_like(ws)
    _, _, _, loss, grads = jax.lax.fori_loop(0, m + 2 * n - 2, a_tick, begin)
    return jax.lax.psum(loss, "pp"), grads


@exercise.alternative(of=grad_1f1b)
def both_in_a_tick(ws, x, y):
    """Every tick runs F and B: fewer ticks, but a stash of 2P - 1 inputs."""
    return _both_in_a_tick(ws, x, y)


@exercise.alternative(of=grad_1f1b)
def both_with_a_masked_stash(ws, x, y):
    """Every tick runs F and B, and copies the whole stash by a jnp.where."""
    return _both_in_a_tick(ws, x, y, put=lambda stash, slot, a, useful: jnp.where(useful, stash.at[slot].set(a), stash))


@exercise.alternative(of=grad_1f1b)
def two_permutes(ws, x, y):
    """In every tick a device sends its result to both neighbours, and uses one of the two arrays that it receives."""
    return _grads(ws, x, y)


@exercise.alternative(of=grad_1f1b)
def computes_both(ws, x, y):
    """Without cond, each tick computes both F and B, and keeps one result."""
    return _grads(ws, x, y, choose=_both)


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def program_overwrites(ws, x, y):
    """You overwrote the gradient in every tick, so only the last micro-batch counts. Add to the gradient instead."""
    return _grads(ws, x, y, add=lambda useful, grads, dws: jnp.where(useful, dws, grads))


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def program_adds_junk(ws, x, y):
    """You add gradients of junk. Add only if the micro-batch exists, 0 ≤ i < M. Choose with jnp.where, because 0 · NaN
    is NaN."""
    return _grads(ws, x, y, add=lambda useful, grads, dws: grads + useful * dws)


@exercise.misconception(form_of=program_adds_junk)
def program_adds_all_ticks(ws, x, y):
    """Like `program_adds_junk`, but the program does not test whether the micro-batch exists."""
    return _grads(ws, x, y, add=lambda useful, grads, dws: grads + dws, came=lambda x: jnp.ones_like(x[0]))


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def a_slot_too_few(ws, x, y):
    """Your stash has too few slots, so an input is overwritten before its B. Device 0 holds P inputs before its first B: use P slots, `i % P`. With F and B in one tick it holds 2P - 1 inputs."""
    return _grads(ws, x, y, slots=lambda n, m: n - 1, slot=lambda mine, n, m: mine % (n - 1))


def if_useful(useful, a, old):
    return jnp.where(useful, a, old)


@exercise.misconception(form_of=a_slot_too_few)
def a_slot_too_few_with_a_mask(ws, x, y):
    """Like `a_slot_too_few`, but F of junk does not write."""
    return _grads(ws, x, y, slots=lambda n, m: n - 1, slot=lambda mine, n, m: mine % (n - 1), keep=if_useful)


@exercise.misconception(form_of=a_slot_too_few)
def p_slots_for_both_in_a_tick(ws, x, y):
    """Like `a_slot_too_few`, with F and B in one tick and P slots."""
    return _both_in_a_tick(ws, x, y, slots=jax.lax.axis_size("pp"))


@exercise.misconception(form_of=a_slot_too_few)
def p_slots_for_both_in_a_tick_with_a_mask(ws, x, y):
    """Like `p_slots_for_both_in_a_tick`, but F of junk does not write."""
    put = lambda stash, slot, a, useful: stash.at[slot].set(jnp.where(useful, a, stash[slot]))  # noqa: E731
    return _both_in_a_tick(ws, x, y, slots=jax.lax.axis_size("pp"), put=put)


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def back_a_tick_early(ws, x, y):
    """Your B reads a slot that does not hold the input of its micro-batch. Either B is in another tick, or B reads the slot of another micro-batch. B of micro-batch i is in tick 2P - 1 - s + 2i. It reads the slot that F of micro-batch i wrote."""
    return _grads(ws, x, y, back_at=lambda tick, me, n: (tick - (2 * n - 3 - me)) // 2)


@exercise.misconception(form_of=back_a_tick_early)
def next_slot_read(ws, x, y):
    """Like `back_a_tick_early`, with B in its own tick: it reads the slot of the next micro-batch."""
    return _grads(ws, x, y, read=lambda mine, n, m: (mine + 1) % n)


@exercise.misconception(form_of=back_a_tick_early)
def slot_of_f_read(ws, x, y):
    """Like `next_slot_read`, but B in tick t reads the slot of micro-batch (t - s) // 2."""

    def read(mine, n, m):
        return (mine + n - 1 - jax.lax.axis_index("pp")) % n

    return _grads(ws, x, y, read=read, keep=if_useful)


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def all_to_the_right(ws, x, y):
    """You send everything to device s + 1, gradients too. Send gradients to s - 1."""

    def hand_on(made):
        return (jax.lax.ppermute(made, "pp", ring(1)),) * 2

    return _grads(ws, x, y, hand_on=hand_on)


@exercise.misconception(form_of=all_to_the_right, breaks="loss and gradient are those of one device")
def all_round_to_the_right(ws, x, y):
    """Like `all_to_the_right`, but gradients go round a ring, and the first arrays are zeros."""

    def hand_on(made):
        n = jax.lax.axis_size("pp")
        return jax.lax.ppermute(made, "pp", ring(1)), jax.lax.ppermute(made, "pp", [(s, (s + 1) % n) for s in range(n)])

    return _grads(ws, x, y, hand_on=hand_on, came=lambda x: jnp.zeros_like(x[0]))


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def program_sum_of_means(ws, x, y):
    """Your loss is the sum of the micro-batches' means, and your gradient is the gradient of this sum. The loss is the mean over all M micro-batches: divide the loss and the gradient by M."""
    m = len(y)
    return _grads(ws, x, y, per=lambda y: y[0].size, told=lambda loss: m * jax.lax.psum(loss, "pp"))


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def loss_on_the_last_alone(ws, x, y):
    """Only the last device returns the loss. Sum the loss over pp: the other devices add zeros."""
    return _grads(ws, x, y, told=lambda loss: loss)


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def program_scaled_for_the_log(ws, x, y):
    """Your loss is the mean over the batch, but your gradient is the gradient of the sum over micro-batches. Divide by M before the backward pass."""
    return _grads(ws, x, y, per=lambda y: y[0].size)


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def program_loss_averaged(ws, x, y):
    """You averaged the loss over pp, which makes it P times too small. The last device has the whole loss. Use psum: the other devices add zeros."""
    return _grads(ws, x, y, told=lambda loss: jax.lax.pmean(loss, "pp"))


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def program_loss_of_every_stage(ws, x, y):
    """You added the errors of all stages to the loss. Only the outputs of the last device are outputs of the model: the other devices add zeros."""
    return _grads(ws, x, y, counts=lambda useful, last: useful)


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def program_gives_half(ws, x, y):
    """Your gradient is half of the right gradient. The derivative of (output - y)² is 2 · (output - y)."""
    return _grads(ws, x, y, per=lambda y: 2 * y.size)


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def program_errors_on_all_devices(ws, x, y):
    """Each device begins with the error of its own output. Only the last device has outputs of the model. The other devices use the gradient that they receive."""

    def from_own_error(ws, a, due, came, last, size):
        return went_back(ws, a, due, came, True, size)

    return _grads(ws, x, y, go_back=from_own_error)


@exercise.misconception(fails=program_value, breaks="loss and gradient are those of one device")
def program_gradients_of_all_stages(ws, x, y):
    """You reduced the gradient of ws over pp. Each device has its own layers, so the gradients of different devices belong to different layers. Reduce only the loss."""
    loss, grads = _grads(ws, x, y)
    return loss, jax.lax.psum(grads, "pp")


@exercise.misconception(form_of=program_gradients_of_all_stages)
def program_gradients_of_all_stages_averaged(ws, x, y):
    """Like `program_gradients_of_all_stages`, with pmean."""
    loss, grads = _grads(ws, x, y)
    return loss, jax.lax.pmean(grads, "pp")


@exercise.misconception(fails=program_budget, breaks="each with at most two permutes; one all-reduce of the loss")
def program_gathers(ws, x, y):
    """You gather the arrays of all devices and pick the neighbours' arrays. A permute sends an array to the neighbour alone."""

    def hand_on(made):
        n, me = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")
        of = jax.lax.all_gather(made, "pp")
        return of[jnp.maximum(me - 1, 0)], of[jnp.minimum(me + 1, n - 1)]

    return _grads(ws, x, y, hand_on=hand_on)


def summed_in_a_loop(seen):
    """For `gives`: require an all-reduce in a loop, and a permute."""
    sums = [c for c in seen.collectives if c.kind == "all_reduce" and c.rounds.most > 1]
    if not sums or all(c.kind != "permute" for c in seen.collectives):
        raise Failure("this mistake gives other collectives")


@exercise.misconception(fails=program_budget, gives=summed_in_a_loop, breaks="one all-reduce of the loss")
def program_sums_in_each_tick(ws, x, y):
    """You all-reduce the loss in each tick. Add the ticks' losses on each device, and all-reduce the sum once, after the loop."""
    return _grads(ws, x, y, each=lambda loss: jax.lax.psum(loss, "pp"), told=lambda loss: loss, choose=_both)


@exercise.misconception(fails=program_budget, breaks="one all-reduce of the loss")
def program_reduces_squares(ws, x, y):
    """You all-reduce an array of squares and then add its numbers. Add them on the last device, and all-reduce the loss, one number."""
    return _grads(ws, x, y, squares=lambda squares: squares)


@exercise.misconception(fails=program_budget, breaks="one all-reduce of the loss")
def program_hands_on_by_sum(ws, x, y):
    """You send by a sum over all devices, to which each device adds its array in its own slot. A permute sends an array
    to the neighbour alone."""

    def hand_on(made):
        n, me = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")
        of = jax.lax.psum(jnp.zeros((n, *made.shape)).at[me].set(made), "pp")
        return of[jnp.maximum(me - 1, 0)], of[jnp.minimum(me + 1, n - 1)]

    return _grads(ws, x, y, hand_on=hand_on)


@exercise.misconception(fails=program_budget, breaks="2 (M + P − 1) ticks, each with at most two permutes")
def program_back_twice_in_a_tick(ws, x, y):
    """Each tick runs the backward pass of a stage twice: from the loss, and from the gradient that arrived. Choose one of the two gradients with jnp.where, then run the backward pass once."""

    def twice(ws, a, due, came, last, size):
        def loss_of(ws, a):
            error = stage(ws, a) - due
            return jnp.sum(error**2) / size, error

        of_loss, error = jax.grad(loss_of, (0, 1), has_aux=True)(ws, a)
        of_came = jax.vjp(stage, ws, a)[1](came)
        return error, *(jnp.where(last, *both) for both in zip(of_loss, of_came, strict=True))

    return _grads(ws, x, y, choose=_both, go_back=twice)


@exercise.misconception(fails=program_budget, breaks="each with at most two permutes")
def one_hop_after_the_other(ws, x, y):
    """Your second permute waits for the first, so each tick takes two hops. Neither permute needs the other's result: send both at once."""

    def hand_on(made):
        on = jax.lax.ppermute(made, "pp", ring(1))
        made, on = jax.lax.optimization_barrier((made, on))
        return on, jax.lax.ppermute(made, "pp", ring(-1))

    return _grads(ws, x, y, hand_on=hand_on)


@exercise.misconception(fails=program_budget, breaks="2 (M + P − 1) ticks, each with at most two permutes")
def a_round_too_many(ws, x, y):
    """Your loop runs too long. B of the last micro-batch on device 0 is in tick 2 (M + P - 1) - 1. After this tick all work is done."""
    return _grads(ws, x, y, ticks=lambda n, m: 2 * (m + n))


def stage_with_corrected_sums(ws, a):
    """Apply the layers. Each addition of a matmul's sums corrects the rounding error of the addition before it."""

    def add(state, factors):
        total, lost = state
        term = factors[0][:, None] * factors[1] - lost
        new = total + term
        return (new, (new - total) - term), None

    for w in ws:
        rows, none = a / jnp.linalg.norm(a, axis=-1, keepdims=True), jnp.zeros_like(a)
        a = jnp.tanh(jax.lax.scan(add, (none, none), (rows.T, w))[0][0])
    return a


@exercise.misconception(fails=program_budget)
def program_with_rounding_errors_corrected(ws, x, y):
    """You wrote a matmul as a loop that corrects the rounding error of each addition. These corrections are three more operations for each term of a sum. Use `@`, which is exact enough."""
    go_back = partial(went_back, apply=stage_with_corrected_sums)
    return _grads(ws, x, y, apply=stage_with_corrected_sums, go_back=go_back)


@exercise.misconception(of=stash_saved)
def stash_of_gpipe(M, P, T, D):
    """You counted GPipe's whole stash as saved. Your program keeps P inputs."""
    return M * 2 * T * D


@exercise.misconception(of=stash_saved)
def stash_of_this(M, P, T, D):
    """You counted your program's stash. How much smaller than M inputs is this stash?"""
    return P * 2 * T * D


@exercise.misconception(of=stash_saved)
def stash_one_less(M, P, T, D):
    """You counted P - 1 inputs for your program's stash. Device 0 holds P inputs before its first backward."""
    return (M - P + 1) * 2 * T * D


@exercise.misconception(of=stash_saved)
def stash_of_floats(M, P, T, D):
    """You counted four bytes per number. A bfloat16 has two bytes."""
    return (M - P) * 4 * T * D


@exercise.misconception(of=lock_step_time)
def time_of_own_programs(chip, M, P, T, D):
    """You counted 1F1B with a program for each device, or a B without recomputation. If all devices run one program, each tick is as long as a B with recomputation: three times an F."""
    return (M + P - 1) * 4 * matmul_time(2 * 2 * T * D**2, chip)


@exercise.misconception(of=lock_step_time)
def time_of_half_the_ticks(chip, M, P, T, D):
    """Either you counted M + P - 1 ticks, or one layer, or one FLOP for a term of a matmul. Each micro-batch needs two ticks, one forward and one backward. A stage has two layers, and a term has two FLOPs."""
    return (M + P - 1) * 3 * matmul_time(2 * 2 * T * D**2, chip)


@exercise.misconception(of=lock_step_time)
def ticks_of_both(chip, M, P, T, D):
    """You counted an F and a B in each tick. In the order of the grid a device does one of them in a tick, so a tick takes as long as a B."""
    return 2 * (M + P - 1) * 4 * matmul_time(2 * 2 * T * D**2, chip)


@exercise.misconception(of=lock_step_time)
def fewer_ticks_of_both(chip, M, P, T, D):
    """You counted the program with an F and a B in each tick. In the order of the grid each tick has one of them, and there are 2 (M + P - 1) ticks."""
    return (M + 2 * P - 2) * 4 * matmul_time(2 * 2 * T * D**2, chip)


@exercise.misconception(of=lock_step_time)
def ticks_of_a_forward(chip, M, P, T, D):
    """You gave a tick the time of an F. In each tick some device does a B, and the others wait for it."""
    return 2 * (M + P - 1) * matmul_time(2 * 2 * T * D**2, chip)


@exercise.misconception(of=lock_step_time)
def two_ticks_more(chip, M, P, T, D):
    """You counted 2 (M + P) ticks. The pipeline fills in P - 1 ticks and drains in P - 1 ticks."""
    return 2 * (M + P) * 3 * matmul_time(2 * 2 * T * D**2, chip)


@exercise.misconception(of=lock_step_time)
def fills_twice(chip, M, P, T, D):
    """You counted the filling and the draining of the pipeline twice. It fills in P - 1 ticks and drains in P - 1 ticks."""
    return 2 * (M + 2 * (P - 1)) * 3 * matmul_time(2 * 2 * T * D**2, chip)


@exercise.misconception(of=lock_step_time)
def ticks_without_filling(chip, M, P, T, D):
    """You counted 2 M ticks. The pipeline also fills in P - 1 ticks and drains in P - 1 ticks."""
    return 2 * M * 3 * matmul_time(2 * 2 * T * D**2, chip)


exercise.scenario(stash_saved, lambda M, P, T, D: Scenario(mesh={"pp": P}, arrays=[((M, T, D), ())]))
exercise.scenario(
    lock_step_time,
    lambda chip, M, P, T, D: Scenario(chip=chip, mesh={"pp": P}, arrays=[((2 * P, D, D), PartitionSpec("pp"))]),
)
