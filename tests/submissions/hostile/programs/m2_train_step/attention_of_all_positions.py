"""Each device along sp computes the attention of all positions, one head after the other.

changes: honest.py
kind: work of other devices
earns: 3.5 of 4.5
fails: step_work step_time
says: FLOPs on matmuls and sums of products
"""


def attention(q, k, v):
    """Return attention of a device's own queries, [B/dp, T/sp, H/tp, d], to all positions up to each query's own."""
    rows = q.shape[1]
    heads = tuple(jnp.moveaxis(jax.lax.all_gather(a, "sp", axis=1, tiled=True), 2, 0) for a in (q, k, v))

    @jax.checkpoint
    def of_one_head(qkv):
        q, k, v = qkv
        scores = jnp.einsum("btd,bsd->bts", q, k) / q.shape[-1] ** 0.5
        return jax.nn.softmax(jnp.where(jnp.tri(q.shape[1], dtype=bool), scores, -jnp.inf)) @ v

    every = jnp.moveaxis(jax.lax.map(of_one_head, heads), 0, 2)
    return jax.lax.dynamic_slice_in_dim(every, jax.lax.axis_index("sp") * rows, rows, axis=1)
