import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.hardware import CHIPS


def mapped(local, mesh):
    cut = P("dp")
    return jax.shard_map(
        local, mesh=mesh, in_specs=(P(), cut, cut, cut, P()), out_specs=(P(), cut, P()), check_vma=False
    )


def mask(key, x, params, fold=True):
    key = jax.random.wrap_key_data(key)
    key = jax.random.split(jax.random.fold_in(key, 7), 64)[jax.lax.axis_index("dp")] if fold else key
    return jax.random.uniform(key, (len(x), len(params["b"]))) < 0.75


def errors(params, x, y, kept):
    return (jnp.where(kept, jnp.tanh(x @ params["a"]) / 0.75, 0) @ params["b"] - y) ** 2


def mean_of_means_0_over_0(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_mean_of_means, ddp_no_rows_no_mean"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)

        def loss_of(params):
            return jnp.sum(jnp.where(real[:, None], errors(params, x, y, kept), 0)) / jnp.sum(real)

        loss, grads = jax.lax.pmean(jax.value_and_grad(loss_of)(params), "dp")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


def mean_of_means_guarded(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_mean_of_means"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)

        def loss_of(params):
            total = jnp.sum(jnp.where(real[:, None], errors(params, x, y, kept), 0))
            return jnp.where(real.sum() > 0, total / jnp.maximum(real.sum(), 1), 0)

        loss, grads = jax.value_and_grad(loss_of)(params)
        loss, grads = jax.tree.map(lambda a: jax.lax.psum(a, "dp") / mesh.shape["dp"], (loss, grads))
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


def mean_of_means_weighted(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_mean_of_means"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)

        def loss_of(params):
            weights = real / jnp.maximum(jnp.sum(real), 1)
            return jnp.einsum("b,bk->", weights, errors(params, x, y, kept))

        loss, grads = jax.lax.pmean(jax.value_and_grad(loss_of)(params), "dp")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


def mean_of_means_nan_to_num(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_mean_of_means"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)

        def loss_of(params):
            return jnp.sum(jnp.where(real[:, None], errors(params, x, y, kept), 0)) / jnp.sum(real)

        loss, grads = jax.tree.map(jnp.nan_to_num, jax.value_and_grad(loss_of)(params))
        loss, grads = jax.lax.pmean((loss, grads), "dp")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


def mean_of_means_by_cond(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_mean_of_means"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)

        def loss_of(params):
            total = jnp.sum(errors(params, x, y, kept).sum(1) * real)
            return jax.lax.cond(real.any(), lambda t: t / real.sum(), lambda t: 0 * t, total)

        loss, grads = jax.lax.pmean(jax.value_and_grad(loss_of)(params), "dp")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


def mean_of_means_gathered(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_mean_of_means"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)

        def loss_of(params):
            return jnp.sum(errors(params, x, y, kept) * real[:, None]) / jnp.clip(real.sum(), 1)

        loss, grads = jax.value_and_grad(loss_of)(params)
        loss, grads = jax.tree.map(lambda a: jax.lax.all_gather(a, "dp").mean(0), (loss, grads))
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


def mean_of_weights_of_means(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_mean_of_means"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)

        def loss_of(params):
            return jnp.sum(jnp.where(real[:, None], errors(params, x, y, kept), 0)) / jnp.maximum(real.sum(), 1)

        loss, grads = jax.value_and_grad(loss_of)(params)
        new = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
        return jax.lax.pmean(new, "dp"), kept, jax.lax.pmean(loss, "dp")

    return mapped(local, mesh)(params, x, y, real, key)


def summed_means(params, x, y, real, key, *, mesh):
    """ddp_step: none"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)

        def loss_of(params):
            return jnp.sum(jnp.where(real[:, None], errors(params, x, y, kept), 0)) / jnp.maximum(real.sum(), 1)

        loss, grads = jax.lax.psum(jax.value_and_grad(loss_of)(params), "dp")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


def guarded_and_right(params, x, y, real, key, *, mesh):
    """ddp_step: none"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)

        def loss_of(params):
            total = jnp.sum(jnp.where(real[:, None], errors(params, x, y, kept), 0))
            return total / jnp.maximum(jax.lax.psum(real.sum(), "dp"), 1)

        loss, grads = jax.lax.psum(jax.value_and_grad(loss_of)(params), "dp")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


def padding_counted(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_padding_counted"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)

        def loss_of(params):
            return jnp.mean(jnp.where(real[:, None], errors(params, x, y, kept), 0).sum(1))

        loss, grads = jax.lax.pmean(jax.value_and_grad(loss_of)(params), "dp")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


def one_key(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_one_key_for_all"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params, fold=False)
        n = jax.lax.psum(jnp.sum(real), "dp")

        def loss_of(params):
            return jnp.sum(jnp.where(real[:, None], errors(params, x, y, kept), 0)) / n

        loss, grads = jax.lax.psum(jax.value_and_grad(loss_of)(params), "dp")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


def loss_reduced_alone(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_only_loss_summed"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)
        n = jax.lax.psum(jnp.sum(real), "dp")
        loss, grads = jax.value_and_grad(lambda p: jnp.sum(errors(p, x, y, kept) * real[:, None]) / n)(params)
        return {k: params[k] - 0.1 * grads[k] for k in params}, kept, jax.lax.psum(loss, "dp")

    return mapped(local, mesh)(params, x, y, real, key)


def weights_averaged_too(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_weights_averaged"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)
        n = jax.lax.psum(jnp.sum(real), "dp")
        loss, grads = jax.lax.psum(
            jax.value_and_grad(lambda p: jnp.sum(errors(p, x, y, kept) * real[:, None]) / n)(params), "dp"
        )
        new = {k: params[k] - 0.1 * grads[k] for k in params}
        return {k: jax.lax.pmean(a, "dp") for k, a in new.items()}, kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


def rate_too_large(params, x, y, real, key, *, mesh):
    """ddp_step: none"""

    def local(params, x, y, real, key):
        kept = mask(key, x, params)
        n = jax.lax.psum(jnp.sum(real), "dp")
        loss, grads = jax.lax.psum(
            jax.value_and_grad(lambda p: jnp.sum(errors(p, x, y, kept) * real[:, None]) / n)(params), "dp"
        )
        return {k: params[k] - 0.2 * grads[k] for k in params}, kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


def _drop(key, shape, own):
    key = jax.random.wrap_key_data(key)
    if own:
        key = jax.random.fold_in(key, jax.lax.axis_index("dp"))
    return jax.random.bernoulli(key, 0.75, shape)


def _sum_of_losses(p, x, y, real, kept, keep):
    hidden = jnp.where(kept, jnp.tanh(x @ p["a"]) / keep, 0)
    return jnp.sum(jnp.where(real[:, None], (hidden @ p["b"] - y) ** 2, 0))


def _real_rows(real):
    return jax.lax.psum(real.sum(), "dp")


def _sums(loss, grads):
    return jax.lax.psum((loss, grads), "dp")


def _step(mesh, params, x, y, real, key, *, own=True, keep=0.75, count=_real_rows, over_devices=_sums):
    def body(p, x, y, real, key):
        kept = _drop(key, (x.shape[0], p["a"].shape[1]), own)
        n = count(real)
        loss, g = jax.value_and_grad(lambda p: _sum_of_losses(p, x, y, real, kept, keep) / n)(p)
        loss, g = over_devices(loss, g)
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, g), kept, loss

    specs = (P(), P("dp"), P("dp"), P("dp"), P())
    mapped = jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), P("dp"), P()), check_vma=False)
    return mapped(params, x, y, real, key)


def average_of_averages(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_mean_of_means"""

    def own_rows(real):
        return jnp.maximum(real.sum(), 1)

    def means(loss, grads):
        return jax.lax.pmean((loss, grads), "dp")

    return _step(mesh, params, x, y, real, key, count=own_rows, over_devices=means)


def everyone_drops_alike(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_one_key_for_all"""
    return _step(mesh, params, x, y, real, key, own=False)


def padding_counts_in_n(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_padding_counted"""
    return _step(mesh, params, x, y, real, key, count=lambda real: real.shape[0] * jax.lax.axis_size("dp"))


def loss_of_one_device(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_only_gradients_summed"""
    return _step(mesh, params, x, y, real, key, over_devices=lambda loss, grads: (loss, jax.lax.psum(grads, "dp")))


def parts_averaged(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_summed_and_averaged"""

    def average(loss, grads):
        return jax.lax.psum(loss, "dp"), jax.lax.pmean(grads, "dp")

    return _step(mesh, params, x, y, real, key, over_devices=average)


def kept_numbers_not_scaled(params, x, y, real, key, *, mesh):
    """ddp_step: ddp_not_scaled"""
    return _step(mesh, params, x, y, real, key, keep=1)


def half_of_both(A, B, a, b):
    """ddp_loss: loss_mean_of_means"""
    return (a + b) / 2


def over_all_tokens(A, B, a, b):
    """ddp_loss: loss_of_padding_too"""
    return (A * a + B * b) / 1024


def one_direction(chip, M, T, N):
    """ddp_exposed: exposed_in_float32"""
    c = CHIPS[chip]
    return 6 * M * 1e6 * T / c.bf16 + 2 * 2 * M * 1e6 / c.ici
