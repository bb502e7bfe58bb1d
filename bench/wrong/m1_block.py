import jax
import jax.numpy as jnp

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
