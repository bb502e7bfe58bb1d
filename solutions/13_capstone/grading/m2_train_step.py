"""M2: calls, checks, misconceptions and alternatives."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario, array, like, normal
from grader.expect import (
    Failure,
    between,
    expect_close,
    expect_flops,
    expect_memory,
    expect_spec,
    expect_step_time,
    expect_traffic,
    needed,
)
from grader.hardware import CHIPS, matmul_time
from m2_train_step import (
    LIMIT,
    PARAMS,
    RATE,
    ROWS,
    attention,
    block_overlaps_from,
    block_step,
    exercise,
    norm,
    on_device,
    overlapped,
    step_times,
    train_step,
)

# -- what is asked -----------------------------------------------------------------------------


@exercise.helper
def weights(rng, shape):
    """Draw weights so small that a matmul's results are about 1."""
    return rng.standard_normal(shape) / math.prod(shape[:-1]) ** 0.5


@exercise.helper
def of_heads(rng, shape):
    """Draw weights for which scores differ by several units."""
    return 2 * rng.standard_normal(shape) / shape[0] ** 0.5


@exercise.helper
def near(rng, shape):
    """Draw target outputs for which ‖g‖ is less than LIMIT, but ‖g‖² is more than LIMIT. In most of `steps`, ‖g‖ is
    more than LIMIT/2."""
    return 32 * rng.standard_normal(shape)


@exercise.helper
def far(rng, shape):
    """Draw target outputs for which ‖g‖ is more than 2·LIMIT."""
    return 90 * rng.standard_normal(shape)


@exercise.helper
def near_or_far(rng, shape):
    """Draw target outputs for which ‖g‖ is less than LIMIT in `work`. In `slab` it is less than LIMIT in some steps, and
    less than 2·LIMIT in most steps."""
    return 20 * rng.standard_normal(shape)


@exercise.helper
def params(dtype="float32"):
    """Return the block's parameters, as arrays to draw."""
    shapes = {
        "before": ("D",), "qkv": ("D", 3, "H", "d"), "out": ("H", "d", "D"),
        "between": ("D",), "up": ("D", "F"), "down": ("F", "D"),
    }  # fmt: skip
    draws = {"qkv": of_heads, "out": weights, "up": weights, "down": weights}
    return {
        name: array(*shape, draw=draws[name], spec=PARAMS[name], dtype=dtype)
        if name in draws
        else normal(*shape, dtype=dtype)
        for name, shape in shapes.items()
    }


rows, goal = normal("B", "T", "D", spec=ROWS), array("B", "T", "D", draw=near_or_far, spec=ROWS)
CUBE = {"dp": 2, "tp": 2, "sp": 2}
OUT = (like("params"), "loss", "norm")
steps = exercise.call(
    train_step, params=params(), x=rows, y=array("B", "T", "D", draw=near, spec=ROWS), meshes=[CUBE], returns=OUT, steps=3,
    # With few positions and a large D, a second gather of K and V sends less than a needless sum does, and rows
    # are larger than K and V.
    dims={"B": 6, "T": 4, "D": 336, "H": 8, "d": 2, "F": 58},
    hidden_dims={"B": 10, "T": 6, "D": 600, "H": 2, "d": 3, "F": 70},
)  # fmt: skip
far_step = exercise.call(
    train_step, params=params(), x=rows, y=array("B", "T", "D", draw=far, spec=ROWS), meshes=[CUBE], returns=OUT,
    dims={"B": 6, "T": 10, "D": 24, "H": 50, "d": 3, "F": 22},
    hidden_dims={"B": 10, "T": 6, "D": 33, "H": 42, "d": 5, "F": 26},
)  # fmt: skip
slab = exercise.call(
    train_step, params=params(), x=rows, y=goal, meshes=[{"dp": 1, "tp": 4, "sp": 2}], returns=OUT, steps=3,
    dims={"B": 2, "T": 6, "D": 10, "H": 4, "d": 3, "F": 12},
    hidden_dims={"B": 3, "T": 10, "D": 11, "H": 12, "d": 5, "F": 20},
)  # fmt: skip
work = exercise.call(
    train_step, params=params(), x=rows, y=goal, meshes=[{"dp": 1, "tp": 1, "sp": 6}], returns=OUT,
    dims={"B": 2, "T": 24, "D": 20, "H": 4, "d": 11, "F": 6},
    hidden_dims={"B": 3, "T": 42, "D": 30, "H": 5, "d": 13, "F": 9},
)  # fmt: skip
narrow = exercise.call(
    train_step, params=params("bfloat16"), x=normal("B", "T", "D", spec=ROWS, dtype="bfloat16"),
    y=array("B", "T", "D", draw=near, spec=ROWS, dtype="bfloat16"), meshes=[CUBE], returns=OUT,
    # F is large. So a sum of one matrix's gradient in float32, instead of bfloat16, sends more additional bytes than a
    # second gather of K and V does.
    dims={"B": 6, "T": 22, "D": 8 * 19, "H": 26, "d": 17, "F": 2 * 97},
    hidden_dims={"B": 10, "T": 26, "D": 8 * 23, "H": 22, "d": 19, "F": 2 * 101},
)  # fmt: skip
timed = exercise.timing(
    narrow, on="v5p:2x2x2",
    dims={"B": 6, "T": 8192, "D": 6400, "H": 50, "d": 128, "F": 25600},
    hidden_dims={"B": 10, "T": 4096, "D": 5376, "H": 42, "d": 128, "F": 21504},
)  # fmt: skip


@exercise.helper
def attended(q, k, v):
    """Return the weights [B, H, T, T] of causal attention."""
    scores = np.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    scores[..., np.triu(np.ones(scores.shape[-2:], bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@exercise.helper
def on_one_device(params, x):
    """Return the block's result in float64, and a function from its cotangent to the parameters' gradients."""
    p = {name: a.astype(np.float64) for name, a in params.items()}
    x = x.astype(np.float64)
    rms = np.sqrt((x**2).mean(-1, keepdims=True))
    n = x / rms * p["before"]
    q, k, v = np.einsum("btd,dchk->cbthk", n, p["qkv"], optimize=True)
    w = attended(q, k, v)
    heads = np.einsum("bhts,bshd->bthd", w, v)
    middle = x + np.einsum("bthk,hkd->btd", heads, p["out"], optimize=True)
    rms2 = np.sqrt((middle**2).mean(-1, keepdims=True))
    n2 = middle / rms2 * p["between"]
    before = n2 @ p["up"]
    open_ = 1 / (1 + np.exp(-before))
    hidden = before * open_

    def of_norm(dn, unit, scale, rms):
        du = dn * scale
        return (du - unit * (du * unit).mean(-1, keepdims=True)) / rms, (dn * unit).sum((0, 1))

    def back(dy):
        grads = {"down": np.einsum("btf,btd->fd", hidden, dy, optimize=True)}
        dbefore = dy @ p["down"].T * open_ * (1 + before * (1 - open_))
        grads["up"] = np.einsum("btd,btf->df", n2, dbefore, optimize=True)
        dx, grads["between"] = of_norm(dbefore @ p["up"].T, middle / rms2, p["between"], rms2)
        dx = dx + dy
        grads["out"] = np.einsum("bthk,btd->hkd", heads, dx, optimize=True)
        dheads = np.einsum("btd,hkd->bthk", dx, p["out"], optimize=True)
        dw = np.einsum("bthd,bshd->bhts", dheads, v)
        dscores = w * (dw - (dw * w).sum(-1, keepdims=True)) / q.shape[-1] ** 0.5
        dqkv = np.stack(
            [
                np.einsum("bhts,bshd->bthd", dscores, k),
                np.einsum("bhts,bthd->bshd", dscores, q),
                np.einsum("bhts,bthd->bshd", w, dheads),
            ]
        )
        grads["qkv"] = np.einsum("btd,cbthk->dchk", n, dqkv, optimize=True)
        _, grads["before"] = of_norm(
            np.einsum("cbthk,dchk->btd", dqkv, p["qkv"], optimize=True), x / rms, p["before"], rms
        )
        return grads

    return middle + hidden @ p["down"], back


@exercise.helper
def step_on_one_device(step):
    """Return the loss, the norm and the changes of the parameters."""
    out, back = on_one_device(step.params, step.x)
    grads = back(2 * (out - step.y) / out.size)
    length = np.sqrt(sum((g**2).sum() for g in grads.values()))
    return ((out - step.y) ** 2).mean(), length, {n: -RATE * g * min(1, LIMIT / length) for n, g in grads.items()}


@exercise.helper
def expect_parameters(seen):
    """Compare the parameters after each step with those of one device, and their layouts with PARAMS."""
    for step in seen.steps or [seen]:
        changes = step_on_one_device(step)[2]
        expect_close(step.out[0], {n: p + changes[n] for n, p in step.params.items()})
        expect_spec(step.out[0], PARAMS)


@exercise.helper
def expect_numbers(seen):
    """Compare loss and norm of each step with those of one device."""
    for step in seen.steps or [seen]:
        expect_close(step.out[1:], step_on_one_device(step)[:2])
        expect_spec(step.out[1:], (P(), P()))


@exercise.helper
def matrices(params):
    """Return the weights by name, with q, k and v separate."""
    qkv = np.moveaxis(params["qkv"], 1, 0)
    return dict(zip("qkv", qkv, strict=True)) | {name: params[name] for name in ("out", "up", "down")}


@exercise.helper
def expect_changes(seen):
    """Require that weights change as on one device. In bfloat16 a step changes a number by about its rounding
    error, so `expect_close` tolerates wrong changes. Over all numbers of an array the rounding errors average out."""
    before, due = matrices(seen.params), matrices(step_on_one_device(seen)[2])
    after = matrices({name: array.value.astype(np.float64) for name, array in seen.out[0].items()})
    for name, change in due.items():
        error = np.linalg.norm(after[name] - before[name] - change)
        if error > np.linalg.norm(change) / 2 + np.linalg.norm(before[name]) / 2**9:
            raise Failure(f"the weights of {name} do not change as on one device: do they get all of their gradient?")


@exercise.check(steps, points=0.25, public=True)
def step_loss(seen):
    """the loss of each of three steps equals that of one device"""
    for step in seen.steps:
        expect_close(step.out[1], step_on_one_device(step)[0])
        expect_spec(step.out[1], P())


@exercise.check(steps, points=0.25, public=True)
def step_norm(seen):
    """the norm of each of three steps equals that of one device"""
    for step in seen.steps:
        expect_close(step.out[2], step_on_one_device(step)[1])
        expect_spec(step.out[2], P())


@exercise.check(steps, points=0.5, public=True)
def step_params(seen):
    """the parameters after each of three steps with a small gradient equal those of one device"""
    expect_parameters(seen)


@exercise.check(far_step, points=0.25, public=True, after=[step_norm, step_params])
def step_clipped(seen):
    """norm and parameters of a step with a large gradient equal those of one device"""
    expect_close(seen.out[2], step_on_one_device(seen)[1])
    expect_parameters(seen)


@exercise.check(slab, points=0.25, after=[step_loss, step_clipped])
def step_slab(seen):
    """on tp=4, dp=1 loss, norm and parameters equal those of one device"""
    expect_numbers(seen)
    expect_parameters(seen)


@exercise.check(narrow, points=0.25, public=True, after=step_params)
def step_narrow(seen):
    """bfloat16 (the timed dtype): parameters equal those of one device"""
    expect_parameters(seen)
    expect_changes(seen)


@exercise.check(narrow, points=0.25, public=True, after=[step_loss, step_norm, step_narrow])
def step_numbers(seen):
    """bfloat16: loss and norm equal those of one device"""
    expect_numbers(seen)


# -- budgets -----------------------------------------------------------------------------------


@exercise.helper
def sizes_of(seen):
    """Return the sizes of a device's rows, K, scores and parameters."""
    d, mesh = seen.dims, seen.mesh
    positions = d["B"] * d["T"] // (mesh["dp"] * mesh["sp"])
    heads, hidden = d["H"] // mesh["tp"], d["F"] // mesh["tp"]
    cut = 4 * d["D"] * heads * d["d"] + 2 * d["D"] * hidden
    return positions * d["D"], positions * heads * d["d"], positions * heads * d["T"], cut + 2 * d["D"]


@exercise.helper
def due_over(seen, itemsize, gathers, reduces):
    """Return the bytes that a device sends over tp, over sp, and over dp and sp together, for the given counts of
    gathers of K and all-reduces of rows, and one sum of parameters. Half of the all-reduces of rows are in the backward
    pass, where a program may also sum a scale's gradient over tp."""
    rows, keys, _, parameters = sizes_of(seen)
    tp, sp, both = seen.mesh["tp"], seen.mesh["sp"], seen.mesh["dp"] * seen.mesh["sp"]
    over_tp = reduces * (tp - 1) / tp * (2 * rows + seen.dims["D"])
    return (itemsize * n for n in (over_tp, gathers * (sp - 1) * keys, 2 * (both - 1) / both * parameters))


@exercise.helper
def with_joint_sums(seen, itemsize, tp, both):
    """Return the budgets over tp, and over dp and sp, of a program that sums gradients of `before` and `between` over
    all three axes at once. Such an all-reduce replaces one over tp and one over dp and sp, and counts for both."""
    n, k = seen.mesh["tp"], seen.mesh["dp"] * seen.mesh["sp"]
    share, over_tp, over_both = (2 * (size - 1) / size for size in (n * k, n, k))
    joint = seen.sends(seen.only(axis="tp").only(axis="sp").collectives).most
    replaced = min(joint / share, itemsize * 2 * seen.dims["D"])
    return tp + replaced * (share - over_tp), both + replaced * (share - over_both)


@exercise.helper
def expect_sent(seen, itemsize):
    """Require at most the bytes of `due_over` over tp, over dp, and over dp or sp, besides single numbers and padding."""
    rows, keys, gradients = due_over(seen, itemsize, 4, 3)  # x needs no gradient, and K and V may be gathered once
    tp, sp, _ = due_over(seen, itemsize, 6, 4)
    tp, both = with_joint_sums(seen, itemsize, tp, gradients)
    few = 32 * itemsize
    expect_traffic(seen, at_most=needed(rows, 5 / 3 * rows, at=tp + few), axis="tp")  # wrong: five all-reduces of rows
    expect_traffic(seen, at_most=needed(both, 2 * both, at=both + few), axis="dp")
    # Without K and V, wrong / right is (2 - 1/a - 1/b) / (1 - 1/(a b)) on dp=a, sp=b: 4/3 on 2 · 2. With a = 2 this ratio
    # is below 3/2 for every b. On 8 devices 10/7 (2 · 4, tp=1) is the largest; 3 · 3 devices would give 3/2.
    near = "a sum over dp and then over sp sends 2 · 1/2 + 2 · 1/2 of the gradients, in place of 2 · 3/4"
    budget = needed(keys + gradients, keys + 4 / 3 * gradients, at=sp + both + few, near=near)
    expect_traffic(seen, at_most=budget, axis=("dp", "sp"))


@exercise.check(steps, points=0.25, after=step_params)
def step_traffic(seen):
    """a step sends no more than the block's forward and backward pass, and single numbers"""
    expect_sent(seen, 4)


@exercise.check(narrow, points=0.25, after=[step_narrow, step_traffic])
def step_bytes(seen):
    """bfloat16: a step sends half of the bytes that it sends in float32"""
    expect_sent(seen, 2)


@exercise.helper
def work_of(seen):
    """Return the FLOPs of a device's matmuls with parameters, and of its matmuls with other positions, in the forward
    pass."""
    rows, _, scores, parameters = sizes_of(seen)
    return 2 * rows * (parameters / seen.dims["D"] - 2), 4 * scores * seen.dims["d"]


@exercise.check(work, points=0.25, after=step_params)
def step_work(seen):
    """on sp=6 a device does at most the matmuls of four forward passes"""
    expect_parameters(seen)
    dense, scored = work_of(seen)
    norms = 15 * sizes_of(seen)[0]  # a multiplication of two numbers counts as part of a matmul
    right = 3 * (dense + scored + norms)
    every_position = 3 * (dense + seen.mesh["sp"] * scored + norms)  # wrong: a device attends from all positions
    expect_flops(seen, at_most=between(right, every_position, at=5.5 * (dense + scored + norms)))


@exercise.check([narrow, timed], points=0.25, public=True, after=step_narrow)
def step_same(small, large):
    """at real sizes the program is unchanged, runs in shard_map, and does the necessary work"""
    work, tp, rows = sum(work_of(large)), large.mesh["tp"], sizes_of(large)[0]
    every_unit = (
        work + 4 * rows * (tp - 1) / tp * large.dims["F"]
    )  # wrong: a device does the MLP of all devices along tp
    expect_flops(large, at_most=between(3 * work, 3 * every_unit, at=4.1 * work))
    for seen in (small, large):
        dense, scored = work_of(seen)
        last = 1 - 1 / (2 * seen.mesh["sp"])  # the scores that the last positions need
        expect_flops(seen, at_least=3 * (dense + scored * (1 - last)))
        if seen.dot_flops.most < 3 * (dense + last * scored):
            raise Failure("a query does not attend to all positions before it")
        sent = sum(due_over(seen, 2, 4, 3))  # x needs no gradient, which saves an all-reduce
        expect_traffic(seen, at_least=0.99 * sent)


@exercise.check(timed, points=0.75, public=True, after=step_same)
def step_memory(seen):
    """a device holds at most parameters, gradients, rows and three arrays of its scores"""
    rows, _, scores, parameters = sizes_of(seen)
    head_by_head = 2 * parameters + 9 * rows  # scores of one head at a time
    rest = 2 * parameters + 6 * rows
    whole, widened = rest + 2 * scores, rest + 4 * scores  # scores and their weights; then both in float32
    most = between(2 * head_by_head, 2 * widened, styles=whole / head_by_head, at=2 * (rest + 3.1 * scores))
    expect_memory(seen, at_most=most, by="program")


@exercise.check(timed, points=0.75, public=True, after=[step_same, step_work])
def step_time(seen):
    """a step takes at most twice the time of its matmuls, plus the time of its collectives"""
    chip = CHIPS["v5p"]
    matmuls = matmul_time(3 * sum(work_of(seen)), chip)
    sent = sum(due_over(seen, 2, 6, 4)) / chip.ici
    # Right: part of the communication is exposed. Wrong: the matmuls run at the highest precision.
    right, wrong = 1.43 * matmuls, 6.6 * matmuls
    expect_step_time(seen, at_most=between(right, wrong, at=2 * matmuls + sent))


# -- right, in other styles --------------------------------------------------------------------


def projected(params, x):
    """Return q, k and v of a device's heads."""
    return jnp.einsum("btd,dchk->cbthk", norm(x, params["before"]), params["qkv"])


def finished(params, x, heads, reduce=lambda part: jax.lax.psum(part, "tp")):
    """Compute the rest of the block, after attention."""
    x = x + reduce(jnp.einsum("bthk,hkd->btd", heads, params["out"]))
    return x + reduce(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"])


def gathered(a):
    """Return K, V or q of all positions."""
    return jax.lax.all_gather(a, "sp", axis=1, tiled=True)


def attend_gathered(q, k, v, first=None):
    """Return attention from the positions of q, or from position ``first`` on, to gathered keys."""
    first = jax.lax.axis_index("sp") * q.shape[1] if first is None else first
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    seen = jnp.arange(k.shape[1]) <= (first + jnp.arange(q.shape[1]))[:, None]
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)), v)


def with_attention(attend, **more):
    """Return one device's function with the given attention."""
    return lambda params, x: finished(params, x, attend(*projected(params, x)), **more)


def stepping(
    mesh, loss_and_grads, check_vma=True, norm_of=None, new_of=None, loss_of=None, returned=lambda length: length
):
    """Build a train_step from the given parts; the other parts are the solution's."""

    def usual_norm(squares):
        whole = squares["before"] + squares["between"]
        return jnp.sqrt(jax.lax.psum(sum(squares.values()) - whole, "tp") + whole)

    def local(params, x, y):
        loss, grads = loss_and_grads(params, x, y)
        length = (norm_of or usual_norm)({name: jnp.sum(g**2) for name, g in grads.items()})
        factor = {name: jnp.minimum(1, LIMIT / length) for name in grads} if new_of is None else new_of(grads, length)
        new = {name: p - RATE * grads[name] * factor[name] for name, p in params.items()}
        return new, (loss_of or (lambda loss: jax.lax.psum(loss, ("dp", "sp"))))(loss), returned(length)

    specs = {"in_specs": (PARAMS, ROWS, ROWS), "out_specs": (PARAMS, P(), P())}
    return jax.shard_map(local, mesh=mesh, check_vma=check_vma, **specs)


def usual(forward=on_device, of_all=lambda y: y.size * jax.lax.axis_size(("dp", "sp"))):
    """Return a device's part of the loss, and the gradients."""

    def found(params, x, y):
        return jax.value_and_grad(lambda params: jnp.sum((forward(params, x) - y) ** 2) / of_all(y))(params)

    return found


def ring(q, k, v):
    """Ring attention: K and V go round sp. The backward pass computes each round again."""
    n, me, rows = jax.lax.axis_size("sp"), jax.lax.axis_index("sp"), jnp.arange(q.shape[1])
    there = [(i, (i + 1) % n) for i in range(n)]

    @jax.checkpoint
    def fold(state, q, k, v, theirs):
        top, mass, total = state
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
        seen = theirs * len(rows) + rows <= (me * len(rows) + rows)[:, None]
        scores = jnp.where(seen, scores, -jnp.inf)
        largest = jnp.maximum(top, scores.max(-1))
        weights, scale = jnp.exp(scores - largest[..., None]), jnp.exp(top - largest)
        more = jnp.einsum("bhts,bshd->bhtd", weights, v)
        return largest, mass * scale + weights.sum(-1), total * scale[..., None] + more

    rest = q[..., 0].swapaxes(1, 2) * 0
    state = rest - jnp.inf, rest, q.swapaxes(1, 2) * 0
    for hop in range(n):
        state = fold(state, q, k, v, (me - hop) % n)
        k, v = (k, v) if hop == n - 1 else jax.lax.ppermute((k, v), "sp", there)
    return (state[2] / state[1][..., None]).swapaxes(1, 2)


@exercise.alternative()
def attention_made_again(params, x, y, *, mesh):
    """With a checkpoint around attention, the backward pass gathers K and V again, in one array."""

    @jax.checkpoint
    def attend(q, k, v):
        k, v = jax.lax.all_gather(jnp.stack([k, v]), "sp", axis=2, tiled=True)
        n, rows = k.shape[1], q.shape[1]
        seen = jnp.tri(n, dtype=bool)
        own = jax.lax.dynamic_slice_in_dim(seen, jax.lax.axis_index("sp") * rows, rows)
        scores = jnp.where(own, jnp.einsum("bthd,bshd->bhts", q * q.shape[-1] ** -0.5, k), -1e30)
        weights = jnp.exp(scores - jax.lax.stop_gradient(scores.max(-1, keepdims=True)))
        return jnp.einsum("bhts,bshd->bthd", weights / weights.sum(-1, keepdims=True), v)

    return stepping(mesh, usual(with_attention(attend)))(params, x, y)


@exercise.alternative()
def head_by_head(params, x, y, *, mesh):
    """Attention in a loop over heads with a checkpoint, which holds the scores of one head at a time."""

    def attend(q, k, v):
        k, v = (jax.lax.all_gather(a, "sp", axis=1, tiled=True) for a in (k, v))
        here = jax.lax.axis_index("sp") * q.shape[1] + jnp.arange(q.shape[1])

        @jax.checkpoint
        def one(qkv):
            q, k, v = qkv
            scores = jnp.einsum("btd,bsd->bts", q, k) / q.shape[-1] ** 0.5
            weights = jax.nn.softmax(jnp.where(jnp.arange(k.shape[1]) <= here[:, None], scores, -jnp.inf))
            return weights @ v

        return jnp.moveaxis(jax.lax.map(one, tuple(jnp.moveaxis(a, 2, 0) for a in (q, k, v))), 0, 2)

    return stepping(mesh, usual(with_attention(attend)))(params, x, y)


@exercise.alternative()
def step_with_a_ring(params, x, y, *, mesh):
    """Ring attention; the backward pass computes the blocks of scores again."""
    return stepping(mesh, usual(with_attention(ring)))(params, x, y)


def f_and_g():
    """Return Megatron's operators f and g over tp, as in G2."""
    f, g = jax.custom_vjp(lambda x: x), jax.custom_vjp(lambda x: jax.lax.psum(x, "tp"))
    f.defvjp(lambda x: (x, None), lambda _, ct: (jax.lax.psum(ct, "tp"),))
    g.defvjp(lambda x: (jax.lax.psum(x, "tp"), None), lambda _, ct: (ct,))
    return f, g


def by_hand(params, x, f, g):
    """The block with f and g."""
    q, k, v = jnp.einsum("btd,dchk->cbthk", f(norm(x, params["before"])), params["qkv"])
    x = x + g(jnp.einsum("bthk,hkd->btd", attention(q, k, v), params["out"]))
    return x + g(jax.nn.silu(f(norm(x, params["between"])) @ params["up"]) @ params["down"])


@exercise.alternative()
def without_types(params, x, y, *, mesh):
    """With check_vma=False, f and g are written by hand, and one flat all-reduce sums all gradients."""

    def found(params, x, y):
        loss, grads = usual(lambda params, x: by_hand(params, x, *f_and_g()))(params, x, y)
        flat, back = ravel_pytree(grads)
        return loss, back(jax.lax.psum(flat, ("dp", "sp")))

    def norm_of(squares):
        n = jax.lax.axis_size("tp")
        each = [s / n if name in ("before", "between") else s for name, s in squares.items()]
        return jax.lax.psum(sum(each), "tp") ** 0.5

    return stepping(mesh, found, check_vma=False, norm_of=norm_of)(params, x, y)


@exercise.alternative()
def scattered_and_gathered(params, x, y, *, mesh):
    """With check_vma=False, a reduce-scatter and a gather replace each all-reduce of rows and gradients."""

    def found(params, x, y):
        f = f_and_g()[0]
        g = jax.custom_vjp(lambda part: whole(part, "tp"))
        g.defvjp(lambda part: (whole(part, "tp"), None), lambda _, ct: (ct,))
        loss, grads = usual(lambda params, x: by_hand(params, x, f, g))(params, x, y)
        return loss, jax.tree.map(lambda g: whole(g, ("dp", "sp")), grads)

    def whole(part, axes):
        n = jax.lax.axis_size(axes)
        flat = jnp.pad(part.ravel(), (0, -part.size % n))
        summed = jax.lax.all_gather(jax.lax.psum_scatter(flat, axes, tiled=True), axes, tiled=True)
        return summed[: part.size].reshape(part.shape)

    return stepping(mesh, found, check_vma=False)(params, x, y)


@exercise.alternative()
def matmuls_computed_again(params, x, y, *, mesh):
    """A checkpoint keeps only the results of collectives, so the backward pass computes all matmuls again."""
    names = "collective"

    def attend(q, k, v):
        return attend_gathered(q, *(checkpoint_name(gathered(a), names) for a in (k, v)))

    local = with_attention(attend, reduce=lambda part: checkpoint_name(jax.lax.psum(part, "tp"), names))
    kept = jax.checkpoint_policies.save_only_these_names(names)
    return stepping(mesh, usual(jax.checkpoint(local, policy=kept)))(params, x, y)


def scales_cast(params):
    """Return the parameters with scales cast to vary over tp, so that JAX sums their gradients over tp."""
    return params | {name: jax.lax.pcast(params[name], "tp", to="varying") for name in ("before", "between")}


@exercise.alternative()
def scales_summed_at_once(params, x, y, *, mesh):
    """Both norms vary over tp, so JAX sums the gradient of each scale over all three axes with one all-reduce."""

    def forward(params, x):
        wide = lambda x: jax.lax.pcast(x, "tp", to="varying")  # noqa: E731
        q, k, v = jnp.einsum("btd,dchk->cbthk", norm(wide(x), params["before"]), params["qkv"])
        x = x + jax.lax.psum(jnp.einsum("bthk,hkd->btd", attention(q, k, v), params["out"]), "tp")
        hidden = jax.nn.silu(norm(wide(x), params["between"]) @ params["up"])
        return x + jax.lax.psum(hidden @ params["down"], "tp")

    return stepping(mesh, usual(forward))(params, x, y)


@exercise.alternative()
def means_of_means(params, x, y, *, mesh):
    """The loss is a device's mean divided by the number of devices with different rows; the norm uses optax's formula;
    scales are cast."""

    def found(params, x, y):
        n = jax.lax.axis_size("dp") * jax.lax.axis_size("sp")

        def mean_of(params):
            return jnp.mean((on_device(scales_cast(params), x) - y) ** 2)

        loss, grads = jax.value_and_grad(mean_of)(params)
        return loss, jax.tree.map(lambda g: g / n, grads)

    def new_of(grads, length):
        return {name: jnp.where(length < LIMIT, 1, LIMIT / length) for name in grads}

    return stepping(mesh, found, new_of=new_of, loss_of=lambda loss: jax.lax.pmean(loss, ("dp", "sp")))(params, x, y)


# -- misconceptions ----------------------------------------------------------------------------


@exercise.misconception(fails=step_loss, breaks="the mean over the whole batch")
def loss_averaged(params, x, y, *, mesh):
    """You divided by the count of all numbers, and then averaged over devices. Add these shares of the loss: psum."""
    return stepping(mesh, usual(), loss_of=lambda loss: jax.lax.pmean(loss, ("dp", "sp")))(params, x, y)


@exercise.misconception(fails=step_norm, breaks="over all parameters, each counted once")
def norm_counts_copies(params, x, y, *, mesh):
    """You summed all squares over tp. `before` and `between` are whole on every device along tp, so you counted each
    copy."""
    return stepping(mesh, usual(), norm_of=lambda squares: jnp.sqrt(jax.lax.psum(sum(squares.values()), "tp")))(
        params, x, y
    )


@exercise.misconception(fails=step_slab, breaks="the four rules above")
def two_copies(params, x, y, *, mesh):
    """You assumed two devices along tp. A parameter that is not cut has as many copies as there are devices along
    tp."""

    def norm_of(squares):
        copies = (squares["before"] + squares["between"]) / 2
        return jnp.sqrt(jax.lax.psum(sum(squares.values()) - copies, "tp"))

    return stepping(mesh, usual(), norm_of=norm_of)(params, x, y)


@exercise.misconception(fails=step_norm)
def norm_of_a_device(params, x, y, *, mesh):
    """Each device clipped by the norm of its own part, so copies of a parameter differ after the step. Sum the squares
    of cut parameters over tp."""

    def found(params, x, y):
        loss, grads = usual(lambda params, x: by_hand(params, x, *f_and_g()))(params, x, y)
        return loss, jax.lax.psum(grads, ("dp", "sp"))

    return stepping(mesh, found, check_vma=False, norm_of=lambda squares: jnp.sqrt(sum(squares.values())))(params, x, y)


@exercise.misconception(fails=step_norm)
def norm_averages_parts(params, x, y, *, mesh):
    """You averaged squares of cut parameters over tp. Each device along tp has other elements: add their squares."""

    def norm_of(squares):
        whole = squares["before"] + squares["between"]
        return jnp.sqrt(jax.lax.pmean(sum(squares.values()) - whole, "tp") + whole)

    return stepping(mesh, usual(), norm_of=norm_of)(params, x, y)


@exercise.misconception(fails=step_norm, breaks="over all parameters, each counted once")
def norm_without_scales(params, x, y, *, mesh):
    """You left `before` and `between` out of the norm. The norm is over all parameters."""

    def norm_of(squares):
        return jnp.sqrt(jax.lax.psum(sum(squares.values()) - squares["before"] - squares["between"], "tp"))

    return stepping(mesh, usual(), norm_of=norm_of)(params, x, y)


@exercise.misconception(fails=step_norm)
def norm_of_one_part(params, x, y, *, mesh):
    """Your norm is the norm of one device's parts. Add the squares of cut parameters over tp."""

    def norm_of(squares):
        return jax.lax.pmax(jnp.sqrt(sum(squares.values())), "tp")

    return stepping(mesh, usual(), norm_of=norm_of)(params, x, y)


def sums_over_tp(squares):
    """Return the sum of squares of each parameter's gradient."""
    return {n: s if n in ("before", "between") else jax.lax.psum(s, "tp") for n, s in squares.items()}


@exercise.misconception(fails=step_norm)
def norm_of_the_step(params, x, y, *, mesh):
    """You took the norm of RATE·g. Take the norm of g, and use this norm in the factor."""

    def norm_of(squares):
        return RATE * jnp.sqrt(sum(sums_over_tp(squares).values()))

    return stepping(mesh, usual(), norm_of=norm_of)(params, x, y)


@exercise.misconception(fails=[step_norm, step_params])
def norms_of_parameters_added(params, x, y, *, mesh):
    """You took roots before you added. Add all squares, over parameters and over tp, and take one root."""

    def norm_of(squares):
        return sum(map(jnp.sqrt, sums_over_tp(squares).values()))

    return stepping(mesh, usual(), norm_of=norm_of)(params, x, y)


@exercise.misconception(fails=[step_norm, step_params])
def norms_of_all_parts_added(params, x, y, *, mesh):
    """You added the norms of the devices' parts. Add all squares, over parameters and over tp, and take one root."""

    def norm_of(squares):
        return sum(sums_over_tp({name: jnp.sqrt(s) for name, s in squares.items()}).values())

    return stepping(mesh, usual(), norm_of=norm_of)(params, x, y)


@exercise.misconception(fails=[step_norm, step_params])
def norms_of_devices_added(params, x, y, *, mesh):
    """You took a root on each device before the sum over tp. Add all squares first, and take one root."""

    def norm_of(squares):
        whole = squares["before"] + squares["between"]
        return jax.lax.psum(jnp.sqrt(sum(squares.values()) - whole), "tp") + jnp.sqrt(whole)

    return stepping(mesh, usual(), norm_of=norm_of)(params, x, y)


@exercise.misconception(fails=[step_loss, step_norm, step_params])
def summed_what_is_whole(params, x, y, *, mesh):
    """You summed over an axis along which the devices already have the whole value. With check_vma on, JAX has summed
    gradients over dp and sp. Only the squares of cut parameters differ along tp."""

    def norm_of(squares):
        whole = squares["before"] + squares["between"]
        return jnp.sqrt(jax.lax.psum(sum(squares.values()) - whole, ("dp", "sp", "tp")) + whole)

    return stepping(mesh, usual(), norm_of=norm_of)(params, x, y)


@exercise.misconception(fails=[step_loss, step_norm, step_params])
def sum_over_all_numbers(params, x, y, *, mesh):
    """Your loss is a sum. The loss must be a mean over all numbers."""
    return stepping(mesh, usual(of_all=lambda y: 1))(params, x, y)


@exercise.misconception(fails=[step_loss, step_norm, step_params], breaks="the mean over the whole batch")
def mean_over_rows_only(params, x, y, *, mesh):
    """You summed over D. The loss is a mean over all numbers: over B, T and D."""
    of_all = lambda y: y.size // y.shape[-1] * jax.lax.axis_size(("dp", "sp"))  # noqa: E731
    return stepping(mesh, usual(of_all=of_all))(params, x, y)


@exercise.misconception(fails=step_params)
def gradients_returned(params, x, y, *, mesh):
    """You returned the scaled gradients. Return the new parameters, p minus the scaled gradients."""
    new, loss, length = stepping(mesh, usual())(params, x, y)
    return {name: params[name] - p for name, p in new.items()}, loss, length


@exercise.misconception(fails=[step_loss, step_norm])
def norm_before_loss(params, x, y, *, mesh):
    """You returned the norm before the loss. Return (new parameters, loss, norm)."""
    new, loss, length = stepping(mesh, usual())(params, x, y)
    return new, length, loss


@exercise.misconception(fails=step_params)
def scales_left_as_they_are(params, x, y, *, mesh):
    """You did not update `before` and `between`. These two parameters have gradients as well."""
    new, loss, length = stepping(mesh, usual())(params, x, y)
    return new | {name: params[name] for name in ("before", "between")}, loss, length


@exercise.misconception(fails=[step_loss, step_norm, step_params])
def types_off(params, x, y, *, mesh):
    """With check_vma=False JAX sums no gradient over dp and sp, and each device along tp has only a part of the
    gradients of `before`, `between` and x. Leave check_vma on."""
    return stepping(mesh, usual(), check_vma=False)(params, x, y)


@exercise.misconception(form_of=types_off)
def types_off_in_a_mean(params, x, y, *, mesh):
    """Like `types_off`, with a pmean in the loss."""

    def found(params, x, y):
        loss_of = lambda params: jax.lax.pmean(jnp.mean((on_device(params, x) - y) ** 2), ("dp", "sp"))  # noqa: E731
        return jax.value_and_grad(loss_of)(params)

    return stepping(mesh, found, check_vma=False, loss_of=lambda loss: loss)(params, x, y)


@exercise.misconception(fails=step_params)
def moved_uphill(params, x, y, *, mesh):
    """You added the gradient. Subtract it."""
    new_of = lambda grads, length: dict.fromkeys(grads, -jnp.minimum(1, LIMIT / length))  # noqa: E731
    return stepping(mesh, usual(), new_of=new_of)(params, x, y)


@exercise.misconception(fails=[step_loss, step_norm, step_params])
def each_device_its_mean(params, x, y, *, mesh):
    """You divided by the count of one device's numbers. The loss is a mean over the whole batch: divide by the count
    over dp and sp together."""
    return stepping(mesh, usual(of_all=lambda y: y.size))(params, x, y)


@exercise.misconception(fails=[step_loss, step_norm, step_params])
def mean_over_the_batch_only(params, x, y, *, mesh):
    """You left sp out of the count of all numbers. Devices along dp have other texts, and devices along sp have other
    positions."""
    return stepping(mesh, usual(of_all=lambda y: y.size * jax.lax.axis_size("dp")))(params, x, y)


@exercise.misconception(fails=[step_loss, step_norm, step_params])
def divided_by_every_device(params, x, y, *, mesh):
    """Your loss is 1/tp of the mean. Either: you divided by the number of all devices, but devices along tp have copies of
    the rows. Or: you took half of the mean. The loss has no factor 1/2."""
    return stepping(mesh, usual(of_all=lambda y: y.size * mesh.size))(params, x, y)


@exercise.misconception(fails=[step_norm, step_params], breaks="after each of three steps with ‖g‖ < LIMIT")
def summed_again(params, x, y, *, mesh):
    """Your gradients are dp · sp times too large. With check_vma on, JAX sums a parameter's gradient over all rows. Do
    not sum this gradient again. Differentiate a loss that is divided by the count of all numbers, not by the count of one
    device's numbers."""

    def found(params, x, y):
        loss, grads = usual()(params, x, y)
        return loss, jax.lax.psum(jax.lax.pcast(grads, ("dp", "sp"), to="varying"), ("dp", "sp"))

    return stepping(mesh, found)(params, x, y)


@exercise.misconception(fails=[step_norm, step_params], breaks="after each of three steps with ‖g‖ < LIMIT")
def gradients_divided_twice(params, x, y, *, mesh):
    """Your gradients are dp · sp times too small. The loss is already divided by the count of all numbers. Do not divide its gradient by the number of devices."""

    def found(params, x, y):
        loss, grads = usual()(params, x, y)
        return loss, {name: g / jax.lax.axis_size(("dp", "sp")) for name, g in grads.items()}

    return stepping(mesh, found)(params, x, y)


@exercise.misconception(fails=[step_loss, step_norm, step_params])
def positions_left_out(params, x, y, *, mesh):
    """You summed gradients only over dp. Devices along sp have other positions, so they have other shares of each
    gradient."""

    def found(params, x, y):
        loss, grads = usual(lambda params, x: by_hand(params, x, *f_and_g()))(params, x, y)
        return loss, jax.lax.psum(grads, "dp")

    return stepping(mesh, found, check_vma=False)(params, x, y)


@exercise.misconception(fails=[step_norm, step_params])
def scales_summed_over_tp(params, x, y, *, mesh):
    """You summed the scales' gradients over tp. Your backward pass has already summed them, so each device along tp has
    the whole gradient."""

    def found(params, x, y):
        loss, grads = usual(lambda params, x: by_hand(params, x, *f_and_g()))(params, x, y)
        grads = jax.lax.psum(grads, ("dp", "sp"))
        return loss, grads | {n: jax.lax.psum(grads[n], "tp") for n in ("before", "between")}

    return stepping(mesh, found, check_vma=False)(params, x, y)


@exercise.misconception(fails=step_params)
def ratio_upside_down(params, x, y, *, mesh):
    """Your factor is ‖g‖/LIMIT, which makes small gradients smaller. The factor is min(1, LIMIT/‖g‖), which is 1 if ‖g‖
    is below LIMIT."""
    new_of = lambda grads, length: dict.fromkeys(grads, jnp.minimum(1, length / LIMIT))  # noqa: E731
    return stepping(mesh, usual(), new_of=new_of)(params, x, y)


@exercise.misconception(fails=step_params)
def always_of_one_length(params, x, y, *, mesh):
    """You scaled every gradient to the norm LIMIT, which enlarges small gradients. If the norm is below LIMIT, do not
    scale."""
    return stepping(mesh, usual(), new_of=lambda grads, length: dict.fromkeys(grads, LIMIT / length))(params, x, y)


@exercise.misconception(fails=step_clipped, breaks="after a step with ‖g‖ > LIMIT")
def never_clipped(params, x, y, *, mesh):
    """You did not scale a gradient with a norm above LIMIT. Compare the norm with LIMIT, not each number, and scale the
    whole gradient by LIMIT/‖g‖."""
    return stepping(mesh, usual(), new_of=lambda grads, length: dict.fromkeys(grads, 1.0))(params, x, y)


@exercise.misconception(fails=step_slab)
def clipped_late(params, x, y, *, mesh):
    """You did not scale a gradient whose norm is a little above LIMIT. Compare the norm with LIMIT itself."""
    new_of = lambda grads, length: dict.fromkeys(grads, jnp.where(length > 2 * LIMIT, LIMIT / length, 1))  # noqa: E731
    return stepping(mesh, usual(), new_of=new_of)(params, x, y)


@exercise.misconception(fails=step_params)
def clipped_early(params, x, y, *, mesh):
    """You scaled a gradient whose norm is below LIMIT. Compare the norm with LIMIT itself."""
    new_of = lambda grads, length: dict.fromkeys(grads, jnp.minimum(1, LIMIT / 2 / length))  # noqa: E731
    return stepping(mesh, usual(), new_of=new_of)(params, x, y)


@exercise.misconception(fails=step_clipped)
def clipped_one_by_one(params, x, y, *, mesh):
    """You clipped each parameter's gradient by its own norm, which changes the direction of the step. Scale all
    gradients by one number."""

    def new_of(grads, length):
        squares = {n: jnp.sum(g**2) for n, g in grads.items()}
        cut = {n: s if n in ("before", "between") else jax.lax.psum(s, "tp") for n, s in squares.items()}
        return {n: jnp.minimum(1, LIMIT / jnp.sqrt(s)) for n, s in cut.items()}

    return stepping(mesh, usual(), new_of=new_of)(params, x, y)


@exercise.misconception(form_of=clipped_one_by_one)
def clipped_part_by_part(params, x, y, *, mesh):
    """Like `clipped_one_by_one`, with the norm of a device's part."""

    def new_of(grads, length):
        return {n: jnp.minimum(1, LIMIT / jnp.sqrt(jnp.sum(g**2))) for n, g in grads.items()}

    return stepping(mesh, usual(), new_of=new_of)(params, x, y)


@exercise.misconception(fails=step_clipped, breaks="‖g‖ is the norm of g before clipping")
def norm_after_clipping(params, x, y, *, mesh):
    """You returned the norm after clipping. Return the norm of g before it is clipped."""
    return stepping(mesh, usual(), returned=lambda length: jnp.minimum(length, LIMIT))(params, x, y)


@exercise.misconception(fails=step_params)
def clipped_by_squares(params, x, y, *, mesh):
    """You compared or scaled with ‖g‖². The factor is min(1, LIMIT/‖g‖), so that the norm of a step is LIMIT at most."""
    new_of = lambda grads, length: dict.fromkeys(grads, jnp.minimum(1, LIMIT / length**2))  # noqa: E731
    return stepping(mesh, usual(), new_of=new_of)(params, x, y)


@exercise.misconception(fails=step_params)
def moved_along_the_direction(params, x, y, *, mesh):
    """You divided the gradient by its norm. Divide only a gradient whose norm is above LIMIT, and multiply by LIMIT."""
    new_of = lambda grads, length: dict.fromkeys(grads, 1 / length)  # noqa: E731
    return stepping(mesh, usual(), new_of=new_of)(params, x, y)


@exercise.misconception(fails=[step_norm, step_params])
def norm_not_rooted(params, x, y, *, mesh):
    """You clipped by the sum of squares. The norm is the square root of this sum."""

    def norm_of(squares):
        whole = squares["before"] + squares["between"]
        return jax.lax.psum(sum(squares.values()) - whole, "tp") + whole

    return stepping(mesh, usual(), norm_of=norm_of)(params, x, y)


@exercise.misconception(fails=step_numbers, breaks="parameters, loss and norm as above, in the dtype of x")
def numbers_in_float32(params, x, y, *, mesh):
    """You returned the loss in float32. Loss and norm have the dtype of x."""

    def loss_of(loss):
        return jax.lax.psum(loss.astype(jnp.float32), ("dp", "sp"))

    return stepping(mesh, usual(), loss_of=loss_of)(params, x, y)


@exercise.misconception(fails=step_numbers)
def norm_in_float32(params, x, y, *, mesh):
    """You returned the norm in float32. Loss and norm have the dtype of x."""
    new, loss, length = stepping(mesh, usual())(params, x, y)
    return new, loss, length.astype(jnp.float32)


@exercise.misconception(fails=step_narrow, breaks="parameters, loss and norm as above, in the dtype of x")
def rate_in_float32(params, x, y, *, mesh):
    """You returned parameters in float32. Do not cast them. Factors that are float32 arrays change the dtype too; Python's
    numbers keep it."""

    def new_of(grads, length):
        return {name: jnp.minimum(jnp.float32(1), LIMIT / length.astype(jnp.float32)) for name in grads}

    return stepping(mesh, usual(), new_of=new_of)(params, x, y)


@exercise.misconception(fails=step_traffic, breaks="the forward and backward budgets of M1 together")
def one_axis_after_the_other(params, x, y, *, mesh):
    """You summed a gradient over dp and then over sp, with two all-reduces. On four devices, one all-reduce over both axes
    sends a quarter fewer bytes than two. If you cast a parameter, cast it to both axes at once."""

    def found(params, x, y):
        loss, grads = usual(lambda params, x: by_hand(params, x, *f_and_g()))(params, x, y)
        return loss, jax.lax.psum(jax.lax.psum(grads, "sp"), "dp")

    return stepping(mesh, found, check_vma=False)(params, x, y)


def cast_in_turn(params, names):
    """Return the parameters, some of them cast to vary over dp and then over sp."""
    for axis in ("dp", "sp"):
        params = params | {name: jax.lax.pcast(params[name], axis, to="varying") for name in names}
    return params


@exercise.misconception(form_of=one_axis_after_the_other)
def output_cast_in_turn(params, x, y, *, mesh):
    """Like `one_axis_after_the_other`, for `out` alone: the casts make JAX sum its gradient over one axis at a time."""
    return stepping(mesh, usual(lambda params, x: on_device(cast_in_turn(params, ["out"]), x)))(params, x, y)


@exercise.misconception(form_of=one_axis_after_the_other)
def scales_cast_in_turn(params, x, y, *, mesh):
    """Like `output_cast_in_turn`, for `before` and `between`."""
    names = ["before", "between"]
    return stepping(mesh, usual(lambda params, x: on_device(cast_in_turn(params, names), x)))(params, x, y)


@exercise.misconception(form_of=one_axis_after_the_other)
def one_scale_cast_in_turn(params, x, y, *, mesh):
    """Like `output_cast_in_turn`, for `before` alone."""
    return stepping(mesh, usual(lambda params, x: on_device(cast_in_turn(params, ["before"]), x)))(params, x, y)


def summed_in_float32(names):
    """Return a device's loss and the gradients; the gradients of ``names`` are summed in float32."""

    def found(params, x, y):
        loss, grads = usual(lambda params, x: by_hand(params, x, *f_and_g()))(params, x, y)
        wide = {n: g.astype(jnp.float32) if n in names else g for n, g in grads.items()}
        return loss, {n: g.astype(x.dtype) for n, g in jax.lax.psum(wide, ("dp", "sp")).items()}

    return found


@exercise.misconception(fails=step_bytes, breaks="and single numbers, all in the dtype of x")
def gradients_summed_in_float32(params, x, y, *, mesh):
    """With bfloat16 arguments you sum gradients in float32, which sends twice the bytes. Sum them in the dtype of x."""
    return stepping(mesh, summed_in_float32(PARAMS), check_vma=False)(params, x, y)


@exercise.misconception(form_of=gradients_summed_in_float32)
def one_gradient_summed_in_float32(params, x, y, *, mesh):
    """Like `gradients_summed_in_float32`, for `up` alone."""
    return stepping(mesh, summed_in_float32(["up"]), check_vma=False)(params, x, y)


@exercise.misconception(fails=step_bytes)
def rows_summed_in_float32(params, x, y, *, mesh):
    """With bfloat16 arguments you sum rows over tp in float32, which sends twice the bytes. Sum them in the dtype of
    x."""
    reduce = lambda part: jax.lax.psum(part.astype(jnp.float32), "tp").astype(part.dtype)  # noqa: E731
    return stepping(mesh, usual(with_attention(attention, reduce=reduce)))(params, x, y)


@exercise.misconception(fails=step_work, breaks="four forward passes (necessary: three), also on sp=6")
def attention_of_all_positions(params, x, y, *, mesh):
    """You gathered q too, and every device along sp computes attention from all positions. Compute attention from the
    device's own positions to all positions: gather K and V alone."""

    @jax.checkpoint
    def one_head(qkv):
        return attend_gathered(*(a[:, :, None] for a in qkv), first=0)[:, :, 0]

    def attend(q, k, v):
        rows = q.shape[1]
        heads = tuple(jnp.moveaxis(gathered(a), 2, 0) for a in (q, k, v))
        every = jnp.moveaxis(jax.lax.map(one_head, heads), 0, 2)
        return jax.lax.dynamic_slice_in_dim(every, jax.lax.axis_index("sp") * rows, rows, axis=1)

    return stepping(mesh, usual(with_attention(attend)))(params, x, y)


@exercise.misconception(fails=step_traffic)
def forward_pass_twice(params, x, y, *, mesh):
    """You ran the forward pass for the loss and again for the gradient, so everything that it sends is sent twice.
    jax.value_and_grad gives both."""

    def found(params, x, y):
        loss_of = lambda params: jnp.sum((on_device(params, x) - y) ** 2) / (y.size * jax.lax.axis_size(("dp", "sp")))  # noqa: E731
        return loss_of(params), jax.grad(loss_of)(params)

    return stepping(mesh, found)(params, x, y)


@exercise.misconception(fails=[step_loss, step_traffic])
def loss_after_the_step(params, x, y, *, mesh):
    """You returned the loss of the new parameters, which needs another forward pass. Return the loss that you
    differentiated."""

    def local(params, x, y):
        loss, grads = usual()(params, x, y)
        squares = {name: jnp.sum(g**2) for name, g in grads.items()}
        whole = squares["before"] + squares["between"]
        length = jnp.sqrt(jax.lax.psum(sum(squares.values()) - whole, "tp") + whole)
        new = {name: p - RATE * grads[name] * jnp.minimum(1, LIMIT / length) for name, p in params.items()}
        loss = jnp.sum((on_device(new, x) - y) ** 2) / (y.size * jax.lax.axis_size(("dp", "sp")))
        return new, jax.lax.psum(loss, ("dp", "sp")), length

    specs = {"in_specs": (PARAMS, ROWS, ROWS), "out_specs": (PARAMS, P(), P())}
    return jax.shard_map(local, mesh=mesh, **specs)(params, x, y)


@exercise.misconception(fails=step_traffic)
def gradients_gathered_for_the_norm(params, x, y, *, mesh):
    """You gathered gradients over tp for the norm. Each device squares and adds its own part, and sends one number."""

    def local(params, x, y):
        loss, grads = usual()(params, x, y)
        cut = {name: g for name, g in grads.items() if name not in ("before", "between")}
        squares = sum(jnp.sum(jax.lax.all_gather(g, "tp") ** 2) for g in cut.values())
        whole = sum(jnp.sum(grads[name] ** 2) for name in ("before", "between"))
        length = jnp.sqrt(jax.lax.pmean(squares, "tp") + whole)
        new = {name: p - RATE * grads[name] * jnp.minimum(1, LIMIT / length) for name, p in params.items()}
        return new, jax.lax.psum(loss, ("dp", "sp")), length

    specs = {"in_specs": (PARAMS, ROWS, ROWS), "out_specs": (PARAMS, P(), P())}
    return jax.shard_map(local, mesh=mesh, **specs)(params, x, y)


@exercise.misconception(fails=step_traffic)
def block_in_a_checkpoint(params, x, y, *, mesh):
    """Your checkpoint contains an all-reduce over tp, which the backward pass sends again. Put the checkpoint around
    attention alone, or around nothing."""
    return stepping(mesh, usual(jax.checkpoint(on_device)))(params, x, y)


@exercise.misconception(fails=step_traffic)
def averaged_what_is_summed(params, x, y, *, mesh):
    """You averaged gradients that JAX has already summed over dp and sp. Their values do not change, but a second
    all-reduce sends them all again."""

    def found(params, x, y):
        loss, grads = usual()(params, x, y)
        return loss, jax.lax.pmean(jax.lax.pcast(grads, ("dp", "sp"), to="varying"), ("dp", "sp"))

    return stepping(mesh, found)(params, x, y)


def in_two_checkpoints(params, x):
    """Compute one device's part of the block. A checkpoint around attention is inside a checkpoint around attention and
    its matmuls."""
    own = {name: params[name] for name in ("before", "qkv", "out")}

    @jax.checkpoint
    def own_part(own, x):
        heads = jax.checkpoint(attention)(*projected(own, x))
        return jnp.einsum("bthk,hkd->btd", heads, own["out"])

    x = x + jax.lax.psum(own_part(own, x), "tp")
    return x + jax.lax.psum(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"], "tp")


@exercise.misconception(fails=step_traffic)
def step_with_a_checkpoint_in_a_checkpoint(params, x, y, *, mesh):
    """You put a checkpoint around a checkpoint, so the backward pass gathers K and V once for each of them. One
    checkpoint around attention is enough."""
    return stepping(mesh, usual(in_two_checkpoints))(params, x, y)


def in_halves(params, x):
    """Compute one device's part of the block for the two halves of its texts, one after the other."""
    parts = [with_attention(jax.checkpoint(attention))(params, half) for half in jnp.array_split(x, 2)]
    return jnp.concatenate(parts)


@exercise.misconception(fails=step_traffic, breaks="the forward and backward budgets of M1 together")
def step_summed_for_each_half(params, x, y, *, mesh):
    """You ran the block twice, once for each half of the texts. JAX then sums the parameters' gradients over dp and sp twice. Cast the parameters to vary over dp and sp once, before both halves."""
    return stepping(mesh, usual(in_halves))(params, x, y)


@exercise.misconception(fails=step_same)
def outside_of_shard_map(params, x, y, *, mesh):
    """You put only the block into shard_map. Loss, norm and step use whole arrays, so the compiler decides what each
    device does. Write one shard_map around everything."""

    def loss_of(params):
        block = jax.shard_map(on_device, mesh=mesh, in_specs=(PARAMS, ROWS), out_specs=ROWS)
        return jnp.mean((block(params, x) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_of)(params)
    length = jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))
    return jax.tree.map(lambda p, g: p - RATE * g * jnp.minimum(1, LIMIT / length), params, grads), loss, length


@exercise.misconception(fails=step_same, breaks="and small sizes have equal operations")
def no_softmax_when_large(params, x, y, *, mesh):
    """With large arrays your program omits work. The timed program must be the program that gives the right values."""

    def attend(q, k, v):
        if k.shape[1] < 1000:
            return attention(q, k, v)
        k, v = gathered(k), gathered(v)
        return jnp.einsum("bhts,bshd->bthd", jnp.einsum("bthd,bshd->bhts", q, k), v)

    return stepping(mesh, usual(with_attention(attend)))(params, x, y)


@exercise.misconception(
    fails=[step_traffic, step_work, step_same], breaks="at most the matmul FLOPs of four forward passes"
)
def whole_everywhere(params, x, y, *, mesh):
    """You brought all parameters, texts and positions to every device, and each does all the work. Send only the
    arrays that the budget lists, and compute only the device's own part."""
    cut = {"qkv": 2, "out": 0, "up": 1, "down": 0}

    def attend(q, k, v):
        return attend_gathered(q, k, v, first=0)

    def local(params, x, y):
        whole = params | {n: jax.lax.all_gather(params[n], "tp", axis=axis, tiled=True) for n, axis in cut.items()}
        x, y = (jax.lax.all_gather(jax.lax.all_gather(a, "sp", axis=1, tiled=True), "dp", tiled=True) for a in (x, y))
        alone = with_attention(attend, reduce=lambda part: part)
        loss, grads = jax.value_and_grad(lambda params: jnp.mean((alone(params, x) - y) ** 2))(whole)
        length = jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))
        new = {n: p - RATE * grads[n] * jnp.minimum(1, LIMIT / length) for n, p in whole.items()}
        size, me = jax.lax.axis_size("tp"), jax.lax.axis_index("tp")
        own = {n: jnp.split(new[n], size, axis) for n, axis in cut.items()}
        return new | {n: jnp.stack(parts)[me] for n, parts in own.items()}, loss, length

    specs = {"in_specs": (PARAMS, ROWS, ROWS), "out_specs": (PARAMS, P(), P())}
    return jax.shard_map(local, mesh=mesh, check_vma=False, **specs)(params, x, y)


def gathered_over_tp(axis):
    """Return a gather over tp whose backward pass keeps the device's own part: each device has the whole gradient."""
    whole = jax.custom_vjp(lambda part: jax.lax.all_gather(part, "tp", axis=axis, tiled=True))

    def back(_, ct):
        return (jnp.stack(jnp.split(ct, jax.lax.axis_size("tp"), axis))[jax.lax.axis_index("tp")],)

    whole.defvjp(lambda part: (whole(part), None), back)
    return whole


@exercise.misconception(fails=[step_same, step_traffic], breaks="at most the matmul FLOPs of four forward passes")
def every_unit_everywhere(params, x, y, *, mesh):
    """You gathered parameters of the MLP over tp, so each device along tp computes all units. Each device
    uses its own units, and the results are summed over tp."""
    f, g = f_and_g()

    def forward(params, x):
        heads = attention(*projected(params | {"before": f(params["before"])}, x))
        x = x + g(jnp.einsum("bthk,hkd->btd", heads, params["out"]))
        up, down = gathered_over_tp(1)(params["up"]), gathered_over_tp(0)(params["down"])
        return x + jax.nn.silu(norm(x, params["between"]) @ up) @ down

    def found(params, x, y):
        loss, grads = usual(forward)(params, x, y)
        return loss, jax.lax.psum(grads, ("dp", "sp"))

    return stepping(mesh, found, check_vma=False)(params, x, y)


@exercise.misconception(form_of=no_softmax_when_large)
def fewer_keys_when_large(params, x, y, *, mesh):
    """Like `no_softmax_when_large`, but queries use only the first 1024 keys."""

    def attend(q, k, v):
        return attend_gathered(q, *(gathered(a)[:, :1024] for a in (k, v)))

    return stepping(mesh, usual(with_attention(attend)))(params, x, y)


@exercise.misconception(form_of=no_softmax_when_large)
def nothing_when_large(params, x, y, *, mesh):
    """Like `no_softmax_when_large`, but the program returns its arguments."""
    if x.shape[1] < 1000:
        return stepping(mesh, usual())(params, x, y)
    return params, jnp.zeros((), x.dtype), jnp.zeros((), x.dtype)


@exercise.misconception(fails=[step_work, step_memory])
def attention_of_all_positions_at_once(params, x, y, *, mesh):
    """You gathered q too, and every device along sp computes attention from all positions. Compute attention from the
    device's own positions to all positions: gather K and V alone."""

    def attend(q, k, v):
        every = attend_gathered(*(gathered(a) for a in (q, k, v)), first=0)
        rows = q.shape[1]
        return jax.lax.dynamic_slice_in_dim(every, jax.lax.axis_index("sp") * rows, rows, axis=1)

    return stepping(mesh, usual(with_attention(attend)))(params, x, y)


@exercise.misconception(fails=step_memory, breaks="at most three arrays of its scores")
def scores_in_float32(params, x, y, *, mesh):
    """Your scores, weights and their gradients are float32, which takes twice the memory. Keep them in the dtype of x,
    or compute one head at a time."""

    def attend(q, k, v):
        k, v = (jax.lax.all_gather(a, "sp", axis=1, tiled=True) for a in (k, v))
        here = jax.lax.axis_index("sp") * q.shape[1] + jnp.arange(q.shape[1])
        scores = jnp.einsum("bthd,bshd->bhts", q, k, preferred_element_type=jnp.float32) / q.shape[-1] ** 0.5
        weights = jax.nn.softmax(jnp.where(jnp.arange(k.shape[1]) <= here[:, None], scores, -jnp.inf))
        return jnp.einsum("bhts,bshd->bthd", weights, v, preferred_element_type=jnp.float32).astype(q.dtype)

    return stepping(mesh, usual(with_attention(attend)))(params, x, y)


@exercise.misconception(fails=[step_bytes, step_memory])
def everything_in_float32(params, x, y, *, mesh):
    """You cast the arguments to float32, so your arrays take twice the memory and you send twice the bytes. Compute in
    the dtype of x."""

    def local(params, x):
        wide = {n: p.astype(jnp.float32) for n, p in params.items()}
        return on_device(wide, x.astype(jnp.float32)).astype(x.dtype)

    return stepping(mesh, usual(local))(params, x, y)


@exercise.misconception(fails=[step_memory, step_time], breaks="at most the collectives' time plus twice the matmuls'")
def six_passes(params, x, y, *, mesh):
    """You asked for the highest precision, which takes six passes for each matmul of 32-bit numbers. bfloat16 needs one
    pass."""

    def wide(a, axes):
        return jax.lax.pcast(a, axes, to="varying").astype(jnp.float32)

    def local(params, x):
        p = {n: wide(params[n], ("dp", "sp")) for n in ("qkv", "out", "up", "down")}
        q, k, v = jnp.einsum("btd,dchk->cbthk", wide(norm(x, params["before"]), "tp"), p["qkv"])
        k, v = (gathered(a.astype(x.dtype)).astype(q.dtype) for a in (k, v))
        own = jnp.einsum("bthk,hkd->btd", attend_gathered(q, k, v), p["out"])
        x = x + jax.lax.psum(own.astype(x.dtype), "tp")
        hidden = jax.nn.silu(wide(norm(x, params["between"]), "tp") @ p["up"])
        return x + jax.lax.psum((hidden @ p["down"]).astype(x.dtype), "tp")

    with jax.default_matmul_precision("highest"):
        return stepping(mesh, usual(local))(params, x, y)


@exercise.misconception(of=block_step)
def step_all_in_turn(**sizes):
    """You added the time of the gradients' all-reduce to the other times. This all-reduce overlaps the backward
    matmuls, so add only the time by which it is longer than these matmuls."""
    return step_times(**sizes, in_time=lambda matmuls, rows, keys, gradients: matmuls + rows + keys + gradients)


@exercise.misconception(of=block_step)
def step_with_gradients_always(**sizes):
    """Either you let the gradients set the time with long texts too, or you overlapped rows, K and V with the backward
    matmuls. With long texts these matmuls take longer than the all-reduce beside them. Matmuls wait for rows, K and V,
    so add these times."""
    return step_times(**sizes, in_time=lambda matmuls, rows, keys, gradients: matmuls / 3 + rows + keys + gradients)


@exercise.misconception(of=block_step)
def step_of_the_longest(**sizes):
    """You used only the longest time. Matmuls wait for rows, K and V, so add their times to the time of the matmuls."""
    return step_times(**sizes, in_time=lambda **times: max(times.values()))


@exercise.misconception(of=block_step)
def step_all_overlapped(**sizes):
    """You overlapped all communication with matmuls. Matmuls wait for rows, K and V, so add these times: only the all-reduce of the gradients overlaps, and only the backward matmuls."""
    return step_times(**sizes, in_time=lambda matmuls, rows, keys, gradients: max(matmuls, rows + keys + gradients))


@exercise.misconception(of=block_step)
def step_matmuls_alone(**sizes):
    """You counted the matmuls alone, as if they overlapped all communication. Matmuls wait for rows, K and V, so add these times. With short texts the all-reduce of the gradients takes longer than the matmuls beside it."""
    return step_times(**sizes, in_time=lambda matmuls, rows, keys, gradients: matmuls)


@exercise.misconception(of=block_step)
def step_without_gradients(**sizes):
    """You left out the all-reduce of the gradients. If it takes longer than the backward matmuls, the rest of it is
    exposed."""
    return step_times(**sizes, in_time=lambda matmuls, rows, keys, gradients: matmuls + rows + keys)


@exercise.misconception(of=block_step)
def step_with_all_matmuls_beside(**sizes):
    """You overlapped the gradients with more than the backward matmuls. During the forward matmuls there are no gradients
    yet, and rows, K and V do not overlap them."""
    return step_times(**sizes, in_time=lambda matmuls, rows, keys, gradients: max(matmuls, gradients) + rows + keys)


@exercise.misconception(of=block_step)
def step_with_a_third_of_the_matmuls_beside(**sizes):
    """You gave the backward pass a third of the matmuls. The backward pass has two thirds of the matmuls: two gradients
    for each matmul of the forward pass."""
    return step_times(
        **sizes,
        in_time=lambda matmuls, rows, keys, gradients: matmuls * 2 / 3 + rows + keys + max(matmuls / 3, gradients),
    )


@exercise.misconception(of=block_step)
def step_without_rows_and_keys(**sizes):
    """You left out the rows, K and V. Matmuls wait for rows, K and V, so add the times of these three."""
    return step_times(**sizes, in_time=shifted(rows=0, keys=0))


@exercise.misconception(of=block_step)
def step_with_half_the_matmuls_beside(**sizes):
    """You gave the backward pass half of the matmuls. The backward pass has two thirds of the matmuls."""
    return step_times(
        **sizes,
        in_time=lambda matmuls, rows, keys, gradients: matmuls / 2 + rows + keys + max(matmuls / 2, gradients),
    )


def shifted(**factors):
    """Return `overlapped` for a block in which some times are multiplied by a factor."""
    return lambda **times: overlapped(**{name: time * factors.get(name, 1) for name, time in times.items()})


@exercise.misconception(of=block_step)
def step_with_keys_gathered_again(**sizes):
    """You gathered K and V again in the backward pass. Here they are gathered once, and their gradients are
    reduce-scattered once."""
    return step_times(**sizes, in_time=shifted(keys=1.5))


@exercise.misconception(of=block_step)
def step_with_keys_forward_only(**sizes):
    """You left out the gradients of K and V. A reduce-scatter sends as many bytes as a gather."""
    return step_times(**sizes, in_time=shifted(keys=1 / 2))


@exercise.misconception(of=block_step)
def step_with_rows_forward_only(**sizes):
    """You left out the all-reduces over tp in the backward pass. The backward pass has two all-reduces over tp, like
    the forward pass."""
    return step_times(**sizes, in_time=shifted(rows=1 / 2))


@exercise.misconception(of=block_step)
def step_one_way(**sizes):
    """You used one direction of a link, W1. A ring uses both directions: W = 2 · W1."""
    return step_times(**sizes, in_time=shifted(rows=2, keys=2, gradients=2))


@exercise.misconception(of=block_step)
def step_over_one_axis(**sizes):
    """You used the links of one axis for the gradients. dp and sp together have twice the bandwidth: 2 W."""
    return step_times(**sizes, in_time=shifted(gradients=2))


@exercise.misconception(of=block_overlaps_from)
def overlaps_with_all(chip, T, D):
    """Either: you overlapped the gradients with all matmuls. During the forward matmuls there are no gradients yet. Or:
    you counted only the parameters of the MLP, which are 8 of 12 · D²."""
    return 2 / 3 * block_overlaps_from.fn(chip, T, D)


@exercise.misconception(of=block_overlaps_from)
def overlaps_with_parameters(chip, T, D):
    """You left out the matmuls between positions. These matmuls take time as well, so fewer positions are enough."""
    return block_overlaps_from.fn(chip, 0, D)


@exercise.misconception(of=block_overlaps_from)
def overlaps_from_the_ratio(chip, T, D):
    """Your answer is C/W. Set the time of the all-reduce equal to the time of the backward matmuls: bytes and FLOPs of the
    block count too."""
    return CHIPS[chip].bf16 / CHIPS[chip].ici_both


@exercise.misconception(of=block_overlaps_from)
def overlaps_parameters_of_the_mlp(chip, T, D):
    """You left out the parameters of attention. The block has 12 · D² parameters: 4 · D² of attention, 8 · D² of the
    MLP."""
    return CHIPS[chip].bf16 / CHIPS[chip].ici_both * 2 * D / (4 * D + T)


@exercise.misconception(of=block_overlaps_from)
def overlaps_at_half_the_rate(chip, T, D):
    """Either: you used half of the links' bandwidth. The all-reduce uses both directions of the links of two axes: 2 W.
    Or: you counted half of the backward pass's FLOPs. It has twice the forward matmuls, with two FLOPs per term."""
    return 2 * block_overlaps_from.fn(chip, T, D)


@exercise.misconception(of=block_overlaps_from)
def overlaps_a_reduce_scatter(chip, T, D):
    """You gave the all-reduce the time of a reduce-scatter. An all-reduce takes twice as long."""
    return block_overlaps_from.fn(chip, T, D) / 2


@exercise.misconception(of=block_overlaps_from)
def overlaps_at_a_quarter_of_the_rate(chip, T, D):
    """You used one direction of the links of one axis. The all-reduce uses both directions of the links of two axes:
    2 W."""
    return 4 * block_overlaps_from.fn(chip, T, D)


@exercise.misconception(of=block_overlaps_from)
def overlaps_with_the_mask(chip, T, D):
    """You left out masked scores. The model counts scores of all positions, masked or not."""
    return block_overlaps_from.fn(chip, T / 2, D)


def lies(chip, dp, sp, tp, T, D, **_):
    """Put each mesh axis along one axis of a v5p slice."""
    heads = D // 128
    arrays = [((dp, T, D), ("dp", "sp")), ((D, 3, heads, 128), (None, None, "tp")), ((D, 4 * D), (None, "tp"))]
    return Scenario(
        mesh={"dp": dp, "sp": sp, "tp": tp}, arrays=arrays, chip=chip, rings=(dp, sp, tp), slice=(dp, sp, tp)
    )


exercise.scenario(block_step, lambda short, long, **sizes: lies(T=short, **sizes))
exercise.scenario(block_overlaps_from, lambda chip, T, D: Scenario())
