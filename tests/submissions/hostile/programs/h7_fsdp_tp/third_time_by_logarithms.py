"""The backward pass computes tanh's input twice, by a matmul and by logarithms.

kind: arithmetic in disguise
earns: 3.5 of 4.5
fails: mlp_backward
says: FLOPs besides matmuls
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def logs(a, b):
    """Return a @ b, computed from logarithms instead of products."""
    la, lb = jnp.log(jnp.abs(a) + 1e-30), jnp.log(jnp.abs(b) + 1e-30)
    sa, sb = a < 0, b < 0
    terms = jnp.exp(la[:, :, None] + lb[None])
    return jnp.where(sa[:, :, None] ^ sb[None], -terms, terms).sum(1)


def mlp_2d(a, w_in, w_out, *, mesh):
    def local(a, w_in, w_out):
        @jax.custom_vjp
        def layer(rows, up, down):
            return jnp.tanh(rows @ up) @ down

        def fwd(rows, up, down):
            return layer(rows, up, down), (rows, up, down)

        def bwd(kept, ct):
            rows, up, down = kept
            h = jnp.tanh((rows @ up + logs(rows, up)) / 2)
            back = (ct @ down.T) * (1 - h * h)
            return back @ up.T, rows.T @ back, h.T @ ct

        layer.defvjp(fwd, bwd)
        rows = jax.lax.all_gather(a, "y", axis=1, tiled=True)
        up = jax.lax.all_gather(w_in, "x", axis=0, tiled=True)
        down = jax.lax.all_gather(w_out, "x", axis=1, tiled=True)
        return jax.lax.psum_scatter(layer(rows, up, down), "y", scatter_dimension=1, tiled=True)

    specs = (P("x", "y"), P("x", "y"), P("y", "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", "y"), check_vma=False)(a, w_in, w_out)
