import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def mapped(local, mesh, vma=True):
    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P(), check_vma=vma)


def gather(w):
    return jax.lax.all_gather(w, "dp", axis=0, tiled=True)


def no_checkpoint_at_all(ws, x, *, mesh):
    """fsdp_loss: kept_what_was_gathered"""
    rows = x.shape[0]

    def local(ws, x):
        for i in range(ws.shape[0]):
            x = jnp.tanh(x @ gather(ws[i]))
        return jax.lax.psum(jnp.sum(x * x), "dp") / rows

    return mapped(local, mesh)(ws, x)


def scanned_without_checkpoint(ws, x, *, mesh):
    """fsdp_loss: kept_what_was_gathered"""
    rows = x.shape[0]

    def local(ws, x):
        x, _ = jax.lax.scan(lambda x, w: (jnp.tanh(x @ gather(w)), None), x, ws)
        return jax.lax.psum(jnp.sum(x * x) / rows, "dp")

    return mapped(local, mesh)(ws, x)


def kept_by_hand(ws, x, *, mesh):
    """fsdp_loss: kept_what_was_gathered"""
    rows = x.shape[0]

    def forward(x, w):
        whole = gather(w)
        out = jnp.tanh(x @ whole)
        return out, (x, whole, out)

    def backward(kept, g):
        x, whole, out = kept
        g = g * (1 - out**2)
        return g @ whole.T, jax.lax.psum_scatter(x.T @ g, "dp", tiled=True)

    layer = jax.custom_vjp(lambda x, w: forward(x, w)[0])
    layer.defvjp(forward, backward)

    def local(ws, x):
        for w in ws:
            x = layer(x, w)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return mapped(local, mesh)(ws, x)


def gathered_again_untied(ws, x, *, mesh):
    """fsdp_loss: gathers_merged"""
    rows = x.shape[0]

    def forward(x, w):
        out = jnp.tanh(x @ gather(w))
        return out, (x, w, out)

    def backward(kept, g):
        x, w, out = kept
        g = g * (1 - out**2)
        return g @ gather(w).T, jax.lax.psum_scatter(x.T @ g, "dp", tiled=True)

    layer = jax.custom_vjp(lambda x, w: forward(x, w)[0])
    layer.defvjp(forward, backward)

    def local(ws, x):
        for w in ws:
            x = layer(x, w)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return mapped(local, mesh)(ws, x)


def all_layers_in_front(ws, x, *, mesh):
    """fsdp_loss: gathered_the_model_at_once, gathered_all_layers_first, kept_what_was_gathered"""
    rows = x.shape[0]

    def local(ws, x):
        whole = jax.lax.all_gather(ws, "dp", axis=1, tiled=True)
        x, _ = jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, whole)
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return mapped(local, mesh)(ws, x)


def own_rows_divided(ws, x, *, mesh):
    """fsdp_loss: divided_by_own_rows"""

    def local(ws, x):
        for w in ws:
            x = jax.checkpoint(lambda x, w: jnp.tanh(x @ gather(w)))(x, w)
        return jax.lax.psum(jnp.mean(jnp.sum(x**2, axis=1)), "dp")

    return mapped(local, mesh)(ws, x)


def own_loss(ws, x, *, mesh):
    """fsdp_loss: loss_of_own_rows"""
    rows = x.shape[0]

    def local(ws, x):
        for w in ws:
            x = jax.checkpoint(lambda x, w: jnp.tanh(x @ gather(w)))(x, w)
        return jnp.vdot(x, x) / rows

    return mapped(local, mesh, vma=False)(ws, x)


def reduced_whole(ws, x, *, mesh):
    """fsdp_loss: summed_whole_gradients"""
    rows = x.shape[0]

    def forward(x, w):
        out = jnp.tanh(x @ gather(w))
        return out, (x, w, out)

    def backward(kept, g):
        x, w, out = kept
        w, g = jax.lax.optimization_barrier((w, g))
        g = g * (1 - out**2)
        own = len(w) * jax.lax.axis_index("dp")
        return g @ gather(w).T, jax.lax.dynamic_slice_in_dim(jax.lax.psum(x.T @ g, "dp"), own, len(w))

    layer = jax.custom_vjp(lambda x, w: forward(x, w)[0])
    layer.defvjp(forward, backward)

    def local(ws, x):
        for i in range(len(ws)):
            x = layer(x, ws[i])
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return mapped(local, mesh, vma=False)(ws, x)


def no_tanh_at_the_end(ws, x, *, mesh):
    """fsdp_loss: without_tanh"""
    rows = x.shape[0]

    def local(ws, x):
        for w in ws[:-1]:
            x = jax.checkpoint(lambda x, w: jnp.tanh(x @ gather(w)))(x, w)
        return jax.lax.psum(jnp.sum((x @ gather(ws[-1])) ** 2), "dp") / rows

    return mapped(local, mesh)(ws, x)


def stack(ws, x, mesh, layer=None, loss=None, vma=True):
    # a Python loop over checkpointed layers, with another layer or another loss
    rows = x.shape[0]
    run = jax.checkpoint(layer or (lambda x, w: jnp.tanh(x @ gather(w))))

    def local(ws, x):
        for w in ws:
            x = run(x, w)
        return loss(x) if loss else jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return mapped(local, mesh, vma)(ws, x)


def scanned(ws, x, mesh, layer=None, loss=None, vma=True):
    # as `stack`, with a scan and einsum
    rows = x.shape[0]
    run = layer or (lambda x, w: jnp.tanh(jnp.einsum("bi,ij->bj", x, gather(w))))

    def local(ws, x):
        x, _ = jax.lax.scan(jax.checkpoint(lambda x, w: (run(x, w), None)), x, ws)
        return loss(x) if loss else jax.lax.psum(jnp.vdot(x, x) / rows, "dp")

    return mapped(local, mesh, vma)(ws, x)


def own_loss_scanned(ws, x, *, mesh):
    """fsdp_loss: loss_of_own_rows
    Each device returns its own part of the loss."""
    rows = x.shape[0]
    return scanned(ws, x, mesh, loss=lambda x: jnp.sum(x * x) / rows, vma=False)


def own_mean(ws, x, *, mesh):
    """fsdp_loss: loss_of_own_rows
    Each device returns the mean over its own rows."""
    return stack(ws, x, mesh, loss=lambda x: jnp.mean(jnp.sum(x**2, axis=-1)), vma=False)


def own_mean_scanned(ws, x, *, mesh):
    """fsdp_loss: loss_of_own_rows
    Each device returns the mean over its own rows."""
    return scanned(ws, x, mesh, loss=lambda x: jnp.vdot(x, x) / len(x), vma=False)


def mean_over_elements(ws, x, *, mesh):
    """fsdp_loss: mean_over_all_numbers"""
    return stack(ws, x, mesh, loss=lambda x: jax.lax.pmean(jnp.mean(x**2), "dp"))


def mean_over_elements_scanned(ws, x, *, mesh):
    """fsdp_loss: mean_over_all_numbers"""
    size = x.size
    return scanned(ws, x, mesh, loss=lambda x: jax.lax.psum(jnp.sum(jnp.square(x)), "dp") / size)


def sum_over_rows(ws, x, *, mesh):
    """fsdp_loss: summed_over_rows"""
    return stack(ws, x, mesh, loss=lambda x: jax.lax.psum(jnp.sum(x**2), "dp"))


def sum_over_rows_scanned(ws, x, *, mesh):
    """fsdp_loss: summed_over_rows"""
    return scanned(ws, x, mesh, loss=lambda x: jnp.sum(jax.lax.psum(jnp.vdot(x, x), "dp")))


def no_tanh(ws, x, *, mesh):
    """fsdp_loss: without_tanh"""
    return stack(ws, x, mesh, layer=lambda x, w: x @ gather(w))


def no_tanh_scanned(ws, x, *, mesh):
    """fsdp_loss: without_tanh"""
    return scanned(ws, x, mesh, layer=lambda x, w: jnp.einsum("bi,ij->bj", x, gather(w)))


def no_tanh_at_the_end_scanned(ws, x, *, mesh):
    """fsdp_loss: without_tanh"""
    rows = x.shape[0]

    def local(ws, x):
        layer = jax.checkpoint(lambda x, w: (jnp.tanh(x @ gather(w)), None))
        x = jax.lax.scan(layer, x, ws[:-1])[0] @ gather(ws[-1])
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return mapped(local, mesh)(ws, x)


def halves_of_columns(ws, x, *, mesh):
    """fsdp_loss: gathered_in_parts
    A layer is gathered as two halves of its columns."""

    def layer(x, w):
        half = w.shape[1] // 2
        return jnp.tanh(jnp.concatenate([x @ gather(w[:, :half]), x @ gather(w[:, half:])], axis=1))

    return stack(ws, x, mesh, layer)


def halves_of_rows(ws, x, *, mesh):
    """fsdp_loss: gathered_in_parts
    A layer is gathered as two halves of each device's rows."""

    def layer(x, w):
        half = len(w) // 2
        parts = [jax.lax.all_gather(part, "dp") for part in (w[:half], w[half:])]
        return jnp.tanh(x @ jnp.concatenate(parts, axis=1).reshape(-1, w.shape[1]))

    return scanned(ws, x, mesh, layer)


def four_parts(ws, x, *, mesh):
    """fsdp_loss: gathered_in_parts
    A layer is gathered in four parts."""

    def layer(x, w):
        return jnp.tanh(x @ jnp.concatenate([gather(part) for part in jnp.split(w, 4, axis=1)], axis=1))

    return stack(ws, x, mesh, layer)


def one_checkpoint(ws, x, *, mesh):
    """fsdp_loss: gathered_all_layers_first
    One checkpoint contains all layers."""
    rows = x.shape[0]

    @jax.checkpoint
    def model(ws, x):
        for w in ws:
            x = jnp.tanh(x @ gather(w))
        return x

    def local(ws, x):
        return jax.lax.psum(jnp.sum(model(ws, x) ** 2), "dp") / rows

    return mapped(local, mesh)(ws, x)


def one_checkpoint_and_the_loss(ws, x, *, mesh):
    """fsdp_loss: gathered_all_layers_first
    One checkpoint contains a scan over all layers, and the loss."""
    rows = x.shape[0]

    @jax.checkpoint
    def own_loss(ws, x):
        x, _ = jax.lax.scan(lambda x, w: (jnp.tanh(x @ gather(w)), None), x, ws)
        return jnp.sum(x**2)

    return mapped(lambda ws, x: jax.lax.psum(own_loss(ws, x), "dp") / rows, mesh)(ws, x)


def one_checkpoint_around_the_map(ws, x, *, mesh):
    """fsdp_loss: gathered_all_layers_first
    The checkpoint is around the whole shard_map."""
    rows = x.shape[0]

    def local(ws, x):
        for i in range(len(ws)):
            x = jnp.tanh(jnp.dot(x, gather(ws[i])))
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return jax.checkpoint(mapped(local, mesh))(ws, x)


def gathered_by_psum(ws, x, *, mesh):
    """fsdp_loss: gathered_by_all_reduce
    A device writes its rows into zeros, and psum joins them."""

    def layer(x, w):
        empty = jnp.zeros((w.shape[1], w.shape[1]), w.dtype)
        mine = jax.lax.dynamic_update_slice_in_dim(empty, w, jax.lax.axis_index("dp") * len(w), 0)
        return jnp.tanh(x @ jax.lax.psum(mine, "dp"))

    return stack(ws, x, mesh, layer)


def gathered_by_psum_of_parts(ws, x, *, mesh):
    """fsdp_loss: gathered_by_all_reduce
    A device writes its rows into zeros, with `at`, and psum joins them."""

    def layer(x, w):
        mine = jnp.zeros((jax.lax.axis_size("dp"), *w.shape)).at[jax.lax.axis_index("dp")].set(w)
        return jnp.tanh(x @ jax.lax.psum(mine, "dp").reshape(-1, w.shape[1]))

    return scanned(ws, x, mesh, layer, vma=False)


def gathered_by_psum_and_kept(ws, x, *, mesh):
    """fsdp_loss: gathered_by_all_reduce
    As `gathered_by_psum`, without a checkpoint."""
    rows = x.shape[0]

    def whole(w):
        me = jnp.arange(jax.lax.axis_size("dp")) == jax.lax.axis_index("dp")
        return jax.lax.psum(jnp.where(me[:, None, None], w, 0), "dp").reshape(-1, w.shape[1])

    def local(ws, x):
        for w in ws:
            x = jnp.tanh(x @ whole(w))
        return jax.lax.psum(jnp.sum(x**2), "dp") / rows

    return mapped(local, mesh)(ws, x)
