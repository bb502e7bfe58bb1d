import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from m1_block import PARAMS, ROWS, norm


def attended(q, k, v, here, root, causal=True):
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / root
    mask = jnp.arange(k.shape[1]) <= here[:, None]
    weights = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf) if causal else scores)
    return jnp.einsum("bhts,bshd->bthd", weights, v)


def positions(q):
    return jax.lax.axis_index("sp") * q.shape[1] + jnp.arange(q.shape[1])


def gathered(a):
    return jax.lax.all_gather(a, "sp", axis=1, tiled=True)


def over_tp(a):
    return jax.lax.psum(a, "tp")


def run(params, x, mesh, keys=gathered, here=positions, first=over_tp, last=over_tp, root=None, causal=True, **options):
    def local(params, x):
        q, k, v = jnp.einsum("btd,dchk->cbthk", norm(x, params["before"]), params["qkv"])
        heads = attended(q, keys(k), keys(v), here(q), root or q.shape[-1] ** 0.5, causal)
        x = x + first(jnp.einsum("bthk,hkd->btd", heads, params["out"]))
        units = jax.nn.silu(norm(x, params["between"]) @ params["up"])
        return x + last(units @ params["down"])

    return jax.shard_map(local, mesh=mesh, in_specs=(PARAMS, ROWS), out_specs=ROWS, **options)(params, x)


def local_positions(params, x, *, mesh):
    """block: masked_by_the_block
    Statement: the mask uses the device's own positions, not those in the text."""
    return run(params, x, mesh, here=lambda q: jnp.arange(q.shape[1]))


def own_keys_only(params, x, *, mesh):
    """block: attended_at_home
    Statement: K and V are not gathered: a device attends to its own positions."""
    return run(params, x, mesh, keys=lambda a: a, here=lambda q: jnp.arange(q.shape[1]))


def not_causal(params, x, *, mesh):
    """block: not_masked
    Statement: no mask."""
    return run(params, x, mesh, causal=False)


def unscaled(params, x, *, mesh):
    """block: not_scaled
    Statement: scores are not divided by the root of d."""
    return run(params, x, mesh, root=1)


def scaled_by_width(params, x, *, mesh):
    """block: scaled_by_all_heads
    Statement: scores are divided by the root of D."""
    return run(params, x, mesh, root=x.shape[-1] ** 0.5)


def averaged_over_tp(params, x, *, mesh):
    """block: averaged_both, averaged_attention, averaged_mlp
    Statement: the parts over tp are averaged, not added."""
    return run(params, x, mesh, first=lambda a: jax.lax.pmean(a, "tp"), last=lambda a: jax.lax.pmean(a, "tp"))


def residual_inside_the_sum(params, x, *, mesh):
    """block: residual_in_the_sum
    Statement: x itself is added inside the sums over tp, so it counts N times."""

    def local(params, x):
        q, k, v = jnp.einsum("btd,dchk->cbthk", norm(x, params["before"]), params["qkv"])
        heads = attended(q, gathered(k), gathered(v), positions(q), q.shape[-1] ** 0.5)
        x = jax.lax.psum(x + jnp.einsum("bthk,hkd->btd", heads, params["out"]), "tp")
        units = jax.nn.silu(norm(x, params["between"]) @ params["up"])
        return jax.lax.psum(x + units @ params["down"], "tp")

    return jax.shard_map(local, mesh=mesh, in_specs=(PARAMS, ROWS), out_specs=ROWS)(params, x)


def without_types(params, x, *, mesh):
    """block: without_types
    Statement: check_vma is off, and the backward pass of psum adds copies."""
    return run(params, x, mesh, check_vma=False)


def whole_rows_gathered(params, x, *, mesh):
    """block: keys_of_gathered_rows
    Statement: the rows are gathered over sp before K and V are made."""

    def local(params, x):
        n = norm(x, params["before"])
        q = jnp.einsum("btd,dhk->bthk", n, params["qkv"][:, 0])
        k, v = jnp.einsum("btd,dchk->cbthk", gathered(n), params["qkv"][:, 1:])
        heads = attended(q, k, v, positions(q), q.shape[-1] ** 0.5)
        x = x + over_tp(jnp.einsum("bthk,hkd->btd", heads, params["out"]))
        return x + over_tp(jax.nn.silu(norm(x, params["between"]) @ params["up"]) @ params["down"])

    return jax.shard_map(local, mesh=mesh, in_specs=(PARAMS, ROWS), out_specs=ROWS)(params, x)


def _device(params, x, sees=jnp.greater_equal, skip=lambda x, n: x, act=jax.nn.silu):
    n = norm(x, params["before"])
    q, k, v = jnp.einsum("btd,dchk->cbthk", n, params["qkv"])
    k, v = (jax.lax.all_gather(a, "sp", axis=1, tiled=True) for a in (k, v))
    T = x.shape[1]
    here = jax.lax.axis_index("sp") * T + jnp.arange(T)
    s = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
    s = jnp.where(sees(here[:, None], jnp.arange(k.shape[1])[None]), s, -1e30)
    o = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(s, -1), v)
    x = skip(x, n) + jax.lax.psum(jnp.einsum("bthk,hkd->btd", o, params["out"]), "tp")
    n = norm(x, params["between"])
    return skip(x, n) + jax.lax.psum(act(n @ params["up"]) @ params["down"], "tp")


def _run(params, x, mesh, **options):
    def local(params, x):
        return _device(params, x, **options)

    return jax.shard_map(local, mesh=mesh, in_specs=(PARAMS, ROWS), out_specs=ROWS)(params, x)


def adds_the_normed_rows(params, x, *, mesh):
    """block: residual_of_the_norm"""
    return _run(params, x, mesh, skip=lambda x, n: n)


def sees_only_earlier_positions(params, x, *, mesh):
    """block: own_position_masked"""
    return _run(params, x, mesh, sees=jnp.greater)


def other_activation(params, x, *, mesh):
    """block: gelu_for_silu"""
    return _run(params, x, mesh, act=jax.nn.gelu)


def attend(
    params,
    n,
    *,
    offset=True,
    width=None,
    gather_queries=False,
    axis=-1,
    join=None,
    separate=False,
    late=False,
    pair=jnp.greater_equal,
):
    q, k, v = (
        (jnp.einsum("btD,Dhd->bthd", n, params["qkv"][:, i]) for i in range(3))
        if separate
        else jnp.einsum("btD,Dchd->cbthd", n, params["qkv"])
    )
    t = q.shape[1]
    gathered = join or (lambda a: lax.all_gather(a, "sp", axis=1, tiled=True))
    k, v = gathered(k), gathered(v)
    first = lax.axis_index("sp") * t if offset else 0
    if gather_queries:
        q, first = gathered(q), 0
    s = jnp.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(width or q.shape[-1])
    seen = pair((first + jnp.arange(q.shape[1]))[:, None], jnp.arange(k.shape[1]))
    w = jax.nn.softmax(s, axis=axis) * seen if late else jax.nn.softmax(jnp.where(seen, s, -jnp.inf), axis=axis)
    o = jnp.einsum("bhij,bjhd->bihd", w, v)
    if gather_queries:
        o = lax.dynamic_slice_in_dim(o, lax.axis_index("sp") * t, t, 1)
    return jnp.einsum("bihd,hdD->biD", o, params["out"])


def mlp(params, n):
    return jax.nn.silu(n @ params["up"]) @ params["down"]


def over_tp_2(a):
    return lax.psum(a, "tp")


def two_steps(params, x, total=over_tp_2, **options):
    x = x + total(attend(params, norm(x, params["before"]), **options))
    return x + total(mlp(params, norm(x, params["between"])))


def mapped(body, params, x, mesh, **options):
    return jax.shard_map(body, mesh=mesh, in_specs=(PARAMS, ROWS), out_specs=ROWS, **options)(params, x)


def local_positions_2(params, x, *, mesh):
    """block: masked_by_the_block
    The mask counts positions from 0 on each device."""
    return mapped(lambda p, x: two_steps(p, x, offset=False), params, x, mesh)


def scale_of_width(params, x, *, mesh):
    """block: scaled_by_all_heads
    Scores are divided by the square root of D."""
    return mapped(lambda p, x: two_steps(p, x, width=x.shape[-1]), params, x, mesh)


def no_scale(params, x, *, mesh):
    """block: not_scaled
    Scores are not scaled."""
    return mapped(lambda p, x: two_steps(p, x, width=1), params, x, mesh)


def mask_upside_down(params, x, *, mesh):
    """block: earlier_positions_masked
    A position sees later ones."""
    return mapped(lambda p, x: two_steps(p, x, pair=jnp.less_equal), params, x, mesh)


def own_position_masked(params, x, *, mesh):
    """block: own_position_masked
    A position does not see itself."""
    return mapped(lambda p, x: two_steps(p, x, pair=jnp.greater), params, x, mesh)


def softmax_of_queries(params, x, *, mesh):
    """block: softmax_over_queries
    Softmax over queries."""
    return mapped(lambda p, x: two_steps(p, x, axis=-2), params, x, mesh)


def masked_after_softmax(params, x, *, mesh):
    """block: masked_after_softmax
    Mask after the softmax."""
    return mapped(lambda p, x: two_steps(p, x, late=True), params, x, mesh)


def keys_interleaved(params, x, *, mesh):
    """block: positions_interleaved
    Gathered keys are in the wrong order: [b, t, sp]."""

    def join(a):
        a = lax.all_gather(a, "sp", axis=2)
        return a.reshape(a.shape[0], -1, *a.shape[3:])

    return mapped(lambda p, x: two_steps(p, x, join=join), params, x, mesh)


def keys_not_gathered(params, x, *, mesh):
    """block: attended_at_home
    K and V are not gathered: a position sees only its device's positions."""
    return mapped(lambda p, x: two_steps(p, x, join=lambda a: a, offset=False), params, x, mesh)


def three_projections(params, x, *, mesh):
    """block: three_casts
    Q, k and v separately: JAX sums the gradient of the rows over tp three times."""
    return mapped(lambda p, x: two_steps(p, x, separate=True), params, x, mesh)


def gathers_queries_too(params, x, *, mesh):
    """block: gathered_queries
    Gathers the queries too."""
    return mapped(lambda p, x: two_steps(p, x, gather_queries=True), params, x, mesh)


def averaged(params, x, *, mesh):
    """block: averaged_both
    Pmean over tp."""
    return mapped(lambda p, x: two_steps(p, x, total=lambda a: lax.pmean(a, "tp")), params, x, mesh)


def summed_over_sp_too(params, x, *, mesh):
    """block: summed_over_positions_too
    Sums over tp and sp."""

    def body(p, x):
        x = x + lax.psum(attend(p, norm(x, p["before"])), ("tp", "sp"))
        return x + lax.psum(mlp(p, norm(x, p["between"])), ("tp", "sp"))

    return mapped(body, params, x, mesh, check_vma=False)


def residual_inside_the_sum_2(params, x, *, mesh):
    """block: residual_in_the_sum
    The residual is added before the sum over tp."""

    def body(p, x):
        x = lax.psum(x + attend(p, norm(x, p["before"])), "tp")
        return lax.psum(x + mlp(p, norm(x, p["between"])), "tp")

    return mapped(body, params, x, mesh)


def in_parallel(params, x, *, mesh):
    """block: both_from_x
    The MLP reads x before attention."""

    def body(p, x):
        a, m = attend(p, norm(x, p["before"])), mlp(p, norm(x, p["between"]))
        return x + lax.psum(a + m, "tp")

    return mapped(body, params, x, mesh)


def no_second_norm(params, x, *, mesh):
    """block: second_norm_left_out
    The MLP gets x without norm."""

    def body(p, x):
        x = x + lax.psum(attend(p, norm(x, p["before"])), "tp")
        return x + lax.psum(mlp(p, x * p["between"]), "tp")

    return mapped(body, params, x, mesh)


def norm_stays(params, x, *, mesh):
    """block: residual_of_the_norm
    The residual adds norm(x), not x."""

    def body(p, x):
        n = norm(x, p["before"])
        x = n + lax.psum(attend(p, n), "tp")
        n = norm(x, p["between"])
        return n + lax.psum(mlp(p, n), "tp")

    return mapped(body, params, x, mesh)


def gathers_rows(params, x, *, mesh):
    """block: keys_of_gathered_rows
    Gathers the normalized rows over sp and computes K and V of all positions."""

    def body(p, x):
        n = norm(x, p["before"])
        whole, t = lax.all_gather(n, "sp", axis=1, tiled=True), x.shape[1]
        q = jnp.einsum("btD,Dhd->bthd", n, p["qkv"][:, 0])
        k, v = jnp.einsum("btD,Dchd->cbthd", whole, p["qkv"][:, 1:])
        s = jnp.einsum("bihd,bjhd->bhij", q, k) / q.shape[-1] ** 0.5
        here = lax.axis_index("sp") * t + jnp.arange(t)
        w = jax.nn.softmax(jnp.where(here[:, None] >= jnp.arange(k.shape[1]), s, -1e30))
        o = jnp.einsum("bhij,bjhd->bihd", w, v)
        x = x + lax.psum(jnp.einsum("bihd,hdD->biD", o, p["out"]), "tp")
        return x + lax.psum(mlp(p, norm(x, p["between"])), "tp")

    return mapped(body, params, x, mesh)


def gathers_weights(params, x, *, mesh):
    """block: every_unit_everywhere, every_head_everywhere
    Gathers the weights of the MLP over tp."""

    def body(p, x):
        x = x + lax.psum(attend(p, norm(x, p["before"])), "tp")
        up = lax.all_gather(p["up"], "tp", axis=1, tiled=True)
        down = lax.all_gather(p["down"], "tp", axis=0, tiled=True)
        return x + jax.nn.silu(norm(x, p["between"]) @ up) @ down

    return mapped(body, params, x, mesh, check_vma=False)


def checkpoint_of_the_block(params, x, *, mesh):
    """block: everything_in_a_checkpoint
    One checkpoint around the block: its all-reduces over tp run again."""
    return mapped(jax.checkpoint(two_steps), params, x, mesh)


def no_vma(params, x, *, mesh):
    """block: without_types
    Check_vma=False: gradients are not summed as they should be."""
    return mapped(two_steps, params, x, mesh, check_vma=False)


def out_not_summed(params, x, *, mesh):
    """block: never_summed_over_tp
    Attention is not summed over tp."""

    def body(p, x):
        x = x + attend(p, norm(x, p["before"]))
        return x + lax.psum(mlp(p, norm(x, p["between"])), "tp")

    return mapped(body, params, x, mesh, check_vma=False)


def scatter_and_gather(params, x, *, mesh):
    """block: none
    Sums rows by a reduce-scatter and a gather in the wrong dimension's order."""

    def total(a):
        n = lax.axis_size("tp")
        part = lax.psum_scatter(a.reshape(*a.shape[:2], -1, n), "tp", scatter_dimension=3, tiled=True)
        return lax.all_gather(part, "tp", axis=2, tiled=True).reshape(a.shape)

    return mapped(lambda p, x: two_steps(p, x, total=total), params, x, mesh, check_vma=False)


def in_bfloat16(params, x, *, mesh):
    """block: none
    Attention computes in bfloat16."""

    def body(p, x):
        half = partial(jax.tree.map, lambda a: a.astype(jnp.bfloat16))
        x = x + lax.psum(attend(half(p), half(norm(x, p["before"]))), "tp").astype(x.dtype)
        return x + lax.psum(mlp(p, norm(x, p["between"])), "tp")

    return mapped(body, params, x, mesh)


def whole_block(p, x, *, first="before", second="between", axis="sp", sum_heads=False, swap=None):
    n = norm(x, p[first])
    qkv = jnp.tensordot(n, p["qkv"], 1)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    k, v = lax.all_gather((k, v), "sp", axis=1, tiled=True)
    here = lax.axis_index(axis) * q.shape[1] + lax.broadcasted_iota(jnp.int32, (q.shape[1], k.shape[1]), 0)
    seen = lax.broadcasted_iota(jnp.int32, here.shape, 1) <= here
    s = jnp.einsum("bthd,bshd->bhts", q, k) * q.shape[-1] ** -0.5
    heads = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(s, where=seen), v)
    if sum_heads:
        heads = lax.psum(heads, "tp")
    x += lax.psum(jnp.tensordot(heads, p["out"], 2), "tp")
    n = norm(x, p[second])
    return x + lax.psum(jax.nn.silu(n @ p["up"]) @ p["down"], "tp")


def scales_swapped(params, x, *, mesh):
    """block: scales_swapped
    The norms use each other's scales."""
    return mapped(lambda p, x: whole_block(p, x, first="between", second="before"), params, x, mesh)


def index_along_dp(params, x, *, mesh):
    """block: masked_by_the_index_along_dp
    The first position comes from the index along dp."""
    return mapped(lambda p, x: whole_block(p, x, axis="dp"), params, x, mesh)


def heads_summed(params, x, *, mesh):
    """block: heads_summed
    Sums the heads over tp before `out`."""
    return mapped(lambda p, x: whole_block(p, x, sum_heads=True), params, x, mesh)


def heads_for_positions(params, x, *, mesh):
    """block: none
    Ulysses: exchanges positions for heads over sp, which needs heads that sp divides."""

    def body(p, x):
        q, k, v = jnp.einsum("btD,Dchd->cbthd", norm(x, p["before"]), p["qkv"])
        q, k, v = (lax.all_to_all(a, "sp", 2, 1, tiled=True) for a in (q, k, v))
        s = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
        w = jax.nn.softmax(jnp.where(jnp.tri(q.shape[1], dtype=bool), s, -jnp.inf))
        o = lax.all_to_all(jnp.einsum("bhts,bshd->bthd", w, v), "sp", 1, 2, tiled=True)
        x = x + lax.psum(jnp.einsum("bthd,hdD->btD", o, p["out"]), "tp")
        return x + lax.psum(mlp(p, norm(x, p["between"])), "tp")

    return mapped(body, params, x, mesh)
