import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec as P

from h3_zero1 import OPT

OPT_SPECS = {"m": P("dp"), "v": P("dp"), "t": P()}


def step_with(mesh, clip, own_mean=False, reduce="scatter", decay_new=False):
    def local(params, opt, x, y):
        n, me = jax.lax.axis_size("dp"), jax.lax.axis_index("dp")

        def loss_of(params):
            out = jnp.tanh(x @ params["a"] + params["c"]) @ params["b"]
            return jnp.mean((out - y) ** 2) if own_mean else jnp.sum((out - y) ** 2) / (n * y.size)

        loss, grads = jax.value_and_grad(loss_of)(params)
        flat, unravel = ravel_pytree(params)
        size = len(opt["m"])
        padded = jnp.concatenate([ravel_pytree(grads)[0], jnp.zeros(n * size - len(flat))]).reshape(n, size)
        g = jax.lax.psum(padded, "dp")[me] if reduce == "all" else jax.lax.psum_scatter(padded, "dp")
        g = clip(g)
        t, m, v = opt["t"] + 1, 0.9 * opt["m"] + 0.1 * g, 0.99 * opt["v"] + 0.01 * g * g
        p = jnp.concatenate([flat, jnp.zeros(n * size - len(flat))]).reshape(n, size)[me]
        step = m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.99**t)) + 0.01)
        p = (p - 0.05 * step) * (1 - 0.005) if decay_new else p - 0.05 * (step + 0.1 * p)
        flat = jax.lax.all_gather(p, "dp", tiled=True)[: len(flat)]
        return unravel(flat), {"m": m, "v": v, "t": t}, (jax.lax.pmean if own_mean else jax.lax.psum)(loss, "dp")

    return jax.shard_map(
        local, mesh=mesh, in_specs=(P(), OPT_SPECS, P("dp"), P("dp")), out_specs=(P(), OPT_SPECS, P()), check_vma=False
    )


def norm(g):
    return jnp.sqrt(jax.lax.psum(jnp.sum(g**2), "dp"))


def clipped_wherever(params, opt, x, y, *, mesh):
    """zero1_step: zero1_sum_of_means"""
    return step_with(mesh, lambda g: g / jnp.maximum(1e-9, norm(g)))(params, opt, x, y)


def clipped_with_epsilon(params, opt, x, y, *, mesh):
    """zero1_step: zero1_sum_of_means"""
    return step_with(mesh, lambda g: g / (norm(g) + 1e-6))(params, opt, x, y)


def sum_of_own_means(params, opt, x, y, *, mesh):
    """zero1_step: zero1_sum_of_means"""
    return step_with(mesh, lambda g: g * jnp.minimum(1, 1 / norm(g)), own_mean=True)(params, opt, x, y)


def own_norm(params, opt, x, y, *, mesh):
    """zero1_step: zero1_clipped_by_own_norm"""
    return step_with(mesh, lambda g: g / jnp.maximum(1, jnp.linalg.norm(g)))(params, opt, x, y)


def reduced_everywhere(params, opt, x, y, *, mesh):
    """zero1_step: zero1_all_reduced"""
    return step_with(mesh, lambda g: g / jnp.maximum(1, norm(g)), reduce="all")(params, opt, x, y)


def decays_the_new(params, opt, x, y, *, mesh):
    """zero1_step: zero1_decays_what_is_new"""
    return step_with(mesh, lambda g: g / jnp.maximum(1, norm(g)), decay_new=True)(params, opt, x, y)


def never_clipped(params, opt, x, y, *, mesh):
    """zero1_step: zero1_never_clipped"""
    return step_with(mesh, lambda g: g)(params, opt, x, y)


def norm_over_all_axes(params, opt, x, y, *, mesh):
    """zero1_step: zero1_norm_over_copies"""

    def over_all(g):
        return g / jnp.maximum(1, jnp.sqrt(jax.lax.psum(jnp.vdot(g, g), tuple(mesh.axis_names))))

    return step_with(mesh, over_all)(params, opt, x, y)


def _vec(tree, size):
    flat = jnp.concatenate([tree[name].ravel() for name in ("a", "c", "b")])
    return jnp.pad(flat, (0, size - flat.size))


def _tree(flat, like):
    out, at = {}, 0
    for name in ("a", "c", "b"):
        n = like[name].size
        out[name] = flat[at : at + n].reshape(like[name].shape)
        at += n
    return out


def _mine(flat, part):
    return jax.lax.dynamic_slice_in_dim(flat, jax.lax.axis_index("dp") * part, part)


def _loss(p, x, y):
    return jnp.mean((jnp.tanh(x @ p["a"] + p["c"]) @ p["b"] - y) ** 2)


def _adamw(p, g, m, v, t):
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    u = m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.99**t)) + 0.01)
    return p - 0.05 * (u + 0.1 * p), m, v


def _scattered(grad):
    return jax.lax.psum_scatter(grad, "dp", tiled=True)


def _mean_part(grad):
    return _scattered(grad) / jax.lax.axis_size("dp")


def _clipped(part):
    return part / jnp.maximum(1, jnp.sqrt(jax.lax.psum(jnp.sum(part**2), "dp")))


def _clipped_alone(grad):
    return grad / jnp.maximum(1, jnp.linalg.norm(grad))


def _mean(loss):
    return jax.lax.pmean(loss, "dp")


def _step(mesh, params, opt, x, y, *, gradient=lambda grad: _clipped(_mean_part(grad)), update=_adamw, loss_over=_mean):
    def body(p, o, x, y):
        part = o["m"].shape[0]
        size = part * jax.lax.axis_size("dp")
        loss, grad = jax.value_and_grad(_loss)(p, x, y)
        grad = gradient(_vec(grad, size))
        t = o["t"] + 1
        new, m, v = update(_mine(_vec(p, size), part), grad, o["m"], o["v"], t)
        full = jax.lax.all_gather(new, "dp", tiled=True)
        return _tree(full, p), {"m": m, "v": v, "t": t}, loss_over(loss)

    specs = (P(), OPT, P("dp"), P("dp"))
    mapped = jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), OPT, P()), check_vma=False)
    return mapped(params, opt, x, y)


def averages_then_slices(params, opt, x, y, *, mesh):
    """zero1_step: zero1_all_reduced"""

    def averaged(grad):
        grad = _clipped_alone(jax.lax.pmean(grad, "dp"))
        return _mine(grad, grad.size // jax.lax.axis_size("dp"))

    return _step(mesh, params, opt, x, y, gradient=averaged)


def clips_by_its_own_part(params, opt, x, y, *, mesh):
    """zero1_step: zero1_clipped_by_own_norm"""
    return _step(mesh, params, opt, x, y, gradient=lambda grad: _clipped_alone(_mean_part(grad)))


def corrects_with_the_old_t(params, opt, x, y, *, mesh):
    """zero1_step: zero1_corrected_by_old_t"""

    def update(p, g, m, v, t):
        return _adamw(p, g, m, v, t - 1)

    return _step(mesh, params, opt, x, y, update=update)


def adds_the_devices_means(params, opt, x, y, *, mesh):
    """zero1_step: zero1_sum_of_means"""
    return _step(mesh, params, opt, x, y, gradient=lambda grad: _clipped(_scattered(grad)))


def decays_through_the_gradient(params, opt, x, y, *, mesh):
    """zero1_step: zero1_decays_in_the_gradient"""

    def update(p, g, m, v, t):
        g = g + 0.1 * p
        m = 0.9 * m + 0.1 * g
        v = 0.99 * v + 0.01 * g**2
        u = m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.99**t)) + 0.01)
        return p - 0.05 * u, m, v

    return _step(mesh, params, opt, x, y, update=update)


def loss_of_the_own_rows(params, opt, x, y, *, mesh):
    """zero1_step: zero1_own_loss"""
    return _step(mesh, params, opt, x, y, loss_over=lambda loss: loss)


def weights_are_cut_as_well(V, D, L, N):
    """zero1_held: held_cut_altogether"""
    return 10 * (V * D + L * 12 * D * D) / N


def a_single_moment(V, D, L, N):
    """zero1_held: held_with_one_moment"""
    n = V * D + L * 12 * D * D
    return 2 * n + 4 * n / N


def moments_on_every_chip(V, D, L, N):
    """zero1_held: held_without_cutting"""
    return (2 + 4 + 4) * (V * D + L * 12 * D * D)


def _updated(p, g, m, v, t, *, first=None, second=None, decay=0.1):
    m = 0.9 * m + 0.1 * (g if first is None else first)
    v = 0.99 * v + 0.01 * (g if second is None else second) ** 2
    u = m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.99**t)) + 0.01)
    return p - 0.05 * (u + decay * p), m, v


def decay_in_the_first_moment(params, opt, x, y, *, mesh):
    """zero1_step: zero1_decays_in_the_first_moment"""
    return _step(
        mesh, params, opt, x, y, update=lambda p, g, m, v, t: _updated(p, g, m, v, t, first=g + 0.1 * p, decay=0)
    )


def decay_in_both_and_in_the_weights(params, opt, x, y, *, mesh):
    """zero1_step: zero1_decays_in_both"""
    return _step(mesh, params, opt, x, y, update=lambda p, g, m, v, t: _updated(p, g + 0.1 * p, m, v, t))


def decay_before_the_clip(params, opt, x, y, *, mesh):
    """zero1_step: zero1_decays_in_the_gradient"""

    def local(params, opt, x, y):
        part = opt["m"].shape[0]
        size = part * jax.lax.axis_size("dp")
        loss, grad = jax.value_and_grad(_loss)(params, x, y)
        p, t = _mine(_vec(params, size), part), opt["t"] + 1
        grad = _clipped(_mean_part(_vec(grad, size)) + 0.1 * p)
        new, m, v = _updated(p, grad, opt["m"], opt["v"], t, decay=0)
        return _tree(jax.lax.all_gather(new, "dp", tiled=True), params), {"m": m, "v": v, "t": t}, _mean(loss)

    specs = (P(), OPT, P("dp"), P("dp"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=(P(), OPT, P()), check_vma=False)(
        params, opt, x, y
    )


def decay_times_the_rate_twice(params, opt, x, y, *, mesh):
    """zero1_step: zero1_decay_scaled_twice"""
    return _step(mesh, params, opt, x, y, update=lambda p, g, m, v, t: _updated(p, g, m, v, t, decay=0.1 * 0.05))


def decay_without_the_rate(params, opt, x, y, *, mesh):
    """zero1_step: zero1_decay_unscaled"""
    return _step(mesh, params, opt, x, y, update=lambda p, g, m, v, t: _updated(p, g, m, v, t, decay=0.1 / 0.05))


def decay_left_out(params, opt, x, y, *, mesh):
    """zero1_step: zero1_without_decay"""
    return _step(mesh, params, opt, x, y, update=lambda p, g, m, v, t: _updated(p, g, m, v, t, decay=0))


def square_of_the_norm(params, opt, x, y, *, mesh):
    """zero1_step: zero1_clipped_by_the_square"""
    return step_with(mesh, lambda g: g / jnp.maximum(1, jax.lax.psum(jnp.sum(g**2), "dp")))(params, opt, x, y)


def square_of_the_own_norm(params, opt, x, y, *, mesh):
    """zero1_step: zero1_clipped_by_the_square"""
    return step_with(mesh, lambda g: g / jnp.maximum(1, jnp.vdot(g, g)))(params, opt, x, y)
