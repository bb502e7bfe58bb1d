import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def mapped(local, mesh, **options):
    specs = (P("x", "y"), P("x", "y"), P("y", "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", "y"), **options)


def whole(array, axis, dim):
    return jax.lax.all_gather(array, axis, axis=dim, tiled=True)


def weights_gathered_over_y_too(a, w_in, w_out, *, mesh):
    """mlp_2d: gathered_over_both_axes, gathered_over_x_then_y
    Row: gathers the weights over y, too; every chip computes all of F, and no sum is needed."""

    def local(a, w_in, w_out):
        up = whole(whole(w_in, "x", 0), "y", 1)
        down = whole(whole(w_out, "x", 1), "y", 0)
        out = jnp.tanh(whole(a, "y", 1) @ up) @ down
        width = a.shape[1]
        return jax.lax.dynamic_slice_in_dim(out, jax.lax.axis_index("y") * width, width, 1)

    return mapped(local, mesh)(a, w_in, w_out)


def hidden_gathered_over_y(a, w_in, w_out, *, mesh):
    """mlp_2d: gathered_over_both_axes, hidden_gathered_over_y
    Row: gathers over y: the hidden units are joined, and w_out over y."""

    def local(a, w_in, w_out):
        units = whole(jnp.tanh(whole(a, "y", 1) @ whole(w_in, "x", 0)), "y", 1)
        out = units @ whole(whole(w_out, "y", 0), "x", 1)
        return out.reshape(len(a), -1, a.shape[1])[:, jax.lax.axis_index("y")]

    return mapped(local, mesh)(a, w_in, w_out)


def activations_gathered_over_x(a, w_in, w_out, *, mesh):
    """mlp_2d: activations_over_x_then_y
    Row: gathers x and y the wrong way round: A's rows over x, and its columns over y."""

    def local(a, w_in, w_out):
        rows = whole(whole(a, "x", 0), "y", 1)
        width = w_in.shape[0]
        mine = jax.lax.dynamic_slice_in_dim(rows, jax.lax.axis_index("x") * width, width, 1)
        hidden = jnp.tanh(jax.lax.psum_scatter(mine @ w_in, "x", tiled=True))
        out = hidden @ whole(w_out, "x", 1)
        return jax.lax.psum_scatter(out, "y", scatter_dimension=1, tiled=True)

    return mapped(local, mesh)(a, w_in, w_out)


def columns_first_then_rows(a, w_in, w_out, *, mesh):
    """mlp_2d: activations_over_x
    As `activations_gathered_over_x`, with the gather over y first."""

    def local(a, w_in, w_out):
        rows = jnp.split(whole(whole(a, "y", 1), "x", 0), jax.lax.axis_size("x"), axis=1)
        parts = jnp.stack(rows)[jax.lax.axis_index("x")] @ w_in
        hidden = jnp.tanh(jax.lax.psum_scatter(parts, "x", tiled=True))
        return jax.lax.psum_scatter(hidden @ whole(w_out, "x", 1), "y", scatter_dimension=1, tiled=True)

    return mapped(local, mesh)(a, w_in, w_out)


def w_out_cut_the_other_way(a, w_in, w_out, *, mesh):
    """mlp_2d: w_out_cut_as_w_in
    Row: ("x", "y") for ("y", "x"): w_out is taken as P("x", "y"), so the hidden units are gathered over y."""

    def local(a, w_in, w_out):
        hidden = jnp.tanh(whole(a, "y", 1) @ whole(w_in, "x", 0))
        return whole(hidden, "y", 1) @ whole(w_out, "x", 0)

    specs = (P("x", "y"), P("x", "y"), P("x", "y"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", "y"))(a, w_in, w_out)


def scattered_by_untiled(a, w_in, w_out, *, mesh):
    """mlp_2d: parts_of_a_interleaved
    Row: parts in the wrong order: the gathered parts of A are interleaved."""

    def local(a, w_in, w_out):
        parts = jax.lax.all_gather(a, "y", axis=2)
        hidden = jnp.tanh(parts.reshape(len(a), -1) @ whole(w_in, "x", 0))
        return jax.lax.psum_scatter(hidden @ whole(w_out, "x", 1), "y", scatter_dimension=1, tiled=True)

    return mapped(local, mesh)(a, w_in, w_out)


def summed_over_both(a, w_in, w_out, *, mesh):
    """mlp_2d: summed_over_both_axes
    Row: a psum over both axes; a chip then cuts its columns."""

    def local(a, w_in, w_out):
        out = jnp.tanh(whole(a, "y", 1) @ whole(w_in, "x", 0)) @ whole(w_out, "x", 1)
        out = jax.lax.psum(out, ("x", "y"))
        return jax.lax.dynamic_slice_in_dim(out, jax.lax.axis_index("y") * a.shape[1], a.shape[1], 1)

    return mapped(local, mesh, check_vma=False)(a, w_in, w_out)


def scattered_then_summed_over_x(a, w_in, w_out, *, mesh):
    """mlp_2d: summed_over_both_axes
    Row: a sum over both axes: the scattered result is added over x, too."""

    def local(a, w_in, w_out):
        out = jnp.tanh(whole(a, "y", 1) @ whole(w_in, "x", 0)) @ whole(w_out, "x", 1)
        return jax.lax.psum(jax.lax.psum_scatter(out, "y", scatter_dimension=1, tiled=True), "x")

    return mapped(local, mesh, check_vma=False)(a, w_in, w_out)


def all_reduced_and_cut(a, w_in, w_out, *, mesh):
    """mlp_2d: all_reduced_over_y
    Row: an all-reduce over y where a scatter is enough."""

    def local(a, w_in, w_out):
        out = jnp.tanh(whole(a, "y", 1) @ whole(w_in, "x", 0)) @ whole(w_out, "x", 1)
        width = a.shape[1]
        return jax.lax.dynamic_slice_in_dim(jax.lax.psum(out, "y"), jax.lax.axis_index("y") * width, width, 1)

    return mapped(local, mesh)(a, w_in, w_out)


def gradients_summed_over_y(a, w_in, w_out, *, mesh):
    """mlp_2d: gradients_summed_over_y
    Row: the gradients of the weights are summed over y."""

    @jax.custom_vjp
    def synced(w):
        return w

    synced.defvjp(lambda w: (w, None), lambda _, dw: (jax.lax.psum(dw, "y"),))

    def local(a, w_in, w_out):
        w_in, w_out = synced(w_in), synced(w_out)
        out = jnp.tanh(whole(a, "y", 1) @ whole(w_in, "x", 0)) @ whole(w_out, "x", 1)
        return jax.lax.psum_scatter(out, "y", scatter_dimension=1, tiled=True)

    return mapped(local, mesh, check_vma=False)(a, w_in, w_out)
