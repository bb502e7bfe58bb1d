"""M1: calls, checks, misconceptions and alternatives."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

from grader.exercise import Scenario, array, larger, normal
from grader.expect import (
    Failure,
    between,
    expect_close,
    expect_flops,
    expect_shard_map,
    expect_spec,
    expect_traffic,
    needed,
)
from m1_block import PARAMS, ROWS, attention, block, block_bottleneck, block_times, exercise, norm, on_device, times_of

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
def params():
    """Return the block's parameters, as arrays to draw."""
    shapes = {
        "before": ("D",), "qkv": ("D", 3, "H", "d"), "out": ("H", "d", "D"),
        "between": ("D",), "up": ("D", "F"), "down": ("F", "D"),
    }  # fmt: skip
    draws = {"qkv": of_heads, "out": weights, "up": weights, "down": weights}
    return {
        name: array(*shape, draw=draws[name], spec=PARAMS[name]) if name in draws else normal(*shape)
        for name, shape in shapes.items()
    }


rows = normal("B", "T", "D", spec=ROWS)
CUBE = {"dp": 2, "tp": 2, "sp": 2}
there_and_back = exercise.call(
    block, params=params(), x=rows, wrt=("params", "x"), cotangent=rows, meshes=[CUBE],
    # With few positions and a large D, a second gather of K and V sends less than a needless sum does, and rows
    # are larger than K and V.
    dims={"B": 6, "T": 4, "D": 336, "H": 8, "d": 2, "F": 58},
    hidden_dims={"B": 10, "T": 6, "D": 600, "H": 14, "d": 3, "F": 70},
)  # fmt: skip
long = exercise.call(
    block, params=params(), x=rows, wrt=("params", "x"), cotangent=rows, meshes=[{"dp": 1, "tp": 2, "sp": 4}],
    # With many texts, K and V are a large part of what a device sends over sp.
    dims={"B": 7, "T": 12, "D": 50, "H": 6, "d": 5, "F": 4},
    hidden_dims={"B": 9, "T": 20, "D": 82, "H": 6, "d": 7, "F": 10},
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
    """Compare the gradients of x and all parameters with those of one device, and each gradient's layout with its
    argument's layout."""
    grads, dx = on_one_device(seen.params, seen.x)[1](seen.cotangent)
    expect_close(seen.grads, {"params": grads, "x": dx})
    expect_spec(seen.grads, {"params": PARAMS, "x": ROWS})


@exercise.check(there_and_back, points=1.25, public=True)
def block_value(seen):
    """the result equals that of one device, in layout ROWS"""
    expect_close(seen.out, on_one_device(seen.params, seen.x)[0])
    expect_spec(seen.out, ROWS)
    expect_shard_map(seen)


@exercise.check(there_and_back, points=1.25, public=True, after=block_value)
def block_gradients(seen):
    """the gradients of x and all parameters equal those of one device, in their arguments' layouts"""
    expect_gradients(seen)


# -- budgets -----------------------------------------------------------------------------------


@exercise.helper
def sizes_of(seen):
    """Return the sizes of a device's rows, K and parameters."""
    d, mesh = seen.dims, seen.mesh
    positions = d["B"] * d["T"] // (mesh["dp"] * mesh["sp"])
    heads, hidden = d["H"] // mesh["tp"], d["F"] // mesh["tp"]
    cut = 4 * d["D"] * heads * d["d"] + 2 * d["D"] * hidden
    return positions * d["D"], positions * heads * d["d"], cut + 2 * d["D"]


@exercise.helper
def due_over(seen, gathers, reduces, sums):
    """Return the bytes that a device sends over tp, over sp, and over dp and sp together, for the given counts of
    gathers of K, all-reduces of rows and sums of parameters."""
    rows, keys, parameters = sizes_of(seen)
    tp, sp, both = seen.mesh["tp"], seen.mesh["sp"], seen.mesh["dp"] * seen.mesh["sp"]
    over_tp = reduces * 2 * (tp - 1) / tp * (rows + bool(sums) * seen.dims["D"])
    return (4 * n for n in (over_tp, gathers * (sp - 1) * keys, sums * 2 * (both - 1) / both * parameters))


@exercise.helper
def with_joint_sums(seen, tp, both):
    """Return the budgets over tp, and over dp and sp, of a program that sums gradients of `before` and `between` over
    all three axes at once. Such an all-reduce replaces one over tp and one over dp and sp, and counts for both."""
    n, k = seen.mesh["tp"], seen.mesh["dp"] * seen.mesh["sp"]
    share, over_tp, over_both = (2 * (size - 1) / size for size in (n * k, n, k))
    joint = seen.sends(seen.only(axis="tp").only(axis="sp").collectives).most
    replaced = min(joint / share, 4 * 2 * seen.dims["D"])
    return tp + replaced * (share - over_tp), both + replaced * (share - over_both)


@exercise.helper
def expect_sent(seen, gathers, reduces, sums):
    """Require at most the bytes of `due_over` over tp, over dp, and over dp or sp, besides single numbers and padding."""
    few, dp = 32, seen.mesh["dp"]
    rows, keys, _ = due_over(seen, 2, reduces, 0)  # a backward pass need not gather K and V again
    tp, sp, gradients = due_over(seen, gathers, reduces, sums)
    right, wrong, near, both = keys + gradients, 1.5 * sp + gradients, "", gradients
    if sums:
        tp, both = with_joint_sums(seen, tp, gradients)
    if sums and dp > 1:
        # Without K and V, wrong / right is (2 - 1/a - 1/b) / (1 - 1/(a b)) on dp=a, sp=b: 4/3 on 2 · 2. With a = 2 this ratio
        # is below 3/2 for every b. On 8 devices 10/7 (2 · 4, tp=1) is the largest; 3 · 3 devices would give 3/2.
        near = "a sum over dp and then over sp sends 2 · 1/2 + 2 · 1/2 of the gradients, in place of 2 · 3/4"
        wrong = keys + 4 / 3 * gradients
    expect_traffic(seen, at_most=needed(rows, 1.5 * rows, at=tp + few), axis="tp")
    if dp > 1:
        expect_traffic(seen, at_most=needed(both, 2 * both, at=both + few) if sums else 0, axis="dp")
    expect_traffic(seen, at_most=needed(right, wrong, at=sp + both + few, near=near), axis=("dp", "sp"))


@exercise.check(long, points=0.5, public=True, after=block_value)
def block_work(seen):
    """on sp=4, dp=1 the result equals that of one device, and a device does at most the matmuls of four forward passes"""
    expect_close(seen.out, on_one_device(seen.params, seen.x)[0])
    expect_shard_map(seen)
    rows, keys, parameters = sizes_of(seen)
    norms = 15 * rows  # a multiplication of two numbers counts as part of a matmul
    work = 2 * rows * (parameters / seen.dims["D"] - 2) + 4 * keys * seen.dims["T"]
    every_head = seen.mesh["tp"] * work  # wrong: each device computes all heads and units
    expect_flops(seen, at_most=between(3 * (work + norms), 3 * (every_head + norms), at=4.5 * (work + norms)))


@exercise.check(there_and_back, points=0.75, public=True, after=block_work)
def block_forward(seen):
    """forward pass: two all-reduces of rows over tp; over sp each device receives K and V once; nothing over dp"""
    expect_sent(seen.only(backward=False), 2, 2, 0)


@exercise.check(there_and_back, points=0.75, public=True, after=[block_gradients, block_forward])
def block_backward(seen):
    """backward pass: two all-reduces of rows over tp, K and V twice over sp, the parameters' gradients once over dp and sp"""
    expect_sent(seen.only(backward=True), 4, 2, 1)


@exercise.check(long, points=0.5, after=block_backward)
def block_long(seen):
    """on sp=4, dp=1 the gradients equal those of one device, and all budgets hold"""
    expect_gradients(seen)
    expect_sent(seen.only(backward=False), 2, 2, 0)
    expect_sent(seen.only(backward=True), 4, 2, 1)


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
def keys_round_a_ring(params, x, *, mesh):
    """Ring attention over sp (J2), differentiated by JAX."""
    return mapped(with_attention(ring), mesh)(params, x)


def scales_cast(params):
    """Return the parameters with scales cast to vary over tp, so that JAX sums their gradients over tp."""
    return params | {name: jax.lax.pcast(params[name], "tp", to="varying") for name in ("before", "between")}


@exercise.alternative()
def cast_by_hand(params, x, *, mesh):
    """Use three matmuls for q, k and v after one norm. The norm varies over tp, because its scale is cast to vary over tp."""

    def local(params, x):
        params = scales_cast(params)
        n = norm(x, params["before"])
        q, k, v = (jnp.tensordot(n, params["qkv"][:, i], 1) for i in range(3))
        return finished(params, x, attention(q, k, v))

    return mapped(local, mesh)(params, x)


@exercise.alternative()
def scales_summed_at_once(params, x, *, mesh):
    """Both norms vary over tp, so JAX sums the gradient of each scale over all three axes with one all-reduce."""

    def local(params, x):
        wide = lambda x: jax.lax.pcast(x, "tp", to="varying")  # noqa: E731
        q, k, v = jnp.einsum("btd,dchk->cbthk", norm(wide(x), params["before"]), params["qkv"])
        x = x + over_tp(jnp.einsum("bthk,hkd->btd", attention(q, k, v), params["out"]))
        return x + over_tp(jax.nn.silu(norm(wide(x), params["between"]) @ params["up"]) @ params["down"])

    return mapped(local, mesh)(params, x)


@exercise.alternative()
def keys_gathered_again(params, x, *, mesh):
    """With a checkpoint around attention, the backward pass gathers K and V again."""
    return mapped(with_attention(jax.checkpoint(attention)), mesh)(params, x)


def attention_by_hand(tied):
    """Return attention whose own backward pass gathers K and V again. ``tied`` maps the operands and the cotangent to
    the values that the backward pass uses."""
    attend = jax.custom_vjp(attention)

    def back(kept, ct):
        kept, ct = tied(kept, ct)
        return jax.vjp(attention, *kept)[1](ct)

    attend.defvjp(lambda *qkv: (attention(*qkv), qkv), back)
    return attend


@exercise.alternative()
def keys_gathered_again_by_hand(params, x, *, mesh):
    """A custom_vjp gathers K and V again. A barrier ties these gathers to the cotangent."""
    attend = attention_by_hand(lambda kept, ct: jax.lax.optimization_barrier((kept, ct)))
    return mapped(with_attention(attend), mesh)(params, x)


@exercise.alternative()
def matmuls_computed_again(params, x, *, mesh):
    """A checkpoint keeps only the results of collectives, so the backward pass computes all matmuls again."""
    names = "collective"
    attend = lambda q, k, v: attend_gathered(q, *(checkpoint_name(gathered(a), names) for a in (k, v)))  # noqa: E731
    local = with_attention(attend, reduce=lambda part: checkpoint_name(jax.lax.psum(part, "tp"), names))
    kept = jax.checkpoint_policies.save_only_these_names(names)
    return mapped(jax.checkpoint(local, policy=kept), mesh)(params, x)


# -- misconceptions ----------------------------------------------------------------------------


def gathered(a):
    """Return K or V of all positions."""
    return jax.lax.all_gather(a, "sp", axis=1, tiled=True)


def attend_gathered(
    q,
    k,
    v,
    first=None,
    over=None,
    sees=lambda there, here: there <= here,
    weigh=lambda scores, seen: jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)),
):
    """Return attention to gathered keys, perhaps with another first position, scale, mask or softmax."""
    start = jax.lax.axis_index("sp") * q.shape[1] if first is None else first
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / (over or q.shape[-1] ** 0.5)
    seen = sees(jnp.arange(k.shape[1]), (start + jnp.arange(q.shape[1]))[:, None])
    return jnp.einsum("bhts,bshd->bthd", weigh(scores, seen), v)


def attended_with(gather=gathered, **changes):
    """Return one device's function with another gather of K and V, or changes of `attend_gathered`."""
    return with_attention(lambda q, k, v: attend_gathered(q, gather(k), gather(v), **changes))


@exercise.misconception(fails=block_value, breaks="the result equals that of one device")
def masked_by_the_block(params, x, *, mesh):
    """Either: you masked by row numbers within the block. The block's first row is position axis_index('sp') * T/sp of the
    text. Or: you shifted the positions of the keys too. Gathered keys begin at position 0."""
    return mapped(attended_with(first=0), mesh)(params, x)


@exercise.misconception(fails=block_value)
def masked_by_the_index_along_dp(params, x, *, mesh):
    """You computed the first position from the index along dp, which cuts the texts. Axis sp cuts the positions: use axis_index('sp')."""

    def attend(q, k, v):
        first = jax.lax.axis_index("dp") * q.shape[1]
        return attend_gathered(q, gathered(k), gathered(v), first=first)

    return mapped(with_attention(attend), mesh)(params, x)


@exercise.misconception(fails=block_value)
def attended_at_home(params, x, *, mesh):
    """Your queries use only the keys of their own device. Keys of earlier positions are on other devices along sp:
    gather K and V."""
    return mapped(attended_with(gather=lambda a: a, first=0), mesh)(params, x)


@exercise.misconception(fails=block_value)
def gathered_over_tp(params, x, *, mesh):
    """You gathered K and V over tp. Devices along tp have other heads at these positions. The other positions are on
    devices along sp."""
    return mapped(attended_with(lambda a: jax.lax.all_gather(a, "tp", axis=1, tiled=True)), mesh)(params, x)


@exercise.misconception(fails=block_value)
def gathered_texts(params, x, *, mesh):
    """You gathered K and V over dp. Devices along dp have other texts, and no text needs another text."""

    def gather(a):
        both = jax.lax.all_gather(a, ("dp", "sp"), axis=1, tiled=True)
        return both[:, : a.shape[1] * jax.lax.axis_size("sp")]

    return mapped(attended_with(gather), mesh)(params, x)


@exercise.misconception(fails=block_value)
def not_scaled(params, x, *, mesh):
    """You did not divide the scores by the square root of d."""
    return mapped(attended_with(over=1.0), mesh)(params, x)


@exercise.misconception(fails=block_value)
def scaled_by_all_heads(params, x, *, mesh):
    """You divided the scores by the square root of D. A head's queries have d numbers."""

    def local(params, x):
        return attended_with(over=x.shape[-1] ** 0.5)(params, x)

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_value)
def scaled_by_d(params, x, *, mesh):
    """You divided the scores by d. Divide by the square root of d."""
    return mapped(lambda params, x: attended_with(over=params["qkv"].shape[-1])(params, x), mesh)(params, x)


@exercise.misconception(fails=block_value, breaks="a position sees no later one")
def not_masked(params, x, *, mesh):
    """Your queries use the keys of later positions. Attention is causal: mask the scores of positions after the query's
    position."""
    return mapped(attended_with(weigh=lambda scores, seen: jax.nn.softmax(scores)), mesh)(params, x)


@exercise.misconception(fails=block_value)
def own_position_masked(params, x, *, mesh):
    """You masked the query's own position. A query uses the keys of its own position and of all positions before it."""
    masked = attended_with(
        sees=lambda there, here: there < here,
        weigh=lambda scores, seen: jax.nn.softmax(jnp.where(seen, scores, -1e9)),
    )
    return mapped(masked, mesh)(params, x)


@exercise.misconception(form_of=own_position_masked)
def own_position_masked_with_infinity(params, x, *, mesh):
    """Like `own_position_masked`, with minus infinity: the first position of a text has no key left."""
    return mapped(attended_with(sees=lambda there, here: there < here), mesh)(params, x)


@exercise.misconception(fails=block_value)
def positions_interleaved(params, x, *, mesh):
    """Your gathered keys are not in the order of the text: keys of different devices alternate. Keep the keys of each
    device together: use `all_gather` along the positions with tiled=True."""

    def gather(a):
        parts = jax.lax.all_gather(a, "sp", axis=2)
        return parts.reshape(a.shape[0], -1, *a.shape[2:])

    return mapped(attended_with(gather=gather), mesh)(params, x)


@exercise.misconception(fails=block_value)
def earlier_positions_masked(params, x, *, mesh):
    """You masked the earlier positions and kept the later ones. Reverse the comparison."""
    return mapped(attended_with(sees=lambda there, here: there >= here), mesh)(params, x)


@exercise.misconception(fails=block_value)
def masked_with_zero(params, x, *, mesh):
    """You set masked scores to 0, and the softmax still gives these positions weight. Set masked scores to minus
    infinity."""
    return mapped(attended_with(weigh=lambda scores, seen: jax.nn.softmax(jnp.where(seen, scores, 0.0))), mesh)(
        params, x
    )


@exercise.misconception(fails=block_value)
def masked_after_softmax(params, x, *, mesh):
    """You masked the weights after the softmax, so a query's weights do not sum to 1. Mask the scores before the
    softmax."""
    masked = attended_with(weigh=lambda scores, seen: jnp.where(seen, jax.nn.softmax(scores), 0.0))
    return mapped(masked, mesh)(params, x)


@exercise.misconception(fails=block_value)
def softmax_over_queries(params, x, *, mesh):
    """Your softmax runs over queries. The weights of one query, over all its keys, sum to 1."""
    masked = attended_with(weigh=lambda scores, seen: jax.nn.softmax(jnp.where(seen, scores, -1e9), axis=-2))
    return mapped(masked, mesh)(params, x)


@exercise.misconception(form_of=softmax_over_queries)
def softmax_over_queries_with_infinity(params, x, *, mesh):
    """Like `softmax_over_queries`, with minus infinity: a key that no query of the device sees gives NaN."""
    masked = attended_with(weigh=lambda scores, seen: jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-2))
    return mapped(masked, mesh)(params, x)


@exercise.misconception(fails=block_value)
def keys_and_queries_swapped(params, x, *, mesh):
    """You took `qkv` in another order than q, k, v: queries and keys are swapped."""
    attend = attended_with()
    order = jnp.array([1, 0, 2])
    return mapped(lambda params, x: attend(params | {"qkv": params["qkv"][:, order]}, x), mesh)(params, x)


@exercise.misconception(fails=block_value)
def values_and_queries_swapped(params, x, *, mesh):
    """You took `qkv` in another order than q, k, v: queries and values are swapped."""
    attend = attended_with()
    order = jnp.array([2, 1, 0])
    return mapped(lambda params, x: attend(params | {"qkv": params["qkv"][:, order]}, x), mesh)(params, x)


def changed(first=None, second=None, after=lambda x, scale: x, act=lambda n, up, down: jax.nn.silu(n @ up) @ down):
    """Return one device's function with other norms, a norm after each sum, or another MLP."""

    def local(params, x):
        q, k, v = jnp.einsum("btd,dchk->cbthk", (first or norm)(x, params["before"]), params["qkv"])
        part = jnp.einsum("bthk,hkd->btd", attention(q, k, v), params["out"])
        x = after(x + jax.lax.psum(part, "tp"), params["before"])
        more = jax.lax.psum(act((second or norm)(x, params["between"]), params["up"], params["down"]), "tp")
        return after(x + more, params["between"])

    return local


@exercise.misconception(fails=block_value, breaks="x ← x + attention(norm(x))")
def first_norm_left_out(params, x, *, mesh):
    """You left out the norm before attention."""
    return mapped(changed(first=lambda x, scale: x), mesh)(params, x)


@exercise.misconception(fails=block_value, breaks="x ← x + MLP(norm(x))")
def second_norm_left_out(params, x, *, mesh):
    """You left out the norm before the MLP."""
    return mapped(changed(second=lambda x, scale: x), mesh)(params, x)


@exercise.misconception(form_of=second_norm_left_out)
def scaled_without_the_second_norm(params, x, *, mesh):
    """Like `second_norm_left_out`, but x is multiplied by the scale."""
    return mapped(changed(second=lambda x, scale: x * scale), mesh)(params, x)


@exercise.misconception(fails=block_value)
def normed_after_the_sum(params, x, *, mesh):
    """You normed the sums x + attention(x) and x + MLP(x). Norm the inputs of attention and MLP, and leave the sums as
    they are."""
    bare = lambda x, scale: x  # noqa: E731
    return mapped(changed(first=bare, second=bare, after=norm), mesh)(params, x)


@exercise.misconception(fails=block_value, breaks="`silu(n @ up) @ down`")
def silu_after_down(params, x, *, mesh):
    """You applied silu to the result of `down`. Apply silu between `up` and `down`."""
    return mapped(changed(act=lambda n, up, down: jax.nn.silu(n @ up @ down)), mesh)(params, x)


@exercise.misconception(fails=block_value)
def gelu_for_silu(params, x, *, mesh):
    """Your MLP uses gelu. Use silu."""
    return mapped(changed(act=lambda n, up, down: jax.nn.gelu(n @ up) @ down), mesh)(params, x)


@exercise.misconception(fails=block_value)
def relu_for_silu(params, x, *, mesh):
    """Your MLP uses relu. Use silu."""
    return mapped(changed(act=lambda n, up, down: jax.nn.relu(n @ up) @ down), mesh)(params, x)


def summed(attended, projected_down):
    """Return one device's function with these functions in place of both sums over tp."""

    def local(params, x):
        x = attended(x, jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"]), params)
        return x + projected_down(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"])

    return local


def over_tp(part):
    return jax.lax.psum(part, "tp")


@exercise.misconception(fails=block_value)
def averaged_attention(params, x, *, mesh):
    """You averaged the results of `out` over tp. Each device has the part of its own heads: add the parts with psum."""
    local = summed(lambda x, part, _: x + jax.lax.pmean(part, "tp"), over_tp)
    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_value)
def averaged_mlp(params, x, *, mesh):
    """You averaged the results of `down` over tp. Each device has the part of its own units: add the parts with
    psum."""
    local = summed(lambda x, part, _: x + over_tp(part), lambda part: jax.lax.pmean(part, "tp"))
    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_value)
def averaged_both(params, x, *, mesh):
    """You averaged the results of `out` and of `down` over tp. Each device has the parts of its own heads and units:
    add the parts with psum."""
    local = summed(lambda x, part, _: x + jax.lax.pmean(part, "tp"), lambda part: jax.lax.pmean(part, "tp"))
    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_value)
def residual_left_out(params, x, *, mesh):
    """You left out x in x + attention(norm(x))."""
    return mapped(summed(lambda x, part, _: over_tp(part), over_tp), mesh)(params, x)


@exercise.misconception(fails=block_value)
def second_residual_left_out(params, x, *, mesh):
    """You left out x in x + MLP(norm(x))."""

    def local(params, x):
        x = x + over_tp(jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"]))
        return over_tp(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"])

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_value)
def one_scale_for_both(params, x, *, mesh):
    """You used the scale `before` for both norms. The norm before the MLP has the scale `between`."""
    return mapped(lambda params, x: on_device(params | {"between": params["before"]}, x), mesh)(params, x)


@exercise.misconception(fails=block_value)
def scales_swapped(params, x, *, mesh):
    """You swapped the scales of the norms. The norm before attention has the scale `before`, and the norm before the MLP has the scale `between`."""
    other = {"before": "between", "between": "before"}
    return mapped(lambda params, x: on_device({n: params[other.get(n, n)] for n in params}, x), mesh)(params, x)


@exercise.misconception(fails=block_value)
def heads_summed(params, x, *, mesh):
    """You summed the results of the heads over tp before `out`. Each device along tp has other heads: sum only the results of `out`."""
    return mapped(with_attention(lambda q, k, v: over_tp(attention(q, k, v))), mesh)(params, x)


@exercise.misconception(fails=block_value)
def units_averaged(params, x, *, mesh):
    """You averaged MLP units over tp. Each device along tp has other units: sum only the results of `down`."""

    def local(params, x):
        x = x + over_tp(jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"]))
        units = jax.lax.pmean(norm(x, params["between"]) @ params["up"], "tp")
        return x + over_tp(jax.nn.silu(units) @ params["down"])

    return mapped(local, mesh)(params, x)


@exercise.misconception(form_of=units_averaged)
def units_summed(params, x, *, mesh):
    """You summed MLP units over tp. Each device along tp has other units: sum only the results of `down`."""

    def local(params, x):
        x = x + over_tp(jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"]))
        units = over_tp(norm(x, params["between"]) @ params["up"])
        return x + over_tp(jax.nn.silu(units) @ params["down"])

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_value)
def summed_over_positions_too(params, x, *, mesh):
    """You summed the results of `out`, and perhaps those of `down`, over sp too. Devices along sp have other positions: sum over tp alone."""

    def attended(x, part, _):
        return x + jax.lax.pcast(jax.lax.psum(part, ("sp", "tp")), "sp", to="varying")

    return mapped(summed(attended, over_tp), mesh)(params, x)


@exercise.misconception(form_of=summed_over_positions_too)
def both_summed_over_positions_too(params, x, *, mesh):
    """Like `summed_over_positions_too`, for both sums."""

    def total(part):
        return jax.lax.pcast(jax.lax.psum(part, ("sp", "tp")), "sp", to="varying")

    return mapped(summed(lambda x, part, _: x + total(part), total), mesh)(params, x)


@exercise.misconception(fails=block_value)
def residual_of_the_norm(params, x, *, mesh):
    """You added the result of attention or of the MLP to norm(x). Add this result to x."""
    local = summed(lambda x, part, params: norm(x, params["before"]) + over_tp(part), over_tp)
    return mapped(local, mesh)(params, x)


@exercise.misconception(form_of=residual_of_the_norm)
def residuals_of_both_norms(params, x, *, mesh):
    """Like `residual_of_the_norm`, for attention and the MLP."""

    def local(params, x):
        part = jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"])
        n = norm(norm(x, params["before"]) + over_tp(part), params["between"])
        return n + over_tp(jax.nn.silu(n @ params["up"]) @ params["down"])

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_value, breaks="two all-reduces of a device's rows")
def summed_once_at_the_end(params, x, *, mesh):
    """You summed attention and MLP over tp together, at the end. The MLP needs the sum over all heads, so sum after
    `out` and after `down`."""

    def local(params, x):
        part = jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"])
        more = jax.nn.silu(norm(x + part, params["between"]) @ params["up"]) @ params["down"]
        return x + over_tp(part + more)

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_value)
def result_varies_over_tp(params, x, *, mesh):
    """JAX cannot show that the result is whole along tp. After `out` and after `down` each device has its own part of a
    sum: add the parts with a psum over tp."""
    return mapped(lambda params, x: finished(params, x, attention(*projected(params, x)), lambda part: part), mesh)(
        params, x
    )


@exercise.misconception(fails=block_value)
def never_summed_over_tp(params, x, *, mesh):
    """You kept a device's own part of the sum over heads, over MLP units, or over both. With check_vma=False JAX does not report
    this. Add the partial sums with a psum over tp, after `out` and after `down`."""

    def local(params, x):
        return finished(params, x, attention(*projected(params, x)), reduce=lambda part: part)

    return mapped(local, mesh, check_vma=False)(params, x)


@exercise.misconception(form_of=never_summed_over_tp)
def attention_not_summed(params, x, *, mesh):
    """Like `never_summed_over_tp`, for `out` alone."""
    return mapped(summed(lambda x, part, _: x + part, over_tp), mesh, check_vma=False)(params, x)


@exercise.misconception(form_of=never_summed_over_tp)
def mlp_not_summed(params, x, *, mesh):
    """Like `never_summed_over_tp`, for `down` alone."""
    return mapped(summed(lambda x, part, _: x + over_tp(part), lambda part: part), mesh, check_vma=False)(params, x)


@exercise.misconception(fails=block_value)
def summed_over_everything(params, x, *, mesh):
    """You summed over all axes. Devices along dp and sp have different rows. Only devices along tp have partial sums of
    one result."""

    def reduce(part):
        total = jax.lax.psum(part, ("dp", "tp", "sp"))
        return jax.lax.pcast(total, ("dp", "sp"), to="varying")

    return mapped(lambda params, x: finished(params, x, attention(*projected(params, x)), reduce), mesh)(params, x)


@exercise.misconception(fails=block_value)
def residual_in_the_sum(params, x, *, mesh):
    """You added x before the sum over tp, so x counts once for each device along tp. Sum first, then add."""

    def local(params, x):
        heads = attention(*projected(params, x))
        x = jax.lax.psum(x + jnp.einsum("bthk,hkd->btd", heads, params["out"]), "tp")
        return x + jax.lax.psum(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"], "tp")

    return mapped(local, mesh)(params, x)


@exercise.misconception(form_of=residual_in_the_sum)
def residual_in_both_sums(params, x, *, mesh):
    """Like `residual_in_the_sum`, for both sums."""

    def local(params, x):
        heads = attention(*projected(params, x))
        x = jax.lax.psum(x + jnp.einsum("bthk,hkd->btd", heads, params["out"]), "tp")
        return jax.lax.psum(x + jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"], "tp")

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_value)
def residual_in_the_second_sum(params, x, *, mesh):
    """You added x before the sum over tp after `down`, so x counts once for each device along tp. Sum first, then
    add."""

    def local(params, x):
        x = x + jax.lax.psum(jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"]), "tp")
        return jax.lax.psum(x + jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"], "tp")

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_value)
def both_from_x(params, x, *, mesh):
    """Your MLP uses the input of the block. Use the sum of this input and attention."""

    def local(params, x):
        more = jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"]
        return x + jax.lax.psum(
            jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"]) + more, "tp"
        )

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_gradients)
def keys_without_gradients(params, x, *, mesh):
    """You stopped the gradients of K and V. The gradients of `qkv` and x need the gradients of K and V."""
    stopped = lambda a: gathered(jax.lax.stop_gradient(a))  # noqa: E731
    return mapped(attended_with(stopped), mesh)(params, x)


@exercise.misconception(fails=block_gradients, breaks="the gradients equal those of one device")
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


@exercise.misconception(fails=block_gradients)
def g_without_f(params, x, *, mesh):
    """You wrote your own backward pass for the psum. It does not sum the gradients of x from other heads and MLP units.
    Leave check_vma on, and leave the transposes to JAX."""
    _, g = f_and_g()
    return mapped(lambda params, x: by_hand(params, x, lambda a: a, g), mesh, check_vma=False)(params, x)


@exercise.misconception(fails=block_work, breaks="all rules hold on this mesh too")
def positions_for_two_devices(params, x, *, mesh):
    """You computed a device's first position for two devices along sp. The first position is axis_index('sp') times the
    number of positions that a device holds."""

    def attend(q, k, v):
        k, v = (jax.lax.all_gather(a, "sp", axis=1, tiled=True) for a in (k, v))
        return attend_gathered(q, k, v, first=jax.lax.axis_index("sp") * (k.shape[1] // 2))

    return mapped(with_attention(attend), mesh)(params, x)


@exercise.misconception(fails=block_long, breaks="all rules hold on this mesh too")
def all_blocks_at_each_hop(params, x, *, mesh):
    """At each hop you send all K and V that you hold. To the next device, send only the block that arrived last."""

    def gather(a):
        n, me = jax.lax.axis_size("sp"), jax.lax.axis_index("sp")
        held = a[None]
        for _ in range(n - 1):
            arrived = jax.lax.ppermute(held, "sp", [(i, (i + 1) % n) for i in range(n)])
            held = jnp.concatenate([a[None], arrived])
        whole = jnp.moveaxis(held[(me - jnp.arange(n)) % n], 0, 1)
        return whole.reshape(a.shape[0], -1, *a.shape[2:])

    return mapped(attended_with(gather), mesh)(params, x)


@exercise.misconception(fails=block_forward, breaks="a barrier")
def gathered_again_untied(params, x, *, mesh):
    """Either: you gather K and V again for the backward pass, and nothing ties these gathers to the backward pass. Use `jax.checkpoint`
    around attention, or pass the arrays and the cotangent through `jax.lax.optimization_barrier`. Or: you summed padded
    K and V, which sends twice as many bytes as a gather."""
    return mapped(with_attention(attention_by_hand(lambda kept, ct: (kept, ct))), mesh)(params, x)


@exercise.misconception(fails=block_forward, breaks="K and V of a device's heads are gathered")
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


def gathered_parameters(params):
    """Return the parameters, gathered over tp."""
    axis = {"qkv": 2, "out": 0, "up": 1, "down": 0}
    return params | {n: jax.lax.all_gather(params[n], "tp", axis=axis[n], tiled=True) for n in axis}


@exercise.misconception(fails=block_work, breaks="at most the matmul FLOPs of four forward passes")
def every_head_everywhere(params, x, *, mesh):
    """You gathered parameters over tp, so every device along tp computes all heads and MLP units. Each device uses its own heads and MLP
    units, and the results are summed over tp."""

    def local(params, x):
        whole = gathered_parameters(params)
        return finished(whole, x, attention(*projected(whole, x)), reduce=lambda part: part)

    return mapped(local, mesh, check_vma=False)(params, x)


def matrices_gathered(seen):
    """For `gives`: require a gather of `up` or `down` over tp. No other gathered array has two dimensions."""
    gathers = seen.only(kind="all_gather", axis="tp", backward=False).collectives
    if not any(len(shape) == 2 for one in gathers for _, shape in one.operands):
        raise Failure("this mistake gives other gathers")


@exercise.misconception(fails=block_forward, gives=matrices_gathered, breaks="two all-reduces of a device's rows")
def every_unit_everywhere(params, x, *, mesh):
    """You gathered parameters of the MLP over tp, so each device along tp computes all units. Each device uses its own
    units, and the results are summed over tp."""

    def local(params, x):
        x = x + over_tp(jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"]))
        up = jax.lax.all_gather(params["up"], "tp", axis=1, tiled=True)
        down = jax.lax.all_gather(params["down"], "tp", axis=0, tiled=True)
        return x + jax.nn.silu(norm(x, params["between"]) @ up) @ down

    return mapped(local, mesh, check_vma=False)(params, x)


@exercise.misconception(fails=block_forward, breaks="two all-reduces of a device's rows")
def reduced_each_matmul(params, x, *, mesh):
    """You gathered MLP units over tp before the second matmul, or summed more than the result of the second matmul. Cut
    `up` by columns and `down` by rows: one sum for both matmuls."""

    def local(params, x):
        x = x + jax.lax.psum(jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"]), "tp")
        own = jax.nn.silu(norm(x, params["between"]) @ params["up"])
        units, me = own.shape[-1], jax.lax.axis_index("tp")
        hidden = jax.lax.all_gather(own, "tp", axis=2, tiled=True)
        mine = jax.lax.dynamic_slice_in_dim(hidden, me * units, units, axis=2)
        return x + jax.lax.psum(mine @ params["down"], "tp")

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_forward)
def keys_of_every_head(params, x, *, mesh):
    """You gathered K or V over tp too, which brings you the heads of other devices. A device's queries use only its own
    heads."""

    def own_of_all(a):
        heads, me = a.shape[2], jax.lax.axis_index("tp")
        every = jax.lax.all_gather(gathered(a), "tp", axis=2, tiled=True)
        return jax.lax.dynamic_slice_in_dim(every, me * heads, heads, axis=2)

    return mapped(attended_with(own_of_all), mesh)(params, x)


@exercise.misconception(form_of=keys_of_every_head)
def keys_alone_of_every_head(params, x, *, mesh):
    """Like `keys_of_every_head`, for K alone."""

    def attend(q, k, v):
        heads, me = k.shape[2], jax.lax.axis_index("tp")
        every = jax.lax.all_gather(gathered(k), "tp", axis=2, tiled=True)
        return attend_gathered(q, jax.lax.dynamic_slice_in_dim(every, me * heads, heads, axis=2), gathered(v))

    return mapped(with_attention(attend), mesh)(params, x)


@exercise.misconception(fails=block_forward)
def results_of_heads_gathered(params, x, *, mesh):
    """You gathered the heads and `out` over tp, so each device computes the sum over all heads. Multiply the device's own
    heads by its own part of `out`, and sum the results over tp."""

    def local(params, x):
        heads = jax.lax.all_gather(attention(*projected(params, x)), "tp", axis=2, tiled=True)
        out = jax.lax.all_gather(params["out"], "tp", tiled=True)
        x = x + jax.lax.pmean(jnp.einsum("bthk,hkd->btd", heads, out), "tp")
        return x + over_tp(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"])

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_forward, breaks="forward, dp | nothing")
def texts_gathered(params, x, *, mesh):
    """You gathered rows over dp. No text needs another text, so nothing goes over dp in the forward pass."""

    def local(params, x):
        every = jax.lax.all_gather(norm(x, params["before"]), "dp", tiled=True)
        own = jax.lax.dynamic_slice_in_dim(every, jax.lax.axis_index("dp") * x.shape[0], x.shape[0])
        q, k, v = jnp.einsum("btd,dchk->cbthk", own, params["qkv"])
        return finished(params, x, attention(q, k, v))

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_forward)
def averaged_what_is_whole(params, x, *, mesh):
    """You summed or averaged x over tp, but x is whole on every device along tp. Sum only the results of `out` and
    `down`."""
    local = summed(
        lambda x, part, _: jax.lax.pmean(jax.lax.pcast(x + over_tp(part), "tp", to="varying"), "tp"), over_tp
    )
    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_work)
def parameters_gathered_over_tp(params, x, *, mesh):
    """You gathered parameters over tp, so every device along tp computes all heads and MLP units. Each device uses its own heads and MLP
    units, and the results are summed over tp."""

    def local(params, x):
        whole = gathered_parameters(params)
        return finished(whole, x, attention(*projected(whole, x)), reduce=lambda part: jax.lax.pmean(part, "tp"))

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_forward, breaks="forward, dp | nothing")
def parameters_averaged_first(params, x, *, mesh):
    """You averaged the parameters over dp. Devices along dp already hold equal parameters, and only their gradients are
    summed."""

    def local(params, x):
        return on_device({name: jax.lax.pmean(p, "dp") for name, p in params.items()}, x)

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_backward, breaks="at most the forward bytes")
def three_casts(params, x, *, mesh):
    """You multiply the norm's result by your heads' parameters in three matmuls. JAX then casts this result three
    times, and sums over tp three times in the backward pass. Use one matmul for q, k and v, or one cast of your own."""

    def local(params, x):
        n = norm(x, params["before"])
        q, k, v = (jnp.tensordot(n, params["qkv"][:, i], 1) for i in range(3))
        return finished(params, x, attention(q, k, v))

    return mapped(local, mesh)(params, x)


def of_gathered_rows(params, x, rows_of=lambda params, x: norm(x, params["before"])):
    """Compute one device's part of the block; its K and V are computed from gathered rows."""
    n = rows_of(params, x)
    q = jnp.einsum("btd,dhk->bthk", n, params["qkv"][:, 0])
    n = jax.lax.all_gather(n, "sp", axis=1, tiled=True)
    k, v = jnp.einsum("btd,dchk->cbthk", n, params["qkv"][:, 1:])
    return finished(params, x, attend_gathered(q, k, v))


@exercise.misconception(fails=block_work, breaks="at most the matmul FLOPs of four forward passes")
def keys_of_gathered_rows(params, x, *, mesh):
    """You gathered rows over sp, so every device along sp computes K and V of all positions. Compute K and V of the
    device's own rows, and gather K and V."""
    return mapped(of_gathered_rows, mesh)(params, x)


@exercise.misconception(form_of=keys_of_gathered_rows)
def keys_of_rows_cast_then_gathered(params, x, *, mesh):
    """You gathered rows over sp, so every device along sp computes K and V of all positions. Compute K and V of the
    device's own rows, and gather K and V."""
    cast = lambda params, x: jax.lax.pcast(norm(x, params["before"]), "tp", to="varying")  # noqa: E731
    return mapped(lambda params, x: of_gathered_rows(params, x, cast), mesh)(params, x)


@exercise.misconception(form_of=keys_of_gathered_rows)
def all_of_gathered_rows(params, x, *, mesh):
    """You gathered rows over sp, so every device along sp computes attention of all positions. Compute q, K and V of the
    device's own rows, and gather K and V."""

    def local(params, x):
        n = jax.lax.all_gather(norm(x, params["before"]), "sp", axis=1, tiled=True)
        heads = attend_gathered(*jnp.einsum("btd,dchk->cbthk", n, params["qkv"]), first=0)
        own = jax.lax.dynamic_slice_in_dim(heads, jax.lax.axis_index("sp") * x.shape[1], x.shape[1], axis=1)
        return finished(params, x, own)

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_backward)
def everything_in_a_checkpoint(params, x, *, mesh):
    """The backward pass sums rows over tp three times. Either: your checkpoint contains an all-reduce over tp, which the
    backward pass sends again. Put the checkpoint around attention alone, or around nothing. Or: you use a norm's result
    in two computations, and JAX casts it for each. Cast it once, with `jax.lax.pcast`."""
    return mapped(jax.checkpoint(on_device), mesh)(params, x)


def scattered_and_gathered(seen):
    """For `gives`: require reduce-scatters over tp in the forward pass, and all-gathers over tp in the backward pass."""
    scatters = seen.only(kind="reduce_scatter", axis="tp", backward=False).collectives
    if not scatters or not seen.only(kind="all_gather", axis="tp", backward=True).collectives:
        raise Failure("this mistake gives other collectives")


@exercise.misconception(fails=block_backward, gives=scattered_and_gathered, breaks="at most the forward bytes")
def rows_scattered_and_gathered(params, x, *, mesh):
    """You sum rows over tp with a reduce-scatter and an all-gather. In the backward pass JAX turns each reduce-scatter into an all-gather, in addition to the sums that it needs. Use psum, which sends nothing in the backward pass."""

    def in_two_steps(part):
        own = jax.lax.psum_scatter(part, "tp", scatter_dimension=2, tiled=True)
        return jax.lax.all_gather(own, "tp", axis=2, tiled=True, to="invarying")

    return mapped(with_attention(attention, reduce=in_two_steps), mesh)(params, x)


def summed_in_a_loop(seen):
    """For `gives`: require an all-reduce over dp that runs in each round of a loop of the backward pass."""
    sums = seen.only(kind="all_reduce", axis="dp", backward=True).collectives
    if not any(one.rounds.most > 1 for one in sums):
        raise Failure("this mistake gives other collectives")


@exercise.misconception(
    fails=block_backward, gives=summed_in_a_loop, breaks="one all-reduce of the block's parameter gradients"
)
def summed_for_each_text(params, x, *, mesh):
    """You use parameters in a loop, such as `jax.lax.map` over the texts. JAX then sums their gradients over dp and sp in each round. Cast the parameters to vary over dp and sp once, before the loop."""

    def local(params, x):
        x = x + jax.lax.psum(jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"]), "tp")
        mlp = lambda n: jax.nn.silu(n @ params["up"]) @ params["down"]  # noqa: E731
        return x + jax.lax.psum(jax.lax.map(mlp, norm(x, params["between"])), "tp")

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_backward, breaks="at most the forward bytes")
def without_types(params, x, *, mesh):
    """With check_vma=False JAX does not know which values are whole along an axis, so it sums more than needed. Leave
    check_vma on."""
    return mapped(on_device, mesh, check_vma=False)(params, x)


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


@exercise.misconception(fails=block_backward, breaks="at most twice the forward bytes")
def checkpoint_in_a_checkpoint(params, x, *, mesh):
    """You put a checkpoint around a checkpoint, so the backward pass gathers K and V once for each of them. One
    checkpoint around attention is enough."""
    return mapped(in_two_checkpoints, mesh)(params, x)


def cast_in_turn(params):
    """Return the parameters, cast to vary over dp and then over sp."""
    for axis in ("dp", "sp"):
        params = {name: jax.lax.pcast(p, axis, to="varying") for name, p in params.items()}
    return params


@exercise.misconception(fails=block_backward, breaks="one all-reduce of the block's parameter gradients")
def cast_to_one_axis_after_the_other(params, x, *, mesh):
    """You cast parameters to dp and to sp one after the other, so JAX sums their gradients over each axis separately.
    On four devices, one cast to both axes sends a quarter fewer bytes than two casts."""
    attend = with_attention(jax.checkpoint(attention))
    return mapped(lambda params, x: attend(scales_cast(cast_in_turn(params)), x), mesh)(params, x)


@exercise.misconception(form_of=cast_to_one_axis_after_the_other)
def cast_in_turn_without_a_checkpoint(params, x, *, mesh):
    """You cast parameters to dp and to sp one after the other, so JAX sums their gradients over each axis separately.
    On four devices, one cast to both axes sends a quarter fewer bytes than two casts."""
    return mapped(lambda params, x: on_device(cast_in_turn(params), x), mesh)(params, x)


def in_halves(params, x):
    """Compute one device's part of the block for the two halves of its texts, one after the other."""
    parts = [with_attention(jax.checkpoint(attention))(params, half) for half in jnp.array_split(x, 2)]
    return jnp.concatenate(parts)


@exercise.misconception(fails=block_backward)
def summed_for_each_half(params, x, *, mesh):
    """You ran the block twice, once for each half of the texts. JAX then sums the parameters' gradients over dp and sp twice. Cast the parameters to vary over dp and sp once, before both halves."""
    return mapped(lambda params, x: in_halves(scales_cast(params), x), mesh)(params, x)


def shifted(**factors):
    """Return the times, some multiplied by a factor."""
    return lambda **drawn: {name: time * factors.get(name, 1) for name, time in times_of(**drawn).items()}


@exercise.misconception(of=block_times)
def times_one_way(**drawn):
    """Either: you used one direction of a link, W1. A ring uses both directions: W = 2 · W1. Or: you counted 4 bytes a
    number. A number in bfloat16 has 2 bytes."""
    return shifted(rows=2, keys=2, gradients=2)(**drawn)


@exercise.misconception(of=block_times)
def times_forward_only(**drawn):
    """You counted only the forward pass. The backward pass has twice the matmuls of the forward pass, as
    many all-reduces of rows, and reduce-scatters of the gradients of K and V."""
    return shifted(matmuls=1 / 3, rows=1 / 2, keys=1 / 2)(**drawn)


@exercise.misconception(of=block_times)
def times_reduced_once(**drawn):
    """You gave an all-reduce the time of an all-gather. An all-reduce is a reduce-scatter and an all-gather, which
    takes twice the time."""
    return shifted(rows=1 / 2, gradients=1 / 2)(**drawn)


@exercise.misconception(of=block_times)
def times_of_one_axis(**drawn):
    """Either: you used the links of one axis for the gradients. dp and sp together have twice the bandwidth: 2 W. Or: you
    counted 4 bytes a number. A number in bfloat16 has 2 bytes."""
    return shifted(gradients=2)(**drawn)


@exercise.misconception(of=block_times)
def times_of_all_heads(**drawn):
    """You gathered K and V of all heads. A device needs K and V of its own heads: D/tp numbers for each position."""
    return shifted(keys=drawn["tp"])(**drawn)


@exercise.misconception(of=block_times)
def times_of_whole_parameters(**drawn):
    """You counted the gradients of all parameters. A device has 1/tp of the parameters."""
    return shifted(gradients=drawn["tp"])(**drawn)


@exercise.misconception(of=block_times)
def times_of_a_shard(**drawn):
    """You took V of a gather as one device's part. V is the size of the result: T positions."""
    return shifted(keys=1 / drawn["sp"])(**drawn)


@exercise.misconception(of=block_times)
def times_without_scores(**drawn):
    """You left out the matmuls between positions: scores, and weights times V."""
    return shifted(matmuls=6 * drawn["D"] / (6 * drawn["D"] + drawn["T"]))(**drawn)


@exercise.misconception(of=block_times)
def times_backward_like_forward(**drawn):
    """You gave the backward pass the matmuls of the forward pass. The backward pass has twice as many matmuls, because
    each matmul has two gradients."""
    return shifted(matmuls=2 / 3)(**drawn)


@exercise.misconception(of=block_times)
def times_computed_again(**drawn):
    """You counted the forward matmuls twice. Nothing is computed again: the block takes 3 times the FLOPs of the
    forward matmuls."""
    return shifted(matmuls=4 / 3)(**drawn)


@exercise.misconception(of=block_times)
def times_of_half_the_scores(**drawn):
    """You counted half of the matmuls between positions. There are two matmuls, scores and weights times V, and the
    model counts all positions, masked or not."""
    return shifted(matmuls=(12 * drawn["D"] + drawn["T"]) / (12 * drawn["D"] + 2 * drawn["T"]))(**drawn)


@exercise.misconception(of=block_times)
def times_of_own_positions(**drawn):
    """Your queries use only their own device's T/sp positions. A query uses all T positions of a text."""
    D, T = drawn["D"], drawn["T"]
    return shifted(matmuls=(6 * D + T / drawn["sp"]) / (6 * D + T))(**drawn)


@exercise.misconception(of=block_times)
def times_of_one_flop(**drawn):
    """You counted one FLOP per term of a matmul. Each term needs a multiplication and an addition: two FLOPs."""
    return shifted(matmuls=1 / 2)(**drawn)


@exercise.misconception(of=block_times)
def times_of_all_work(**drawn):
    """Either: you counted the matmuls of all heads and units. A device has 1/tp of them. Or: you counted the matmuls of all
    positions. A device has T/sp positions of a text."""
    return shifted(matmuls=drawn["tp"])(**drawn)


@exercise.misconception(of=block_times)
def times_of_all_positions(**drawn):
    """You counted the rows of all positions. A device has T/sp positions of a text."""
    return shifted(rows=drawn["sp"])(**drawn)


@exercise.misconception(of=block_times)
def times_of_cut_rows(**drawn):
    """You divided the rows by tp. tp cuts heads and units; every device along tp has whole rows."""
    return shifted(rows=1 / drawn["tp"])(**drawn)


@exercise.misconception(of=block_times)
def times_gathered_again(**drawn):
    """Either: you gathered K and V again in the backward pass. Here they are gathered once. Or: you all-reduced their
    gradients. Each device needs the gradients of its own positions only, which takes a reduce-scatter. Or: you gathered
    q as well. A device needs q of its own positions."""
    return shifted(keys=3 / 2)(**drawn)


@exercise.misconception(of=block_times)
def times_divided_by_dp(**drawn):
    """You divided the matmuls by dp. The devices at each index along dp have their own b texts, so dp does not cut
    b."""
    return shifted(matmuls=1 / drawn["dp"])(**drawn)


@exercise.misconception(of=block_times)
def times_of_scores_of_all_heads(**drawn):
    """You counted scores of all heads. A device has 1/tp of the heads."""
    D, T = drawn["D"], drawn["T"]
    return shifted(matmuls=(6 * D + T * drawn["tp"]) / (6 * D + T))(**drawn)


@exercise.misconception(of=block_times)
def times_of_exact_rings(**drawn):
    """You used (N-1)/N of V. This question's model is V / W."""
    over = {"rows": drawn["tp"], "keys": drawn["sp"], "gradients": drawn["dp"] * drawn["sp"]}
    return shifted(**{name: (n - 1) / n for name, n in over.items()})(**drawn)


@exercise.misconception(of=block_times)
def times_without_key_gradients(**drawn):
    """Either: you left out the gradients of K and V. Or: you counted K alone, without V."""
    return shifted(keys=1 / 2)(**drawn)


@exercise.misconception(of=block_times)
def times_of_mlp_parameters(**drawn):
    """You left out the parameters of attention. The block has 12 · D² parameters: 4 · D² of attention, 8 · D² of the MLP."""
    return shifted(gradients=8 / 12)(**drawn)


@exercise.misconception(of=block_times)
def times_of_attention_parameters(**drawn):
    """You left out the parameters of the MLP. The block has 12 · D² parameters: 4 · D² of attention, 8 · D² of the MLP."""
    return shifted(gradients=4 / 12)(**drawn)


@exercise.misconception(of=block_bottleneck)
def the_quickest(chip, dp, sp, tp, b, T, D):
    """You named the part with the shortest time. The bottleneck is the part with the longest time."""
    time = times_of(chip, dp, sp, tp, b, T, D)
    return min(time, key=time.__getitem__)


def in_order(drawn):
    """Return the names of the parts, from the shortest time to the longest."""
    time = times_of(**drawn)
    return sorted(time, key=time.__getitem__)


@exercise.misconception(of=block_bottleneck)
def the_second_longest(**drawn):
    """You named the part with the second-longest time. Compute all four times, with the numbers of this question."""
    return in_order(drawn)[-2]


@exercise.misconception(of=block_bottleneck)
def the_second_shortest(**drawn):
    """Two parts take longer than the part that you named. Compute all four times, with the numbers of this question."""
    return in_order(drawn)[1]


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


def slowest(chip, dp, sp, tp, b, T, D):
    return lies(chip, dp, sp, tp, b, T, D, branches=(larger(**times_of(chip, dp, sp, tp, b, T, D)),))


exercise.scenario(block_bottleneck, slowest)
