"""M1: calls, checks, misconceptions and alternatives."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario, array, larger, like, normal
from grader.expect import (
    Failure,
    between,
    expect_close,
    expect_flops,
    expect_memory,
    expect_shard_map,
    expect_spec,
    expect_step_time,
    expect_traffic,
)
from grader.hardware import CHIPS, matmul_time
from m1_block import (
    LIMIT,
    PARAMS,
    RATE,
    ROWS,
    attention,
    block,
    block_bottleneck,
    block_hides_from,
    block_step,
    block_times,
    exercise,
    norm,
    on_device,
    times_of,
    train_step,
)

# -- what is asked ---------------------------------------------------------------------------


@exercise.helper
def weights(rng, shape):
    """Draw weights so small that a matmul's results are about 1."""
    return rng.standard_normal(shape) / math.prod(shape[:-1]) ** 0.5


@exercise.helper
def of_heads(rng, shape):
    """Draw weights for which scores differ by several units."""
    return 2 * rng.standard_normal(shape) / shape[0] ** 0.5


@exercise.helper
def near_or_far(rng, shape):
    """Draw target outputs: far from the result in some steps, so that the gradient is clipped, and near in others."""
    return rng.choice([0.3, 9]) * rng.standard_normal(shape)


@exercise.helper
def params(dtype="float32"):
    """Return the draws of the block's parameters."""
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


rows = normal("B", "T", "D", spec=ROWS)
CUBE = {"dp": 2, "tp": 2, "sp": 2}
there_and_back = exercise.call(
    block, params=params(), x=rows, wrt=("params", "x"), cotangent=rows, meshes=[CUBE],
    dims={"B": 6, "T": 12, "D": 10, "H": 6, "d": 3, "F": 78},
    hidden_dims={"B": 10, "T": 6, "D": 15, "H": 14, "d": 5, "F": 38},
)  # fmt: skip
long = exercise.call(
    block, params=params(), x=rows, wrt=("params", "x"), cotangent=rows, meshes=[{"dp": 1, "tp": 2, "sp": 4}],
    dims={"B": 2, "T": 12, "D": 10, "H": 6, "d": 3, "F": 14},
    hidden_dims={"B": 3, "T": 20, "D": 22, "H": 6, "d": 5, "F": 38},
)  # fmt: skip

due = array("B", "T", "D", draw=near_or_far, spec=ROWS)
OUT = (like("params"), "loss", "norm")
steps = exercise.call(
    train_step, params=params(), x=rows, y=due, meshes=[CUBE], returns=OUT, steps=3,
    dims={"B": 6, "T": 10, "D": 24, "H": 50, "d": 3, "F": 22},
    hidden_dims={"B": 10, "T": 6, "D": 33, "H": 42, "d": 5, "F": 26},
)  # fmt: skip
slab = exercise.call(
    train_step, params=params(), x=rows, y=due, meshes=[{"dp": 1, "tp": 4, "sp": 2}], returns=OUT, steps=3,
    dims={"B": 2, "T": 6, "D": 10, "H": 4, "d": 3, "F": 12},
    hidden_dims={"B": 3, "T": 10, "D": 11, "H": 12, "d": 5, "F": 20},
)  # fmt: skip
narrow = exercise.call(
    train_step, params=params("bfloat16"), x=normal("B", "T", "D", spec=ROWS, dtype="bfloat16"),
    y=array("B", "T", "D", draw=near_or_far, spec=ROWS, dtype="bfloat16"), meshes=[CUBE], returns=OUT,
    dims={"B": 6, "T": 22, "D": 8 * 17, "H": 26, "d": 19, "F": 46},
    hidden_dims={"B": 10, "T": 26, "D": 8 * 11, "H": 34, "d": 19, "F": 58},
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
    """Return the block's result in float64, and a function from its cotangent to (grads, dx)."""
    p = {name: a.astype(np.float64) for name, a in params.items()}
    x = x.astype(np.float64)
    rms = np.sqrt((x**2).mean(-1, keepdims=True))
    n = x / rms * p["before"]
    q, k, v = np.einsum("btd,dchk->cbthk", n, p["qkv"])
    w = attended(q, k, v)
    heads = np.einsum("bhts,bshd->bthd", w, v)
    middle = x + np.einsum("bthk,hkd->btd", heads, p["out"])
    rms2 = np.sqrt((middle**2).mean(-1, keepdims=True))
    n2 = middle / rms2 * p["between"]
    before = n2 @ p["up"]
    open_ = 1 / (1 + np.exp(-before))
    hidden = before * open_

    def of_norm(dn, unit, scale, rms):
        du = dn * scale
        return (du - unit * (du * unit).mean(-1, keepdims=True)) / rms, (dn * unit).sum((0, 1))

    def back(dy):
        grads = {"down": np.einsum("btf,btd->fd", hidden, dy)}
        dbefore = dy @ p["down"].T * open_ * (1 + before * (1 - open_))
        grads["up"] = np.einsum("btd,btf->df", n2, dbefore)
        dx, grads["between"] = of_norm(dbefore @ p["up"].T, middle / rms2, p["between"], rms2)
        dx = dx + dy
        grads["out"] = np.einsum("bthk,btd->hkd", heads, dx)
        dheads = np.einsum("btd,hkd->bthk", dx, p["out"])
        dw = np.einsum("bthd,bshd->bhts", dheads, v)
        dscores = w * (dw - (dw * w).sum(-1, keepdims=True)) / q.shape[-1] ** 0.5
        dqkv = np.stack(
            [
                np.einsum("bhts,bshd->bthd", dscores, k),
                np.einsum("bhts,bthd->bshd", dscores, q),
                np.einsum("bhts,bthd->bshd", w, dheads),
            ]
        )
        grads["qkv"] = np.einsum("btd,cbthk->dchk", n, dqkv)
        more, grads["before"] = of_norm(np.einsum("cbthk,dchk->btd", dqkv, p["qkv"]), x / rms, p["before"], rms)
        return grads, dx + more

    return middle + hidden @ p["down"], back


@exercise.helper
def expect_gradients(seen):
    """Compare the gradients of x and all parameters with those of one device, and their layouts with their
    arguments'."""
    grads, dx = on_one_device(seen.params, seen.x)[1](seen.cotangent)
    expect_close(seen.grads, {"params": grads, "x": dx})
    expect_spec(seen.grads, {"params": PARAMS, "x": ROWS})


@exercise.check(there_and_back, points=1.5, public=True)
def block_value(seen):
    """block: the result equals that of one device, in layout ROWS"""
    expect_close(seen.out, on_one_device(seen.params, seen.x)[0])
    expect_spec(seen.out, ROWS)
    expect_shard_map(seen)


@exercise.check(there_and_back, points=1.5, public=True, after=block_value)
def block_gradients(seen):
    """block: the gradients of x and all parameters equal those of one device, in their arguments' layouts"""
    expect_gradients(seen)


# -- budgets -----------------------------------------------------------------------------------


@exercise.helper
def sizes_of(seen):
    """Return the sizes of a device's rows, K, scores, units of the MLP and parameters."""
    d, mesh = seen.dims, seen.mesh
    positions = d["B"] * d["T"] // (mesh["dp"] * mesh["sp"])
    heads, hidden = d["H"] // mesh["tp"], d["F"] // mesh["tp"]
    cut = 4 * d["D"] * heads * d["d"] + 2 * d["D"] * hidden
    return (
        positions * d["D"],
        positions * heads * d["d"],
        positions * heads * d["T"],
        positions * hidden,
        cut + 2 * d["D"],
    )


@exercise.helper
def due_over(seen, itemsize, gathers, reduces, sums):
    """Return the bytes that a device sends over tp, sp, and dp with sp, for these counts of all-reduces of rows,
    gathers of K and sums of parameters."""
    rows, keys, _, _, parameters = sizes_of(seen)
    tp, sp, both = seen.mesh["tp"], seen.mesh["sp"], seen.mesh["dp"] * seen.mesh["sp"]
    over_tp = reduces * 2 * (tp - 1) / tp * (rows + bool(sums) * seen.dims["D"])
    return (itemsize * n for n in (over_tp, gathers * (sp - 1) * keys, sums * 2 * (both - 1) / both * parameters))


@exercise.helper
def expect_sent(seen, gathers, reduces, sums):
    """Require at most these bytes over each axis and in all, besides single numbers and padding."""
    tp, sp, both = due_over(seen, 4, gathers, reduces, sums)
    few, dp = 128, seen.mesh["dp"]
    expect_traffic(seen, at_most=tp + few, axis="tp")
    if dp > 1:
        expect_traffic(seen, at_most=both + few if sums else 0, axis="dp")
    expect_traffic(seen, at_most=sp + both + few, axis="sp")
    if dp > 1 and sums:  # otherwise the limits over each axis imply the limit on the sum
        expect_traffic(seen, at_most=tp + sp + both + 2 * few)


@exercise.check(there_and_back, points=0.75, public=True, after=block_value)
def block_forward(seen):
    """block forward: over tp two all-reduces of rows, over sp K and V once, over dp nothing"""
    expect_sent(seen.only(backward=False), 2, 2, 0)


@exercise.check(there_and_back, points=0.75, public=True, after=[block_gradients, block_forward])
def block_backward(seen):
    """block backward: over tp two all-reduces of rows, over sp twice K and V, and parameters once over dp and sp"""
    expect_sent(seen.only(backward=True), 4, 2, 1)


@exercise.check(long, points=1, after=block_backward)
def block_long(seen):
    """block with sp=4 and dp=1: result, gradients and what is sent"""
    expect_close(seen.out, on_one_device(seen.params, seen.x)[0])
    expect_gradients(seen)
    expect_sent(seen.only(backward=False), 2, 2, 0)
    expect_sent(seen.only(backward=True), 4, 2, 1)


@exercise.helper
def step_on_one_device(step):
    """Return the loss, the norm and the changes of the parameters."""
    out, back = on_one_device(step.params, step.x)
    grads, _ = back(2 * (out - step.y) / out.size)
    length = np.sqrt(sum((g**2).sum() for g in grads.values()))
    return ((out - step.y) ** 2).mean(), length, {n: -RATE * g * min(1, LIMIT / length) for n, g in grads.items()}


@exercise.helper
def expect_steps(seen):
    """Compare each step's parameters, loss and norm with those of one device."""
    for step in seen.steps or [seen]:
        *numbers, changes = step_on_one_device(step)
        got, loss, norm = step.out
        expect_close((loss, norm), tuple(numbers))
        expect_close(got, {n: p + changes[n] for n, p in step.params.items()})
        expect_spec(step.out, (PARAMS, P(), P()))


@exercise.helper
def matrices(params):
    """Return the weights by name, those of q, k and v apart."""
    qkv = np.moveaxis(params["qkv"], 1, 0)
    return dict(zip("qkv", qkv, strict=True)) | {name: params[name] for name in ("out", "up", "down")}


@exercise.helper
def expect_changes(seen):
    """Require that weights change as on one device. In bfloat16 a step changes a number by about its rounding, which
    `expect_close` tolerates, but over all numbers of an array roundings average out."""
    before, due = matrices(seen.params), matrices(step_on_one_device(seen)[2])
    after = matrices({name: array.value.astype(np.float64) for name, array in seen.out[0].items()})
    for name, change in due.items():
        error = np.linalg.norm(after[name] - before[name] - change)
        if error > np.linalg.norm(change) / 2 + np.linalg.norm(before[name]) / 2**9:
            raise Failure(f"the weights of {name} do not change as on one device: do they get all of their gradient?")


@exercise.check(steps, points=1, public=True)
def step_value(seen):
    """train_step: loss, norm and parameters after each of three steps equal those of one device"""
    expect_steps(seen)


@exercise.check(slab, points=0.5, after=step_value)
def step_slab(seen):
    """train_step with tp=4 and dp=1: loss, norm and parameters"""
    expect_steps(seen)


@exercise.check(steps, points=0.5, after=step_value)
def step_traffic(seen):
    """train_step: sends no more than block forward and backward, and single numbers"""
    expect_sent(seen, 6, 4, 1)


@exercise.helper
def work_of(seen):
    """Return the FLOPs of a device's matmuls with parameters, and of its matmuls with other positions, in the forward
    pass."""
    rows, _, scores, _, parameters = sizes_of(seen)
    return 2 * rows * (parameters / seen.dims["D"] - 2), 4 * scores * seen.dims["d"]


@exercise.check(narrow, points=0.25, public=True, after=step_value)
def step_narrow(seen):
    """train_step in bfloat16, the timed dtype: loss, norm and parameters equal those of one device"""
    expect_steps(seen)
    expect_changes(seen)


@exercise.check([narrow, timed], points=0.25, public=True, after=step_value)
def step_same(small, large):
    """train_step: at real sizes the program is unchanged, runs in shard_map, and does the necessary work"""
    work, devices = sum(work_of(large)), math.prod(large.mesh.values())
    expect_flops(large, at_most=between(3 * work, devices * 3 * work, at=4 * work))  # wrong: each device does all
    for seen in (small, large):
        dense, scored = work_of(seen)
        last = 1 - 1 / (2 * seen.mesh["sp"])  # the scores that the last positions need
        expect_flops(seen, at_least=3 * (dense + scored * (1 - last)))
        if seen.dot_flops.most < 3 * (dense + last * scored):
            raise Failure("queries do not meet all positions before them")
        needed = sum(due_over(seen, 2, 4, 3, 1))  # x needs no gradient, which saves an all-reduce
        expect_traffic(seen, at_least=0.99 * needed)


@exercise.check(timed, points=0.75, public=True, after=step_same)
def step_memory(seen):
    """train_step: a device holds parameters, rows and three arrays of its scores at most"""
    rows, _, scores, _, parameters = sizes_of(seen)
    head_by_head = 2 * parameters + 9 * rows  # scores of one head at a time
    rest = 2 * parameters + 6 * rows
    whole, widened = rest + 2 * scores, rest + 4 * scores  # scores and their weights; then both in float32
    expect_memory(seen, at_most=between(2 * head_by_head, 2 * widened, styles=whole / head_by_head), by="program")


@exercise.check(timed, points=0.75, public=True, after=step_same)
def step_time(seen):
    """train_step: at most twice the time of its matmuls, and its collectives"""
    chip = CHIPS["v5p"]
    products = matmul_time(3 * sum(work_of(seen)), chip)
    sent = sum(due_over(seen, 2, 6, 4, 1)) / chip.ici
    right, wrong = 1.43 * products, 6.6 * products  # part of what is sent is exposed; at the highest precision
    expect_step_time(seen, at_most=between(right, wrong, at=2 * products + sent))


# -- right, in other styles --------------------------------------------------------------------


def mapped(local, mesh, **more):
    """Map a function of one device's parts over the mesh."""
    return jax.shard_map(local, mesh=mesh, in_specs=(PARAMS, ROWS), out_specs=ROWS, **more)


def projected(params, x):
    """Return q, k and v of a device's heads."""
    return jnp.einsum("btd,dchk->cbthk", norm(x, params["before"]), params["qkv"])


def finished(params, x, heads, reduce=lambda part: jax.lax.psum(part, "tp")):
    """Compute the rest of the block, after attention."""
    x = x + reduce(jnp.einsum("bthk,hkd->btd", heads, params["out"]))
    return x + reduce(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"])


def with_attention(attend, **more):
    """Return one device's function with the given attention."""
    return lambda params, x: finished(params, x, attend(*projected(params, x)), **more)


def stepping(mesh, loss_and_grads, check_vma=True, norm_of=None, new_of=None, loss_of=None):
    """Build a train_step from the given parts; the other parts are the solution's."""

    def usual_norm(squares):
        whole = squares["before"] + squares["between"]
        return jnp.sqrt(jax.lax.psum(sum(squares.values()) - whole, "tp") + whole)

    def local(params, x, y):
        loss, grads = loss_and_grads(params, x, y)
        length = (norm_of or usual_norm)({name: jnp.sum(g**2) for name, g in grads.items()})
        factor = {name: jnp.minimum(1, LIMIT / length) for name in grads} if new_of is None else new_of(grads, length)
        new = {name: p - RATE * grads[name] * factor[name] for name, p in params.items()}
        return new, (loss_of or (lambda loss: jax.lax.psum(loss, ("dp", "sp"))))(loss), length

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


@exercise.alternative(of=block)
def keys_round_a_ring(params, x, *, mesh):
    """Ring attention over sp (J2), differentiated by JAX."""
    return mapped(with_attention(ring), mesh)(params, x)


def scales_cast(params):
    """Return the parameters with scales cast to vary over tp, so that JAX sums their gradients over tp."""
    return params | {name: jax.lax.pcast(params[name], "tp", to="varying") for name in ("before", "between")}


@exercise.alternative(of=block)
def cast_by_hand(params, x, *, mesh):
    """Three matmuls for q, k and v with one norm, which varies over tp because its scale is cast."""

    def local(params, x):
        params = scales_cast(params)
        n = norm(x, params["before"])
        q, k, v = (jnp.tensordot(n, params["qkv"][:, i], 1) for i in range(3))
        return finished(params, x, attention(q, k, v))

    return mapped(local, mesh)(params, x)


@exercise.alternative(of=block)
def keys_gathered_again(params, x, *, mesh):
    """A checkpoint around attention: the backward pass gathers K and V again."""
    return mapped(with_attention(jax.checkpoint(attention)), mesh)(params, x)


@exercise.alternative(of=train_step)
def attention_made_again(params, x, y, *, mesh):
    """A checkpoint around attention: the backward pass gathers K and V again, in one array."""

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


@exercise.alternative(of=train_step)
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


@exercise.alternative(of=train_step)
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


@exercise.alternative(of=train_step)
def without_types(params, x, y, *, mesh):
    """check_vma=False: f and g by hand, all gradients in one flat all-reduce, copies divided by their number."""

    def found(params, x, y):
        loss, grads = usual(lambda params, x: by_hand(params, x, *f_and_g()))(params, x, y)
        flat, back = ravel_pytree(grads)
        return loss, back(jax.lax.psum(flat, ("dp", "sp")))

    def norm_of(squares):
        n = jax.lax.axis_size("tp")
        each = [s / n if name in ("before", "between") else s for name, s in squares.items()]
        return jax.lax.psum(sum(each), "tp") ** 0.5

    return stepping(mesh, found, check_vma=False, norm_of=norm_of)(params, x, y)


@exercise.alternative(of=train_step)
def scattered_and_gathered(params, x, y, *, mesh):
    """check_vma=False: a reduce-scatter and a gather of rows and gradients, in place of each all-reduce."""

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


@exercise.alternative(of=train_step)
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


def attended_with(gather=lambda a: jax.lax.all_gather(a, "sp", axis=1, tiled=True), first=None, over=None, **more):
    """Return an attention with changed keys, first position or scores."""

    def attend(q, k, v):
        k, v = gather(k), gather(v)
        start = jax.lax.axis_index("sp") * q.shape[1] if first is None else first
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / (over or q.shape[-1] ** 0.5)
        seen = jnp.arange(k.shape[1]) <= (start + jnp.arange(q.shape[1]))[:, None]
        return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)), v)

    return with_attention(attend, **more)


@exercise.misconception(of=block, fails=block_value, breaks="result and gradients equal those of one device")
def masked_by_the_block(params, x, *, mesh):
    """You masked by row numbers within the block. The block's first row is position axis_index('sp') * T/sp of the
    text."""
    return mapped(attended_with(first=0), mesh)(params, x)


@exercise.misconception(of=block, fails=block_value)
def attended_at_home(params, x, *, mesh):
    """Your queries use only the keys of their own device. Keys of earlier positions are on other devices along sp:
    gather K and V."""
    return mapped(attended_with(gather=lambda a: a, first=0), mesh)(params, x)


@exercise.misconception(of=block, fails=block_value)
def gathered_over_tp(params, x, *, mesh):
    """You gathered K and V over tp. Devices along tp have other heads at these positions. The other positions are along
    sp."""
    return mapped(attended_with(lambda a: jax.lax.all_gather(a, "tp", axis=1, tiled=True)), mesh)(params, x)


@exercise.misconception(of=block, fails=block_value)
def gathered_texts(params, x, *, mesh):
    """You gathered K and V over dp. Devices along dp have other texts, and no text needs another."""

    def gather(a):
        both = jax.lax.all_gather(a, ("dp", "sp"), axis=1, tiled=True)
        return both[:, : a.shape[1] * jax.lax.axis_size("sp")]

    return mapped(attended_with(gather), mesh)(params, x)


@exercise.misconception(of=block, fails=block_value)
def not_scaled(params, x, *, mesh):
    """You did not divide the scores by the square root of d."""
    return mapped(attended_with(over=1.0), mesh)(params, x)


@exercise.misconception(of=block, fails=block_value)
def scaled_by_all_heads(params, x, *, mesh):
    """You divided the scores by the square root of D. A head's queries have d numbers."""

    def local(params, x):
        return attended_with(over=x.shape[-1] ** 0.5)(params, x)

    return mapped(local, mesh)(params, x)


@exercise.misconception(of=block, fails=block_value)
def never_summed_over_tp(params, x, *, mesh):
    """You kept a device's own part of the sum over heads and MLP units. With check_vma=False JAX does not report
    this. Add the partial sums with a psum over tp."""

    def local(params, x):
        return finished(params, x, attention(*projected(params, x)), reduce=lambda part: part)

    return mapped(local, mesh, check_vma=False)(params, x)


@exercise.misconception(of=block, fails=block_value)
def summed_over_everything(params, x, *, mesh):
    """You summed over all axes. Devices along dp and sp have different rows. Only devices along tp have partial sums of
    one result."""

    def reduce(part):
        total = jax.lax.psum(part, ("dp", "tp", "sp"))
        return jax.lax.pcast(total, ("dp", "sp"), to="varying")

    return mapped(lambda params, x: finished(params, x, attention(*projected(params, x)), reduce), mesh)(params, x)


@exercise.misconception(of=block, fails=block_value)
def residual_in_the_sum(params, x, *, mesh):
    """You added x before the sum over tp, so it counts once for each device there. Sum first, then add."""

    def local(params, x):
        heads = attention(*projected(params, x))
        x = jax.lax.psum(x + jnp.einsum("bthk,hkd->btd", heads, params["out"]), "tp")
        return x + jax.lax.psum(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"], "tp")

    return mapped(local, mesh)(params, x)


@exercise.misconception(of=block, fails=block_value)
def both_from_x(params, x, *, mesh):
    """Your MLP uses the input of the block. Use x with attention added."""

    def local(params, x):
        more = jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"]
        return x + jax.lax.psum(
            jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"]) + more, "tp"
        )

    return mapped(local, mesh)(params, x)


@exercise.misconception(of=block, fails=block_gradients, breaks="result and gradients equal those of one device")
def keys_forget_who_used_them(params, x, *, mesh):
    """The queries of all later devices used your keys, but you kept only the gradient from your own queries. Sum the
    gradients of K and V over sp."""

    def gather(a):
        whole = jax.custom_vjp(lambda a: jax.lax.all_gather(a, "sp", axis=1, tiled=True))

        def back(_, ct):
            rows = ct.shape[1] // jax.lax.axis_size("sp")
            return (jax.lax.dynamic_slice_in_dim(ct, jax.lax.axis_index("sp") * rows, rows, axis=1),)

        whole.defvjp(lambda a: (whole(a), None), back)
        return whole(a)

    return mapped(attended_with(gather), mesh)(params, x)


@exercise.misconception(of=block, fails=block_gradients)
def g_without_f(params, x, *, mesh):
    """You wrote your own backward pass for the psum. It does not sum the gradients of x from other heads and MLP units.
    Leave check_vma on, and leave the transposes to JAX."""
    _, g = f_and_g()
    return mapped(lambda params, x: by_hand(params, x, lambda a: a, g), mesh, check_vma=False)(params, x)


@exercise.misconception(of=block, fails=block_long, breaks="result and gradients equal those of one device")
def positions_for_two_devices(params, x, *, mesh):
    """You computed a device's first position for two devices along sp. It is axis_index('sp') times the positions that
    a device holds."""

    def attend(q, k, v):
        k, v = (jax.lax.all_gather(a, "sp", axis=1, tiled=True) for a in (k, v))
        here = jax.lax.axis_index("sp") * (k.shape[1] // 2) + jnp.arange(q.shape[1])
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
        weights = jax.nn.softmax(jnp.where(jnp.arange(k.shape[1]) <= here[:, None], scores, -jnp.inf))
        return jnp.einsum("bhts,bshd->bthd", weights, v)

    return mapped(with_attention(attend), mesh)(params, x)


@exercise.misconception(of=block, fails=block_forward, breaks="K and V of its heads gathered")
def gathered_queries(params, x, *, mesh):
    """You also gathered the queries, so every device computes all positions. Keep queries on the device of their
    rows."""

    def attend(q, k, v):
        rows = q.shape[1]
        q, k, v = (jax.lax.all_gather(a, "sp", axis=1, tiled=True) for a in (q, k, v))
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
        weights = jax.nn.softmax(jnp.where(jnp.tri(q.shape[1], dtype=bool), scores, -jnp.inf))
        out = jnp.einsum("bhts,bshd->bthd", weights, v)
        return jax.lax.dynamic_slice_in_dim(out, jax.lax.axis_index("sp") * rows, rows, axis=1)

    return mapped(with_attention(attend), mesh)(params, x)


@exercise.misconception(of=block, fails=block_forward, breaks="K and V of its heads gathered")
def every_head_everywhere(params, x, *, mesh):
    """You gathered parameters over tp, so all devices along tp repeat the work. Each device uses its own heads and MLP
    units, and the results are summed over tp."""

    def local(params, x):
        axis = {"qkv": 2, "out": 0, "up": 1, "down": 0}
        own = {n: jax.lax.all_gather(params[n], "tp", axis=axis[n], tiled=True) for n in axis}
        return finished(params | own, x, attention(*projected(params | own, x)), reduce=lambda part: part)

    return mapped(local, mesh, check_vma=False)(params, x)


@exercise.misconception(of=block, fails=block_forward, breaks="two all-reduces of a device's rows")
def reduced_each_product(params, x, *, mesh):
    """You gathered MLP units over tp before the second matmul, or summed more than its result. Cut `up` by columns and
    `down` by rows: one sum for both matmuls."""

    def local(params, x):
        x = x + jax.lax.psum(jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"]), "tp")
        own = jax.nn.silu(norm(x, params["between"]) @ params["up"])
        units, me = own.shape[-1], jax.lax.axis_index("tp")
        hidden = jax.lax.all_gather(own, "tp", axis=2, tiled=True)
        mine = jax.lax.dynamic_slice_in_dim(hidden, me * units, units, axis=2)
        return x + jax.lax.psum(mine @ params["down"], "tp")

    return mapped(local, mesh)(params, x)


@exercise.misconception(of=block, fails=block_backward, breaks="tp: as many bytes as forward")
def three_casts(params, x, *, mesh):
    """The norm's result meets your heads' parameters in three matmuls. JAX then casts it three times, and sums over tp three times in the backward pass. Use one matmul for q, k and v, or one cast of your own."""

    def local(params, x):
        n = norm(x, params["before"])
        q, k, v = (jnp.tensordot(n, params["qkv"][:, i], 1) for i in range(3))
        return finished(params, x, attention(q, k, v))

    return mapped(local, mesh)(params, x)


def in_two_checkpoints(params, x):
    """Return one device's function with a checkpoint around attention and another around attention with its matmuls."""
    own = {name: params[name] for name in ("before", "qkv", "out")}

    @jax.checkpoint
    def own_part(own, x):
        heads = jax.checkpoint(attention)(*projected(own, x))
        return jnp.einsum("bthk,hkd->btd", heads, own["out"])

    x = x + jax.lax.psum(own_part(own, x), "tp")
    return x + jax.lax.psum(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"], "tp")


@exercise.misconception(of=block, fails=block_backward, breaks="sp: twice as many as forward")
def checkpoint_in_a_checkpoint(params, x, *, mesh):
    """You put a checkpoint around a checkpoint, so the backward pass gathers K and V once for each of them. One
    checkpoint around attention is enough."""
    return mapped(in_two_checkpoints, mesh)(params, x)


@exercise.misconception(of=block, fails=block_backward, breaks="one all-reduce of a device's parameters over both")
def cast_to_one_axis_after_the_other(params, x, *, mesh):
    """You cast parameters to dp and to sp one after the other, so JAX sums their gradients over each axis separately.
    One cast to both axes sends a quarter less on four devices."""

    def local(params, x):
        for axis in ("dp", "sp"):
            params = {name: jax.lax.pcast(p, axis, to="varying") for name, p in params.items()}
        return with_attention(jax.checkpoint(attention))(scales_cast(params), x)

    return mapped(local, mesh)(params, x)


def in_halves(params, x):
    """Return one device's function that runs the two halves of its sequences one after the other."""
    parts = [with_attention(jax.checkpoint(attention))(params, half) for half in jnp.array_split(x, 2)]
    return jnp.concatenate(parts)


@exercise.misconception(of=block, fails=block_backward)
def summed_for_each_half(params, x, *, mesh):
    """You ran the block for one half of the sequences after the other. Each half uses the parameters, so JAX sums their gradients over dp and sp once for each half. Cast the parameters to dp and sp once, before both."""
    return mapped(lambda params, x: in_halves(scales_cast(params), x), mesh)(params, x)


@exercise.misconception(of=train_step, fails=step_value, breaks="parameters, loss and norm equal those of one device")
def norm_counts_copies(params, x, y, *, mesh):
    """You summed all squares over tp. `before` and `between` are whole on every device along tp, so you counted each
    copy."""
    return stepping(mesh, usual(), norm_of=lambda squares: jnp.sqrt(jax.lax.psum(sum(squares.values()), "tp")))(
        params, x, y
    )


@exercise.misconception(of=train_step, fails=step_slab)
def two_copies(params, x, y, *, mesh):
    """You assumed two devices along tp. A parameter that is not cut has as many copies as there are devices along
    tp."""

    def norm_of(squares):
        copies = (squares["before"] + squares["between"]) / 2
        return jnp.sqrt(jax.lax.psum(sum(squares.values()) - copies, "tp"))

    return stepping(mesh, usual(), norm_of=norm_of)(params, x, y)


@exercise.misconception(of=train_step, fails=step_value)
def norm_of_a_device(params, x, y, *, mesh):
    """Each device clipped by the norm of its own part, so copies of a parameter differ after the step. Sum the squares
    of cut parameters over tp."""

    def found(params, x, y):
        loss, grads = usual(lambda params, x: by_hand(params, x, *f_and_g()))(params, x, y)
        return loss, jax.lax.psum(grads, ("dp", "sp"))

    return stepping(mesh, found, check_vma=False, norm_of=lambda squares: jnp.sqrt(sum(squares.values())))(params, x, y)


@exercise.misconception(of=train_step, fails=step_value)
def each_device_its_mean(params, x, y, *, mesh):
    """You divided by the count of one device's numbers. The loss is a mean over the whole batch: divide by the count
    over dp and sp together."""
    return stepping(mesh, usual(of_all=lambda y: y.size))(params, x, y)


@exercise.misconception(of=train_step, fails=step_value)
def mean_over_the_batch_only(params, x, y, *, mesh):
    """You forgot that sp cuts the mean too. Devices along dp have other texts, and devices along sp have other
    positions."""
    return stepping(mesh, usual(of_all=lambda y: y.size * jax.lax.axis_size("dp")))(params, x, y)


@exercise.misconception(of=train_step, fails=step_value)
def divided_by_every_device(params, x, y, *, mesh):
    """You divided by the number of all devices. Devices along tp have copies of the rows."""
    return stepping(mesh, usual(of_all=lambda y: y.size * mesh.size))(params, x, y)


@exercise.misconception(of=train_step, fails=step_value)
def summed_again(params, x, y, *, mesh):
    """You summed gradients twice. With check_vma on, JAX has already summed a parameter's gradient over all rows."""

    def found(params, x, y):
        loss, grads = usual()(params, x, y)
        return loss, jax.lax.psum(jax.lax.pcast(grads, ("dp", "sp"), to="varying"), ("dp", "sp"))

    return stepping(mesh, found)(params, x, y)


@exercise.misconception(of=train_step, fails=step_value)
def positions_left_out(params, x, y, *, mesh):
    """You summed gradients only over dp. Devices along sp have other positions, so they have other shares of each
    gradient."""

    def found(params, x, y):
        loss, grads = usual(lambda params, x: by_hand(params, x, *f_and_g()))(params, x, y)
        return loss, jax.lax.psum(grads, "dp")

    return stepping(mesh, found, check_vma=False)(params, x, y)


@exercise.misconception(of=train_step, fails=step_value)
def scales_summed_over_tp(params, x, y, *, mesh):
    """You summed the scales' gradients over tp. f has already summed them, so each device along tp has the whole
    gradient."""

    def found(params, x, y):
        loss, grads = usual(lambda params, x: by_hand(params, x, *f_and_g()))(params, x, y)
        grads = jax.lax.psum(grads, ("dp", "sp"))
        return loss, grads | {n: jax.lax.psum(grads[n], "tp") for n in ("before", "between")}

    return stepping(mesh, found, check_vma=False)(params, x, y)


@exercise.misconception(of=train_step, fails=step_value)
def always_of_one_length(params, x, y, *, mesh):
    """You scaled every gradient to the norm LIMIT, which enlarges small gradients. If the norm is below LIMIT, do not
    scale."""
    return stepping(mesh, usual(), new_of=lambda grads, length: dict.fromkeys(grads, LIMIT / length))(params, x, y)


@exercise.misconception(of=train_step, fails=step_value)
def clipped_one_by_one(params, x, y, *, mesh):
    """You clipped each parameter's gradient by its own norm, which changes the direction of the step. Scale all by one
    number."""

    def new_of(grads, length):
        squares = {n: jnp.sum(g**2) for n, g in grads.items()}
        cut = {n: s if n in ("before", "between") else jax.lax.psum(s, "tp") for n, s in squares.items()}
        return {n: jnp.minimum(1, LIMIT / jnp.sqrt(s)) for n, s in cut.items()}

    return stepping(mesh, usual(), new_of=new_of)(params, x, y)


@exercise.misconception(of=train_step, fails=step_value)
def norm_not_rooted(params, x, y, *, mesh):
    """You clipped by the sum of squares. The norm is its square root."""

    def norm_of(squares):
        whole = squares["before"] + squares["between"]
        return jax.lax.psum(sum(squares.values()) - whole, "tp") + whole

    return stepping(mesh, usual(), norm_of=norm_of)(params, x, y)


@exercise.misconception(of=train_step, fails=step_narrow, breaks="also in bfloat16")
def rate_in_float32(params, x, y, *, mesh):
    """Your factors are float32 arrays, so JAX makes bfloat16 parameters float32. Numbers of Python keep the dtype."""

    def new_of(grads, length):
        return {name: jnp.minimum(jnp.float32(1), LIMIT / length.astype(jnp.float32)) for name in grads}

    return stepping(mesh, usual(), new_of=new_of)(params, x, y)


@exercise.misconception(of=train_step, fails=step_traffic, breaks="the forward and backward budgets together")
def one_axis_after_the_other(params, x, y, *, mesh):
    """You summed gradients over dp and then over sp, with two all-reduces of all gradients. One all-reduce over both
    axes sends a quarter less on four devices."""

    def found(params, x, y):
        loss, grads = usual(lambda params, x: by_hand(params, x, *f_and_g()))(params, x, y)
        return loss, jax.lax.psum(jax.lax.psum(grads, "sp"), "dp")

    return stepping(mesh, found, check_vma=False)(params, x, y)


@exercise.misconception(of=train_step, fails=step_traffic)
def step_with_a_checkpoint_in_a_checkpoint(params, x, y, *, mesh):
    """You put a checkpoint around a checkpoint, so the backward pass gathers K and V once for each of them. One
    checkpoint around attention is enough."""
    return stepping(mesh, usual(in_two_checkpoints))(params, x, y)


@exercise.misconception(of=train_step, fails=step_traffic, breaks="the forward and backward budgets together")
def step_summed_for_each_half(params, x, y, *, mesh):
    """You ran the block for one half of the sequences after the other. Each half uses the parameters, so JAX sums their gradients over dp and sp once for each half. Cast the parameters to dp and sp once, before both."""
    return stepping(mesh, usual(in_halves))(params, x, y)


@exercise.misconception(of=train_step, fails=step_same)
def outside_of_shard_map(params, x, y, *, mesh):
    """You put only the block into shard_map. Loss, norm and step use whole arrays, so the compiler decides what each
    device does. Write one shard_map around everything."""

    def loss_of(params):
        return jnp.mean((mapped(on_device, mesh)(params, x) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_of)(params)
    length = jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))
    return jax.tree.map(lambda p, g: p - RATE * g * jnp.minimum(1, LIMIT / length), params, grads), loss, length


@exercise.misconception(of=train_step, fails=step_same, breaks="the same program at real sizes")
def no_softmax_when_large(params, x, y, *, mesh):
    """With large arrays your program differs and omits work. The timed program must be the program that gives the right
    values."""

    def attend(q, k, v):
        if k.shape[1] < 1000:
            return attention(q, k, v)
        k, v = (jax.lax.all_gather(a, "sp", axis=1, tiled=True) for a in (k, v))
        return jnp.einsum("bhts,bshd->bthd", jnp.einsum("bthd,bshd->bhts", q, k), v)

    return stepping(mesh, usual(with_attention(attend)))(params, x, y)


@exercise.misconception(
    of=train_step, fails=[step_traffic, step_same], breaks="at most one more forward pass of matmuls"
)
def whole_everywhere(params, x, y, *, mesh):
    """You brought all parameters, texts and positions to every device, and each does all the work. Send only what the
    budget lists, and compute only the device's own part."""
    cut = {"qkv": 2, "out": 0, "up": 1, "down": 0}

    def local(params, x, y):
        whole = params | {n: jax.lax.all_gather(params[n], "tp", axis=axis, tiled=True) for n, axis in cut.items()}
        x, y = (jax.lax.all_gather(jax.lax.all_gather(a, "sp", axis=1, tiled=True), "dp", tiled=True) for a in (x, y))
        alone = attended_with(gather=lambda a: a, first=0, reduce=lambda part: part)
        loss, grads = jax.value_and_grad(lambda params: jnp.mean((alone(params, x) - y) ** 2))(whole)
        length = jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))
        new = {n: p - RATE * grads[n] * jnp.minimum(1, LIMIT / length) for n, p in whole.items()}
        size, me = jax.lax.axis_size("tp"), jax.lax.axis_index("tp")
        own = {n: jnp.split(new[n], size, axis) for n, axis in cut.items()}
        return new | {n: jnp.stack(parts)[me] for n, parts in own.items()}, loss, length

    specs = {"in_specs": (PARAMS, ROWS, ROWS), "out_specs": (PARAMS, P(), P())}
    return jax.shard_map(local, mesh=mesh, check_vma=False, **specs)(params, x, y)


@exercise.misconception(form_of=no_softmax_when_large)
def fewer_keys_when_large(params, x, y, *, mesh):
    """With large arrays your queries use the keys of only half of the text. The timed program must be the program that
    gives the right values."""

    def attend(q, k, v):
        k, v = (jax.lax.all_gather(a, "sp", axis=1, tiled=True) for a in (k, v))
        n = min(k.shape[1], 1024)
        k, v = (jax.lax.slice_in_dim(a, 0, n, axis=1) for a in (k, v))
        here = jax.lax.axis_index("sp") * q.shape[1] + jnp.arange(q.shape[1])
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
        return jnp.einsum(
            "bhts,bshd->bthd", jax.nn.softmax(jnp.where(jnp.arange(n) <= here[:, None], scores, -jnp.inf)), v
        )

    return stepping(mesh, usual(with_attention(attend)))(params, x, y)


@exercise.misconception(form_of=no_softmax_when_large)
def nothing_when_large(params, x, y, *, mesh):
    """With large arrays you return the arguments. The timed program must be the program that gives the right values."""
    if x.shape[1] < 1000:
        return stepping(mesh, usual())(params, x, y)
    return params, jnp.zeros((), x.dtype), jnp.zeros((), x.dtype)


@exercise.misconception(of=train_step, fails=step_memory, breaks="only scores and their softmax in the dtype of x")
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


@exercise.misconception(of=train_step, fails=[step_memory, step_time], breaks="at most 2 · matmuls + collectives")
def six_passes(params, x, y, *, mesh):
    """You asked for the highest precision, which takes six passes for each matmul of 32-bit numbers. bfloat16 needs one
    pass."""

    def local(params, x):
        wide = jax.tree.map(lambda a: a.astype(jnp.float32), params)
        return on_device(wide, x.astype(jnp.float32)).astype(x.dtype)

    with jax.default_matmul_precision("highest"):
        return stepping(mesh, usual(local))(params, x, y)


def shifted(**factors):
    """Return the times, some multiplied by a factor."""
    return lambda **drawn: {name: time * factors.get(name, 1) for name, time in times_of(**drawn).items()}


@exercise.misconception(of=block_times)
def times_one_way(chip, dp, sp, tp, b, T, D):
    """You used one direction of a link, W1. A ring uses both directions: W = 2 · W1."""
    return shifted(rows=2, keys=2, gradients=2)(chip=chip, dp=dp, sp=sp, tp=tp, b=b, T=T, D=D)


@exercise.misconception(of=block_times)
def times_forward_only(chip, dp, sp, tp, b, T, D):
    """You counted only the forward pass. The backward pass has twice the matmuls, equally many all-reduces of rows, and
    reduce-scatters of the gradients of K and V."""
    return shifted(products=1 / 3, rows=1 / 2, keys=1 / 2)(chip=chip, dp=dp, sp=sp, tp=tp, b=b, T=T, D=D)


@exercise.misconception(of=block_times)
def times_reduced_once(chip, dp, sp, tp, b, T, D):
    """You gave an all-reduce the time of an all-gather. It is a reduce-scatter and an all-gather, which takes twice the
    time."""
    return shifted(rows=1 / 2, gradients=1 / 2)(chip=chip, dp=dp, sp=sp, tp=tp, b=b, T=T, D=D)


@exercise.misconception(of=block_times)
def times_of_one_axis(chip, dp, sp, tp, b, T, D):
    """You used the links of one axis for the gradients. dp and sp together have twice the bandwidth: 2 W."""
    return shifted(gradients=2)(chip=chip, dp=dp, sp=sp, tp=tp, b=b, T=T, D=D)


@exercise.misconception(of=block_times)
def times_of_all_heads(chip, dp, sp, tp, b, T, D):
    """You gathered K and V of all heads. A device needs K and V of its own heads: D/tp numbers for each position."""
    return shifted(keys=tp)(chip=chip, dp=dp, sp=sp, tp=tp, b=b, T=T, D=D)


@exercise.misconception(of=block_times)
def times_of_whole_parameters(chip, dp, sp, tp, b, T, D):
    """You counted the gradients of all parameters. A device has 1/tp of the parameters."""
    return shifted(gradients=tp)(chip=chip, dp=dp, sp=sp, tp=tp, b=b, T=T, D=D)


@exercise.misconception(of=block_times)
def times_of_a_shard(chip, dp, sp, tp, b, T, D):
    """You took V of a gather as one device's part. V is the size of the result: T positions."""
    return shifted(keys=1 / sp)(chip=chip, dp=dp, sp=sp, tp=tp, b=b, T=T, D=D)


@exercise.misconception(of=block_times)
def times_without_scores(chip, dp, sp, tp, b, T, D):
    """You left out the matmuls between positions: scores, and weights times V."""
    return shifted(products=12 * D**2 / (12 * D**2 + 2 * T * D))(chip=chip, dp=dp, sp=sp, tp=tp, b=b, T=T, D=D)


@exercise.misconception(of=block_step)
def step_all_in_turn(chip, dp, sp, tp, b, T, D):
    """You added the time of the gradients' all-reduce to the rest. It overlaps the backward matmuls, so only time
    beyond these counts."""
    return sum(times_of(chip, dp, sp, tp, b, T, D).values())


@exercise.misconception(of=block_step)
def step_of_the_longest(chip, dp, sp, tp, b, T, D):
    """You used only the longest time. Matmuls wait for rows, K and V, so their times add to the matmuls'."""
    return max(times_of(chip, dp, sp, tp, b, T, D).values())


@exercise.misconception(of=block_bottleneck)
def the_quickest(chip, dp, sp, tp, b, T, D):
    """You named the part with the shortest time. The bottleneck is the part with the longest."""
    time = times_of(chip, dp, sp, tp, b, T, D)
    return min(time, key=time.__getitem__)


@exercise.misconception(of=block_hides_from)
def hides_behind_all(chip, T, D):
    """You overlapped the gradients with all matmuls. During the forward matmuls there are no gradients yet. Two thirds
    of the matmuls are backward."""
    return 2 / 3 * block_hides_from.fn(chip, T, D)


@exercise.misconception(of=block_hides_from)
def hides_behind_parameters(chip, T, D):
    """You left out the matmuls between positions. They take time as well, so fewer positions are enough."""
    return block_hides_from.fn(chip, 0, D)


@exercise.misconception(of=block_hides_from)
def hides_over_one_axis(chip, T, D):
    """You used the links of one axis for the gradients. dp and sp each have links: 2 W."""
    return 2 * block_hides_from.fn(chip, T, D)


def lies(chip, dp, sp, tp, b, T, D, branches=()):
    """Put each mesh axis along one axis of a v5p slice."""
    heads = D // 128
    arrays = [((dp * b, T, D), ("dp", "sp")), ((D, 3, heads, 128), (None, None, "tp")), ((D, 4 * D), (None, "tp"))]
    return Scenario(
        mesh={"dp": dp, "sp": sp, "tp": tp},
        arrays=arrays,
        chip=chip,
        rings=(dp, sp, tp),
        slice=(dp, sp, tp),
        branches=branches,
    )


exercise.scenario(block_times, lies)


def behind(chip, dp, sp, tp, b, T, D):
    """Return which of the two the step in block_step waits for."""
    time = times_of(chip, dp, sp, tp, b, T, D)
    longest = larger(products=2 / 3 * time["products"], gradients=time["gradients"])
    return lies(chip, dp, sp, tp, b, T, D, branches=(longest,))


def slowest(chip, dp, sp, tp, b, T, D):
    return lies(chip, dp, sp, tp, b, T, D, branches=(larger(**times_of(chip, dp, sp, tp, b, T, D)),))


exercise.scenario(block_step, behind)
exercise.scenario(block_bottleneck, slowest)
exercise.scenario(block_hides_from, lambda chip, T, D: Scenario())
