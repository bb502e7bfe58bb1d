"""M1: calls, checks, misconceptions and alternatives."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from grader.exercise import Scenario, array, larger, normal
from grader.expect import expect_close, expect_shard_map, expect_spec, expect_traffic
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
    """Return the bytes that a device sends over tp, sp, and dp with sp, for these counts of gathers of K, all-reduces
    of rows and sums of parameters."""
    rows, keys, parameters = sizes_of(seen)
    tp, sp, both = seen.mesh["tp"], seen.mesh["sp"], seen.mesh["dp"] * seen.mesh["sp"]
    over_tp = reduces * 2 * (tp - 1) / tp * (rows + bool(sums) * seen.dims["D"])
    return (4 * n for n in (over_tp, gathers * (sp - 1) * keys, sums * 2 * (both - 1) / both * parameters))


@exercise.helper
def expect_sent(seen, gathers, reduces, sums):
    """Require at most these bytes over each axis and in all, besides single numbers and padding."""
    tp, sp, both = due_over(seen, gathers, reduces, sums)
    few, dp = 128, seen.mesh["dp"]
    expect_traffic(seen, at_most=tp + few, axis="tp")
    if dp > 1:
        expect_traffic(seen, at_most=both + few if sums else 0, axis="dp")
    expect_traffic(seen, at_most=sp + both + few, axis="sp")
    if dp > 1 and sums:  # otherwise the limits over each axis imply the limit on the sum
        expect_traffic(seen, at_most=tp + sp + both + 2 * few)


@exercise.check(there_and_back, points=0.75, public=True, after=block_value)
def block_forward(seen):
    """forward: over tp two all-reduces of rows, over sp K and V once, over dp nothing"""
    expect_sent(seen.only(backward=False), 2, 2, 0)


@exercise.check(there_and_back, points=0.75, public=True, after=[block_gradients, block_forward])
def block_backward(seen):
    """backward: over tp two all-reduces of rows, over sp twice K and V, and parameters once over dp and sp"""
    expect_sent(seen.only(backward=True), 4, 2, 1)


@exercise.check(long, points=1, after=block_backward)
def block_long(seen):
    """sp=4 and dp=1: result, gradients and what is sent"""
    expect_close(seen.out, on_one_device(seen.params, seen.x)[0])
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
    """Three matmuls for q, k and v with one norm, which varies over tp because its scale is cast."""

    def local(params, x):
        params = scales_cast(params)
        n = norm(x, params["before"])
        q, k, v = (jnp.tensordot(n, params["qkv"][:, i], 1) for i in range(3))
        return finished(params, x, attention(q, k, v))

    return mapped(local, mesh)(params, x)


@exercise.alternative()
def keys_gathered_again(params, x, *, mesh):
    """A checkpoint around attention: the backward pass gathers K and V again."""
    return mapped(with_attention(jax.checkpoint(attention)), mesh)(params, x)


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


@exercise.misconception(fails=block_value, breaks="the result equals that of one device")
def masked_by_the_block(params, x, *, mesh):
    """You masked by row numbers within the block. The block's first row is position axis_index('sp') * T/sp of the
    text."""
    return mapped(attended_with(first=0), mesh)(params, x)


@exercise.misconception(fails=block_value)
def attended_at_home(params, x, *, mesh):
    """Your queries use only the keys of their own device. Keys of earlier positions are on other devices along sp:
    gather K and V."""
    return mapped(attended_with(gather=lambda a: a, first=0), mesh)(params, x)


@exercise.misconception(fails=block_value)
def gathered_over_tp(params, x, *, mesh):
    """You gathered K and V over tp. Devices along tp have other heads at these positions. The other positions are along
    sp."""
    return mapped(attended_with(lambda a: jax.lax.all_gather(a, "tp", axis=1, tiled=True)), mesh)(params, x)


@exercise.misconception(fails=block_value)
def gathered_texts(params, x, *, mesh):
    """You gathered K and V over dp. Devices along dp have other texts, and no text needs another."""

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
def never_summed_over_tp(params, x, *, mesh):
    """You kept a device's own part of the sum over heads and MLP units. With check_vma=False JAX does not report
    this. Add the partial sums with a psum over tp."""

    def local(params, x):
        return finished(params, x, attention(*projected(params, x)), reduce=lambda part: part)

    return mapped(local, mesh, check_vma=False)(params, x)


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
    """You added x before the sum over tp, so it counts once for each device there. Sum first, then add."""

    def local(params, x):
        heads = attention(*projected(params, x))
        x = jax.lax.psum(x + jnp.einsum("bthk,hkd->btd", heads, params["out"]), "tp")
        return x + jax.lax.psum(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"], "tp")

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_value)
def both_from_x(params, x, *, mesh):
    """Your MLP uses the input of the block. Use x with attention added."""

    def local(params, x):
        more = jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"]
        return x + jax.lax.psum(
            jnp.einsum("bthk,hkd->btd", attention(*projected(params, x)), params["out"]) + more, "tp"
        )

    return mapped(local, mesh)(params, x)


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


@exercise.misconception(fails=block_long, breaks="all rules hold on this mesh too")
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


@exercise.misconception(fails=block_forward, breaks="K and V of its heads gathered")
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


@exercise.misconception(fails=block_forward, breaks="K and V of its heads gathered")
def every_head_everywhere(params, x, *, mesh):
    """You gathered parameters over tp, so all devices along tp repeat the work. Each device uses its own heads and MLP
    units, and the results are summed over tp."""

    def local(params, x):
        axis = {"qkv": 2, "out": 0, "up": 1, "down": 0}
        own = {n: jax.lax.all_gather(params[n], "tp", axis=axis[n], tiled=True) for n in axis}
        return finished(params | own, x, attention(*projected(params | own, x)), reduce=lambda part: part)

    return mapped(local, mesh, check_vma=False)(params, x)


@exercise.misconception(fails=block_forward, breaks="two all-reduces of its rows")
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


@exercise.misconception(fails=block_forward, breaks="forward, dp | nothing")
def parameters_averaged_first(params, x, *, mesh):
    """You averaged the parameters over dp. Devices along dp already hold equal parameters, and only their gradients are
    summed."""

    def local(params, x):
        return on_device({name: jax.lax.pmean(p, "dp") for name, p in params.items()}, x)

    return mapped(local, mesh)(params, x)


@exercise.misconception(fails=block_backward, breaks="as many bytes as forward")
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


@exercise.misconception(fails=block_backward, breaks="twice the forward bytes")
def checkpoint_in_a_checkpoint(params, x, *, mesh):
    """You put a checkpoint around a checkpoint, so the backward pass gathers K and V once for each of them. One
    checkpoint around attention is enough."""
    return mapped(in_two_checkpoints, mesh)(params, x)


@exercise.misconception(fails=block_backward, breaks="one all-reduce of its parameters over both axes")
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


@exercise.misconception(fails=block_backward)
def summed_for_each_half(params, x, *, mesh):
    """You ran the block for one half of the sequences after the other. Each half uses the parameters, so JAX sums their gradients over dp and sp once for each half. Cast the parameters to dp and sp once, before both."""
    return mapped(lambda params, x: in_halves(scales_cast(params), x), mesh)(params, x)


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


@exercise.misconception(of=block_bottleneck)
def the_quickest(chip, dp, sp, tp, b, T, D):
    """You named the part with the shortest time. The bottleneck is the part with the longest."""
    time = times_of(chip, dp, sp, tp, b, T, D)
    return min(time, key=time.__getitem__)


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
