import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.hardware import GPUS

BATCH = P(None, ("rep", "shard"))


def mapped(local, mesh):
    specs = (P("shard"), BATCH, BATCH)
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=(P("shard"), P()), check_vma=False)


def own_sum(w, x, y):
    # the sum of squares of own rows
    whole = jax.lax.all_gather(w, "shard", tiled=True)
    return jax.grad(lambda w: jnp.sum((x @ w - y) ** 2))(whole)


def near(g):
    return jax.lax.psum_scatter(g, "shard", tiled=True)


def length(g, over=("shard",)):
    return jnp.sqrt(jax.lax.psum(jnp.vdot(g, g), over))


def own_rows(g, w):
    return jax.lax.dynamic_slice_in_dim(g, jax.lax.axis_index("shard") * len(w), len(w))


def flat_all_reduce(w, x, y, *, mesh):
    """hsdp_grads: hsdp_one_all_reduce
    Row: one flat all-reduce over all devices, then a slice."""

    def local(w, x, y):
        g = jax.lax.psum(own_sum(w, x, y), ("rep", "shard")) / (y.size * mesh.size)
        return own_rows(g, w), jnp.linalg.norm(g)

    return mapped(local, mesh)(w, x, y)


def far_first(w, x, y, *, mesh):
    """hsdp_grads: hsdp_far_first
    Row: all-reduce over rep, then reduce-scatter over shard."""

    def local(w, x, y):
        g = near(jax.lax.psum(own_sum(w, x, y), "rep")) / (y.size * mesh.size)
        return g, length(g)

    return mapped(local, mesh)(w, x, y)


def near_all_reduced(w, x, y, *, mesh):
    """hsdp_grads: hsdp_all_reduced_near
    Row: an all-reduce near and a slice, then the all-reduce far."""

    def local(w, x, y):
        g = own_rows(jax.lax.psum(own_sum(w, x, y), "shard"), w)
        g = jax.lax.psum(g, "rep") / (y.size * mesh.size)
        return g, length(g)

    return mapped(local, mesh)(w, x, y)


def mean_over_shard_only(w, x, y, *, mesh):
    """hsdp_grads: hsdp_mean_over_shard_only
    Row: divides by one axis only: the mean over shard, and the sum over rep."""

    def local(w, x, y):
        g = jax.lax.psum(near(own_sum(w, x, y) / y.size) / jax.lax.axis_size("shard"), "rep")
        return g, length(g)

    return mapped(local, mesh)(w, x, y)


def mean_over_rep_only(w, x, y, *, mesh):
    """hsdp_grads: hsdp_mean_over_rep_only
    Row: divides by one axis only: a sum over shard, and the mean over rep."""

    def local(w, x, y):
        g = jax.lax.pmean(near(own_sum(w, x, y) / y.size), "rep")
        return g, length(g)

    return mapped(local, mesh)(w, x, y)


def norm_over_all(w, x, y, *, mesh):
    """hsdp_grads: hsdp_norm_over_copies
    Row: the norm counts the replicas, too."""

    def local(w, x, y):
        g = jax.lax.psum(near(own_sum(w, x, y)), "rep") / (y.size * mesh.size)
        return g, length(g, ("rep", "shard"))

    return mapped(local, mesh)(w, x, y)


def norm_of_own_part(w, x, y, *, mesh):
    """hsdp_grads: hsdp_norm_of_own_rows
    Row: the norm is that of the device's own part."""

    def local(w, x, y):
        g = jax.lax.psum(near(own_sum(w, x, y)), "rep") / (y.size * mesh.size)
        return g, jnp.linalg.norm(g)

    return mapped(local, mesh)(w, x, y)


def last_micro_batch_synced(w, x, y, *, mesh):
    """hsdp_grads: hsdp_last_micro_batch_far
    Row: the late all-reduce skips earlier micro-batches: only the last one's gradient goes over rep."""

    def local(w, x, y):
        g = near(own_sum(w, x[:-1], y[:-1])) + jax.lax.psum(near(own_sum(w, x[-1], y[-1])), "rep")
        g = g / (y.size * mesh.size)
        return g, length(g)

    return mapped(local, mesh)(w, x, y)


def only_the_last_micro_batch(w, x, y, *, mesh):
    """hsdp_grads: hsdp_last_micro_batch_alone
    Row: the gradients of earlier micro-batches are overwritten."""

    def local(w, x, y):
        for rows, wanted in zip(x, y, strict=True):
            g = own_sum(w, rows, wanted)
        g = jax.lax.psum(near(g), "rep") / (y.size * mesh.size)
        return g, length(g)

    return mapped(local, mesh)(w, x, y)


def each_micro_batch_sent(w, x, y, *, mesh):
    """hsdp_grads: hsdp_each_micro_batch_sent
    Row: every micro-batch is reduced on its own."""

    def local(w, x, y):
        g = jnp.zeros_like(w)
        for rows, wanted in zip(x, y, strict=True):
            g += jax.lax.psum(near(own_sum(w, rows, wanted)), "rep")
        g /= y.size * mesh.size
        return g, length(g)

    return mapped(local, mesh)(w, x, y)


def _run(local, mesh, w, x, y):
    specs = (P("shard"), P(None, ("rep", "shard")), P(None, ("rep", "shard")))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=(P("shard"), P()), check_vma=False)(w, x, y)


def _own(w, x, y, count):
    whole = jax.lax.all_gather(w, "shard", tiled=True)
    return 2 * jnp.einsum("mbd,mbk->dk", x, jnp.einsum("mbd,dk->mbk", x, whole) - y) / count


def norms_added_not_squares(w, x, y, *, mesh):
    """hsdp_grads: hsdp_norms_added"""
    count = y.size

    def local(w, x, y):
        g = jax.lax.psum_scatter(_own(w, x, y, count), "shard", tiled=True)
        g = jax.lax.psum(g, "rep")
        return g, jax.lax.psum(jnp.linalg.norm(g), "shard")

    return _run(local, mesh, w, x, y)


def mean_of_one_device(w, x, y, *, mesh):
    """hsdp_grads: hsdp_mean_of_own_rows"""

    def local(w, x, y):
        g = jax.lax.psum_scatter(_own(w, x, y, y.size), "shard", tiled=True)
        g = jax.lax.psum(g, "rep")
        return g, jnp.sqrt(jax.lax.psum(jnp.sum(g * g), "shard"))

    return _run(local, mesh, w, x, y)


def far_sum_in_a_loop(w, x, y, *, mesh):
    """hsdp_grads: hsdp_each_micro_batch_sent"""
    count = y.size

    def local(w, x, y):
        whole = jax.lax.all_gather(w, "shard", tiled=True)

        def one(m, g):
            own = 2 * x[m].T @ (x[m] @ whole - y[m]) / count
            return g + jax.lax.psum(jax.lax.psum_scatter(own, "shard", tiled=True), "rep")

        g = jax.lax.fori_loop(0, x.shape[0], one, jnp.zeros_like(w))
        return g, jnp.sqrt(jax.lax.psum((g**2).sum(), "shard"))

    return _run(local, mesh, w, x, y)


def _far(chip, M, R):
    return (R - 1) / R * _far_whole(chip, M)


def _far_whole(chip, M):
    node_egress = GPUS[chip].node_egress
    assert node_egress is not None
    return 2 * (2e9 * M / 8) / (node_egress / 8)


def near_as_if_sent_whole(chip, M, R):
    """hsdp_time: time_near_whole"""
    return 2e9 * M / GPUS[chip].egress + _far(chip, M, R)


def near_of_one_part(chip, M, R):
    """hsdp_time: time_near_of_one_part"""
    return 2e9 * M / 8 / GPUS[chip].egress + _far(chip, M, R)


def near_and_far_whole(chip, M, R):
    """hsdp_time: time_near_and_far_whole"""
    return 2e9 * M / GPUS[chip].egress + _far_whole(chip, M)
