"""I2: checks, misconceptions and alternatives."""

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
    expect_traffic,
    needed,
)
from grader.hardware import matmul_time
from i2_gpipe_backward import call, exercise, gpipe_stash, gpipe_step, gpipe_step_time, stage


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


@exercise.check(call, points=1, public=True)
def step_loss(seen):
    """gpipe_step: the loss of the whole batch, in each of three steps"""
    for step in seen.steps:
        expect_close(step.out[0], unsharded(step.ws, step.x, step.y)[0])


@exercise.check(call, points=1.5, public=True, after=step_loss)
def step_weights(seen):
    """gpipe_step: the layers after each of three steps equal those of one device"""
    for step in seen.steps:
        expect_close(step.out[1], step.ws - seen.rate * unsharded(step.ws, step.x, step.y)[1])
        expect_spec(step.out[1], PartitionSpec("pp"))


def expect_ticks(seen):
    """Require at most the bytes and FLOPs of M + P - 1 ticks in each pass, and one all-reduce of a number."""
    d, layers = seen.dims, seen.dims["L"] // seen.mesh["pp"]
    ticks = d["M"] + seen.mesh["pp"] - 1
    expect_only(seen, "permute", "all_reduce")
    n, sent = seen.mesh["pp"], ticks * 4 * d["B"] * d["D"]  # with two devices, each may send in only one pass
    expect_traffic(seen, at_most=needed(min(2, n - 1) * sent, 4 * (n - 1) * sent, at=2 * sent + 8))  # wrong: sums
    each = ticks * layers * d["B"] * d["D"]
    right, wrong = each * (8 * d["D"] + 23), each * (10 * d["D"] + 27)  # wrong: a tick back computes the stage twice
    near = "with any sizes, both passes have the matmuls of 4 stages in a tick, or of 5 if the stage is computed twice"
    most = each * (4 * 2 * d["D"] + 30)  # 30: lengths of rows and the like
    expect_flops(seen, at_most=needed(right, wrong, at=most, near=near))
    # All operations of the solution, counted. A tick adds the gradients of `layers` layers to an array of all layers:
    # (layers · D)². Its other terms are elementwise operations minus 1 for each multiplication of two numbers, which
    # counts as 2 FLOPs of a matmul; 19 are for indices. The update of ws takes 2 layers · D² operations.
    rest = ticks * ((layers * d["D"]) ** 2 + (3 - 2 * layers) * d["B"] * d["D"] + 4 * layers * d["B"] + 19)
    rest += 2 * layers * d["D"] ** 2
    wrong = rest + 3 * each * d["D"]  # wrong: in the forward pass each addition of a matmul is corrected
    expect_other_flops(seen, at_most=needed(rest, wrong, at=each * 2 * d["D"]))


@exercise.check(call, points=0.5, after=step_weights)
def step_budget(seen):
    """gpipe_step: M + P - 1 ticks in each pass; permutes, and one all-reduce of a number"""
    expect_ticks(seen)


deep = exercise.call(
    gpipe_step,
    ws=normal("L", "D", "D", spec=PartitionSpec("pp")),
    x=normal("M", "B", "D"),
    y=normal("M", "B", "D"),
    meshes=[{"pp": 2}],
    static={"rate": 0.5},
    hidden_static={"rate": 0.7},
    returns=("loss", like("ws")),
    dims={"L": 2 * axis("pp"), "M": 15, "B": 14, "D": 12},
    hidden_dims={"L": 3 * axis("pp"), "M": 17, "B": 15, "D": 14},
)


@exercise.check(deep, points=1, after=[step_weights, step_budget])
def step_memory(seen):
    """gpipe_step: in M + P - 1 ticks per pass, a device keeps only the inputs of its stage and one sum of gradients"""
    expect_close(seen.out[1], seen.ws - seen.rate * unsharded(seen.ws, seen.x, seen.y)[1])
    expect_ticks(seen)
    d, layers = seen.dims, seen.dims["L"] // seen.mesh["pp"]
    micro, weights = 4 * d["B"] * d["D"], 4 * d["D"] ** 2 * layers
    stash = d["M"] * micro
    right = stash + 2 * micro + 3 * weights  # the tick's gradients, the sum, and the new sum
    wrong = stash + 2 * micro + (d["M"] + 2) * weights  # a gradient for each micro-batch
    expect_memory(seen, at_most=between(right, wrong), by="program", arguments=False)


def ring(step):
    n = jax.lax.axis_size("pp")
    return [(s, s + step) for s in range(n) if 0 <= s + step < n]


def went_back(ws, a, due, came, last, size):
    """Return the error of a stage's output, and the gradients of ws and a. The last device computes the gradients from
    the error, and the other devices compute them from the received gradient."""
    out, pull = jax.vjp(stage, ws, a)
    error = out - due
    return error, *pull(jnp.where(last, 2 * error / size, came))


def _step(
    ws, x, y, rate, *,
    held=lambda x: x[0],
    keep=lambda useful, a, old: jnp.where(useful, a, old),
    at=lambda slot, me, n, m: slot,
    back_at=lambda tick, me, n: tick - (n - 1 - me),
    per=lambda y: y.size,
    add=lambda useful, slot, grads, dws: grads + jnp.where(useful, dws, 0),
    begin=jnp.zeros_like,
    hand_on=lambda a, step: jax.lax.ppermute(a, "pp", ring(step)),
    update=lambda useful, ws, dws: ws,
    ticks=lambda m, n: m + n - 1,
    go_back=went_back,
    apply=lambda ws, a: stage(ws, a),
    counts=lambda useful, last: useful & last,
    each=lambda loss: loss,
    told=lambda loss: jax.lax.psum(loss, "pp"),
    begin_back=lambda x: x[0],
):  # fmt: skip
    """Run the reference with one part changed: the loss, the weights between ticks, or the gradients."""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]

    def there(tick, carry):
        came, stash = carry
        mine = tick - me
        slot, useful = jnp.clip(mine, 0, m - 1), (mine >= 0) & (mine < m)
        a = jnp.where(me == 0, x[slot], came)
        return hand_on(apply(ws, a), 1), stash.at[slot].set(keep(useful, a, stash[slot]))

    def back(tick, carry):
        came, loss, ws, grads = carry
        mine = back_at(tick, me, n)
        slot, useful = jnp.clip(mine, 0, m - 1), (mine >= 0) & (mine < m)
        slot = at(slot, me, n, m)
        error, dws, da = go_back(ws, stash[slot], y[slot], came, me == n - 1, per(y))
        loss += each(jnp.where(counts(useful, me == n - 1), jnp.sum(error**2) / y.size, 0))
        return hand_on(da, -1), loss, update(useful, ws, dws), add(useful, slot, grads, dws)

    _, stash = jax.lax.fori_loop(0, m + n - 1, there, (held(x), jnp.zeros_like(x)))
    _, loss, ws, grads = jax.lax.fori_loop(0, ticks(m, n), back, (begin_back(x), 0.0, ws, begin(ws)))
    return told(loss), ws, grads


def _stepped(ws, x, y, rate, **other):
    loss, _, grads = _step(ws, x, y, rate, **other)
    return loss, ws - rate * grads


@exercise.misconception(fails=step_weights, breaks="in each of three steps, equal to the results of one device")
def only_the_last_learned(ws, x, y, *, rate):
    """You overwrote the gradient in every tick, so only the last micro-batch counts. Add to the gradient instead."""
    return _stepped(ws, x, y, rate, add=lambda useful, slot, grads, dws: jnp.where(useful, dws, grads))


def last_micro_batch_again(seen):
    """For `gives`: require that the last device adds the gradient of the last micro-batch again in its P - 1 idle ticks."""
    step, n = seen.steps[0], seen.mesh["pp"]
    layers, m = len(step.ws) // n, len(step.y)
    found = (step.ws - step.out[1].value) / seen.rate
    again = unsharded(step.ws, step.x[-1:], step.y[-1:])[1] / m
    due = (unsharded(step.ws, step.x, step.y)[1] + (n - 1) * again)[-layers:]
    if not np.allclose(found[-layers:], due, rtol=0, atol=1e-3 * np.abs(due).max()):
        raise Failure("this mistake gives other gradients")


@exercise.misconception(
    fails=step_weights,
    gives=last_micro_batch_again,
    breaks="in each of three steps, equal to the results of one device",
)
def step_adds_junk(ws, x, y, *, rate):
    """You add gradients of junk. Add a gradient only in ticks in which the device has a micro-batch. Choose with
    jnp.where."""
    return _stepped(ws, x, y, rate, add=lambda useful, slot, grads, dws: grads + dws)


@exercise.misconception(fails=step_weights, breaks="in each of three steps, equal to the results of one device")
def divided_twice(ws, x, y, *, rate):
    """You divided by M twice. The mean over y.size already covers all micro-batches."""
    return _stepped(ws, x, y, rate, per=lambda y: y.size * y.shape[0])


@exercise.misconception(fails=step_weights, breaks="in each of three steps, equal to the results of one device")
def divided_at_every_add(ws, x, y, *, rate):
    """You divide the running sum by M in every tick, so early gradients are divided again and again. Divide once."""
    per, m = x[0].size, x.shape[0]

    def add(useful, slot, grads, dws):
        return jnp.where(useful, (grads + dws) / m, grads)

    return _stepped(ws, x, y, rate, per=lambda y: per, add=add)


@exercise.misconception(fails=step_weights, breaks="in each of three steps, equal to the results of one device")
def scaled_for_the_log(ws, x, y, *, rate):
    """Your loss is the mean over the batch, but your gradient is the gradient of the sum over micro-batches. Divide by M before the backward pass."""
    return _stepped(ws, x, y, rate, per=lambda y: y[0].size)


@exercise.misconception(fails=step_weights, breaks="in each of three steps, equal to the results of one device")
def last_device_backwards(ws, x, y, *, rate):
    """Your last device begins the backward pass with the last micro-batch, but the other devices begin with the first, so
    a gradient meets the input of a different micro-batch. Use one order on all devices."""
    return _stepped(ws, x, y, rate, at=lambda slot, me, n, m: jnp.where(me == n - 1, m - 1 - slot, slot))


@exercise.misconception(fails=step_weights, breaks="in each of three steps, equal to the results of one device")
def back_as_there(ws, x, y, *, rate):
    """In the backward pass you take micro-batch t - s, as in the forward pass. The backward pass begins at the last device: take micro-batch t - (P - 1 - s)."""
    return _stepped(ws, x, y, rate, back_at=lambda tick, me, n: tick - me)


@exercise.misconception(form_of=back_as_there)
def back_as_there_from_zeros(ws, x, y, *, rate):
    """Like `back_as_there`, but the first received gradients are zeros."""
    zeros = lambda x: jnp.zeros_like(x[0])  # noqa: E731
    return _stepped(ws, x, y, rate, back_at=lambda tick, me, n: tick - me, begin_back=zeros)


@exercise.misconception(fails=step_loss, breaks="in each of three steps, equal to the results of one device")
def last_input_only(ws, x, y, *, rate):
    """You run the backward pass of every micro-batch with the last received input. Each micro-batch needs its own input: keep M inputs."""
    return _stepped(ws, x, y, rate, at=lambda slot, me, n, m: slot * 0 + m - 1)


@exercise.misconception(fails=step_loss, breaks="all micro-batches see the same weights")
def learned_on_the_way(ws, x, y, *, rate):
    """You change the weights after each micro-batch, so the backward pass of the next micro-batch uses different weights than its forward pass. Change the weights once, at the end."""

    def update(useful, ws, dws):
        return ws - jnp.where(useful, rate * dws, 0)

    loss, ws, _ = _step(ws, x, y, rate, update=update)
    return loss, ws


@exercise.misconception(fails=step_loss, breaks="in each of three steps, equal to the results of one device")
def masked_by_a_matmul(ws, x, y, *, rate):
    """A device divides rows of zeros by their length, which gives NaN. Perhaps idle devices compute on zeros, and you mask the result by a factor 0: 0 · NaN is NaN, so choose with jnp.where. Or a device reads a slot of the stash that it never wrote."""

    def keep(useful, a, old):
        return useful * a + (1 - useful) * old

    return _stepped(ws, x, y, rate, held=lambda x: jnp.zeros_like(x[0]), keep=keep)


SAME = "in each of three steps, equal to the results of one device"


@exercise.misconception(fails=step_loss, breaks=SAME)
def loss_of_the_last_alone(ws, x, y, *, rate):
    """Only the last device returns the loss. Sum the loss over pp: the other devices add zeros."""
    return _stepped(ws, x, y, rate, told=lambda loss: loss)


@exercise.misconception(fails=step_loss, breaks=SAME)
def loss_averaged(ws, x, y, *, rate):
    """You averaged the loss over pp, which makes it P times too small. The last device has the whole loss. Use psum: the other devices add zeros."""
    return _stepped(ws, x, y, rate, told=lambda loss: jax.lax.pmean(loss, "pp"))


@exercise.misconception(fails=step_loss, breaks=SAME)
def loss_of_every_stage(ws, x, y, *, rate):
    """You added the errors of all stages to the loss. Only the outputs of the last device are outputs of the model: the other devices add zeros."""
    return _stepped(ws, x, y, rate, counts=lambda useful, last: useful)


@exercise.misconception(
    fails=step_loss, breaks="The loss is the mean of `(output − y)²` over all M micro-batches together"
)
def sum_of_means(ws, x, y, *, rate):
    """Your loss is the sum of the micro-batches' means. The loss is the mean over all M micro-batches: divide the loss and the gradient by M."""
    m = len(y)
    return _stepped(ws, x, y, rate, per=lambda y: y[0].size, told=lambda loss: m * jax.lax.psum(loss, "pp"))


@exercise.misconception(form_of=sum_of_means)
def sum_of_means_for_the_log(ws, x, y, *, rate):
    """Like `sum_of_means`, but the gradient is divided by M."""
    m = len(y)
    return _stepped(ws, x, y, rate, told=lambda loss: m * jax.lax.psum(loss, "pp"))


@exercise.misconception(fails=step_loss, breaks="each device keeps a *stash* of these inputs")
def outputs_kept(ws, x, y, *, rate):
    """Your stash holds outputs of the stage. In the backward pass jax.vjp computes the stage again, from its input: keep the inputs."""
    return _stepped(ws, x, y, rate, keep=lambda useful, a, old: jnp.where(useful, stage(ws, a), old))


@exercise.misconception(fails=step_weights, breaks=SAME)
def half_of_the_gradient(ws, x, y, *, rate):
    """Your gradient is half of the right gradient. The derivative of (output - y)² is 2 · (output - y)."""
    return _stepped(ws, x, y, rate, per=lambda y: 2 * y.size)


@exercise.misconception(fails=step_weights, breaks=SAME)
def errors_on_all_devices(ws, x, y, *, rate):
    """Each device begins with the error of its own output. Only the last device has outputs of the model. The other devices use the gradient that they receive."""

    def from_own_error(ws, a, due, came, last, size):
        return went_back(ws, a, due, came, True, size)

    return _stepped(ws, x, y, rate, go_back=from_own_error)


def _over_pp(reduce, ws, x, y, rate):
    loss, _, grads = _step(ws, x, y, rate)
    return loss, ws - rate * reduce(grads, "pp")


@exercise.misconception(fails=step_weights, breaks=SAME)
def gradients_of_all_stages(ws, x, y, *, rate):
    """You reduced the gradient of ws over pp. Each device has its own layers, so the gradients of different devices belong to different layers. Reduce only the loss."""
    return _over_pp(jax.lax.psum, ws, x, y, rate)


@exercise.misconception(form_of=gradients_of_all_stages)
def gradients_of_all_stages_averaged(ws, x, y, *, rate):
    """Like `gradients_of_all_stages`, with pmean."""
    return _over_pp(jax.lax.pmean, ws, x, y, rate)


@exercise.misconception(fails=step_weights, breaks="w − rate · gradient")
def stepped_uphill(ws, x, y, *, rate):
    """You added the gradient. Subtract it."""
    return _stepped(ws, x, y, -rate)


def all_to_the_next(seen):
    """For `gives`: require two permutes or more, and that all of them send to the next device."""
    hops = [hop.groups for hop in seen.collectives if hop.kind == "permute"]
    if len(hops) < 2 or any(2 * sum(b > a for a, b in pairs) <= len(pairs) for pairs in hops):
        raise Failure("this mistake gives other permutes")


@exercise.misconception(
    fails=step_weights, gives=all_to_the_next, breaks="sends the gradient of its input to the previous\ndevice"
)
def gradients_to_the_next(ws, x, y, *, rate):
    """You send gradients to device s + 1. Device s - 1 needs them: it computed the input of your stage."""
    return _stepped(ws, x, y, rate, hand_on=lambda a, step: jax.lax.ppermute(a, "pp", ring(1)))


@exercise.misconception(fails=step_budget, breaks="permutes, and one all-reduce of the loss")
def handed_on_by_sum(ws, x, y, *, rate):
    """You send by a sum over all devices. For each receiver, all devices but one add zeros. Only the neighbour needs the array: use ppermute."""

    def hand_on(a, step):
        n, me = jax.lax.axis_size("pp"), jax.lax.axis_index("pp")
        return jax.lax.psum(jnp.where(jnp.arange(n)[:, None, None] == me + step, a, 0), "pp")[me]

    return _stepped(ws, x, y, rate, hand_on=hand_on)


def several_arrays_summed(seen):
    """For `gives`: require permutes, and an all-reduce of more than one number."""
    kinds = {c.kind for c in seen.collectives if c.kind == "permute" or c.bytes > 4}
    if kinds != {"permute", "all_reduce"}:
        raise Failure("this mistake gives other collectives")


@exercise.misconception(
    fails=step_budget, gives=several_arrays_summed, breaks="permutes, and one all-reduce of the loss"
)
def outputs_sent_to_all(ws, x, y, *, rate):
    """You all-reduce an array, such as the outputs of the last device. The last device has all that the loss needs: compute the loss there, and all-reduce one number."""
    return _stepped(ws, x.at[0].set(jax.lax.pmean(x[0], "pp")), y, rate)


def summed_in_a_loop(seen):
    """For `gives`: require an all-reduce in a loop, and a permute."""
    sums = [c for c in seen.collectives if c.kind == "all_reduce" and c.rounds.most > 1]
    if not sums or all(c.kind != "permute" for c in seen.collectives):
        raise Failure("this mistake gives other collectives")


@exercise.misconception(fails=step_budget, gives=summed_in_a_loop, breaks="one all-reduce of the loss")
def loss_summed_in_each_tick(ws, x, y, *, rate):
    """You all-reduce the loss in each tick. Add the ticks' losses on each device, and all-reduce the sum once, after the loop."""
    return _stepped(ws, x, y, rate, each=lambda loss: jax.lax.psum(loss, "pp"), told=lambda loss: loss)


@exercise.misconception(fails=step_budget, breaks="no more FLOPs than these ticks need")
def stage_twice_in_a_tick(ws, x, y, *, rate):
    """A tick of your backward pass computes the stage twice: once by calling stage, and once inside jax.vjp. jax.vjp also returns the stage's output: use this output."""

    def twice(ws, a, due, came, last, size):
        error = stage(ws, a) - due
        return error, *jax.vjp(stage, ws, a)[1](jnp.where(last, 2 * error / size, came))

    return _stepped(ws, x, y, rate, go_back=twice)


@exercise.misconception(fails=step_budget, breaks="M + P − 1 ticks in each pass")
def a_tick_too_many(ws, x, y, *, rate):
    """A pass has M + P ticks, one too many. M + P - 1 ticks are enough."""
    return _stepped(ws, x, y, rate, ticks=lambda m, n: m + n)


@exercise.misconception(fails=step_budget, breaks="no more FLOPs than these ticks need")
def back_twice_in_a_tick(ws, x, y, *, rate):
    """Each tick runs the backward pass of a stage twice: from the loss, and from the gradient that arrived. Choose one of the two gradients with jnp.where, then run the backward pass once."""

    def twice(ws, a, due, came, last, size):
        def loss_of(ws, a):
            error = stage(ws, a) - due
            return jnp.sum(error**2) / size, error

        of_loss, error = jax.grad(loss_of, (0, 1), has_aux=True)(ws, a)
        of_came = jax.vjp(stage, ws, a)[1](came)
        return error, *(jnp.where(last, *both) for both in zip(of_loss, of_came, strict=True))

    return _stepped(ws, x, y, rate, go_back=twice)


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


@exercise.misconception(fails=step_budget, breaks="no more FLOPs than these ticks need")
def rounding_errors_corrected(ws, x, y, *, rate):
    """You wrote a matmul as a loop that corrects the rounding error of each addition. These corrections are three more operations for each term of a sum. Use `@`, which is exact enough."""
    return _stepped(ws, x, y, rate, apply=stage_with_corrected_sums)


@exercise.misconception(fails=step_memory, breaks="one sum of gradients")
def gradients_of_every_micro_batch(ws, x, y, *, rate):
    """You need a stash of the stage's inputs and one sum of gradients, but you keep more. Either you keep a gradient of the weights for every micro-batch, or you keep activations inside the layers. Add each gradient to one running sum, and let jax.vjp compute the activations again."""

    def begin(ws):
        return jnp.zeros((x.shape[0], *ws.shape))

    def add(useful, slot, kept, dws):
        return kept.at[slot].set(jnp.where(useful, dws, kept[slot]))

    loss, _, kept = _step(ws, x, y, rate, begin=begin, add=add)
    return loss, ws - rate * kept.sum(0)


def permutes_transposed(seen):
    """For `gives`: require a permute that JAX made as the transpose of a permute."""
    if not any(hop.kind == "permute" and hop.transposed for hop in seen.collectives):
        raise Failure("this mistake gives other permutes")


@exercise.misconception(
    fails=step_memory, gives=permutes_transposed, breaks=["one stash of M inputs", "one tick's arrays"]
)
def left_to_jax(ws, x, y, *, rate):
    """You let JAX differentiate the whole pipeline. JAX keeps arrays of every tick: the activations inside every layer or, with jax.checkpoint around stage, more than one input. Write the ticks of the backward pass yourself. Keep only the inputs of the stage, and compute the activations again with jax.vjp."""

    def loss_of(ws):
        n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
        held, loss = x[0], 0.0
        for tick in range(m + n - 1):
            made = stage(ws, jnp.where(me == 0, x[min(tick, m - 1)], held))
            if tick >= n - 1:
                error = made - y[tick - n + 1]
                loss += jnp.where(me == n - 1, jnp.sum(error**2) / y.size, 0)
            held = jax.lax.ppermute(made, "pp", [(s, s + 1) for s in range(n - 1)])
        return loss

    loss, grads = jax.value_and_grad(loss_of)(ws)
    return jax.lax.psum(loss, "pp"), ws - rate * grads


@exercise.alternative(of=gpipe_step)
def last_first(ws, x, y, *, rate):
    """On all devices the backward pass runs from the last micro-batch to the first."""
    return _stepped(ws, x, y, rate, at=lambda slot, me, n, m: m - 1 - slot)


@exercise.alternative(of=gpipe_step)
def round_the_ring(ws, x, y, *, rate):
    """Permutes wrap around, and junk in bubbles is NaN, which jnp.where excludes."""

    def hand_on(a, step):
        n = jax.lax.axis_size("pp")
        return jax.lax.ppermute(a, "pp", [(s, (s + step) % n) for s in range(n)])

    return _stepped(ws, x, y, rate, hand_on=hand_on, held=lambda x: jnp.zeros_like(x[0]))


@exercise.alternative(of=gpipe_step)
def unrolled(ws, x, y, *, rate):
    """Python loops unroll every tick. The stash has one input for each tick, also for ticks in the bubble."""
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
    a, kept = x[0], []
    for tick in range(m + n - 1):
        kept.append(jnp.where(me == 0, x[min(tick, m - 1)], a))
        a = jax.lax.ppermute(stage(ws, kept[-1]), "pp", ring(1))
    d, loss, grads, stash = x[0], 0.0, jnp.zeros_like(ws), jnp.stack(kept)
    for tick in range(m + n - 1):
        mine = tick - (n - 1 - me)
        slot, useful = jnp.clip(mine, 0, m - 1), (mine >= 0) & (mine < m)
        out, pull = jax.vjp(stage, ws, stash[slot + me])
        error = out - y[slot]
        dws, d = pull(jnp.where(me == n - 1, 2 * error / y.size, d))
        loss += jnp.where(useful & (me == n - 1), jnp.sum(error**2) / y.size, 0)
        d, grads = jax.lax.ppermute(d, "pp", ring(-1)), grads + jnp.where(useful, dws, 0)
    return jax.lax.psum(loss, "pp"), ws - rate * grads


@exercise.misconception(of=gpipe_stash)
def stash_of_stages(M, P, L, T, D):
    """You counted P micro-batches. All M micro-batches finish the forward pass before the first micro-batch starts its backward pass."""
    return P * 2 * T * D


@exercise.misconception(of=gpipe_stash)
def stash_of_layers(M, P, L, T, D):
    """You kept the input of every layer. The backward pass computes the activations inside a stage again."""
    return M * L * 2 * T * D


@exercise.misconception(of=gpipe_stash)
def stash_of_all_devices(M, P, L, T, D):
    """You counted the stashes of all devices. The question is about one device."""
    return P * M * 2 * T * D


@exercise.misconception(of=gpipe_stash)
def stash_of_ticks(M, P, L, T, D):
    """You kept the input of every tick. In P - 1 ticks the input is junk."""
    return (M + P - 1) * 2 * T * D


@exercise.misconception(of=gpipe_step_time)
def step_without_again(chip, M, P, T, D):
    """You left out the recomputation. In the backward pass, each matmul of the forward pass costs three: one to compute it again, and two for the gradients."""
    return (M + P - 1) * 3 * matmul_time(3 * 2 * T * D**2, chip)


@exercise.misconception(of=gpipe_step_time)
def step_without_bubbles(chip, M, P, T, D):
    """You counted M ticks in each pass. After M ticks the last micro-batch still has P - 1 devices to pass."""
    return M * 4 * matmul_time(3 * 2 * T * D**2, chip)


@exercise.misconception(of=gpipe_step_time)
def step_one_way(chip, M, P, T, D):
    """You counted the forward pass alone. The backward pass costs three times as much."""
    return (M + P - 1) * matmul_time(3 * 2 * T * D**2, chip)


@exercise.misconception(of=gpipe_step_time)
def step_back_as_there(chip, M, P, T, D):
    """You let the backward pass take as long as the forward pass. The backward pass has three times as many matmuls."""
    return (M + P - 1) * 2 * matmul_time(3 * 2 * T * D**2, chip)


@exercise.misconception(of=gpipe_step_time)
def step_with_one_tick_more(chip, M, P, T, D):
    """You counted M + P ticks in each pass. The last device to start waits for P - 1 ticks and needs M ticks: M + P - 1 ticks in all."""
    return (M + P) * 4 * matmul_time(3 * 2 * T * D**2, chip)


exercise.scenario(gpipe_stash, lambda M, P, L, T, D: Scenario(mesh={"pp": P}, arrays=[((M, T, D), ())]))
exercise.scenario(
    gpipe_step_time,
    lambda chip, M, P, T, D: Scenario(chip=chip, mesh={"pp": P}, arrays=[((3 * P, D, D), PartitionSpec("pp"))]),
)
