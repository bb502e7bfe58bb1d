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
    """fsdp_loss: none"""
    rows = x.shape[0]

    def local(ws, x):
        for w in ws[:-1]:
            x = jax.checkpoint(lambda x, w: jnp.tanh(x @ gather(w)))(x, w)
        return jax.lax.psum(jnp.sum((x @ gather(ws[-1])) ** 2), "dp") / rows

    return mapped(local, mesh)(ws, x)
