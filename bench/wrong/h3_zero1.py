import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec as P

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
