import jax
import jax.numpy as jnp

from j3_ulysses import rotate


def spread(a):
    # [B, T/N, H, d] to [B, T, H/N, d]
    return jax.lax.all_to_all(a, "x", 2, 1, tiled=True)


def back(a):
    return jax.lax.all_to_all(a, "x", 1, 2, tiled=True)


def attend(q, k, v, repeat=jnp.repeat):
    groups, t = q.shape[2] // k.shape[2], jnp.arange(q.shape[1])
    if groups > 1:
        k, v = repeat(k, groups, axis=2), repeat(v, groups, axis=2)
    scores = jnp.einsum("bthd,bshd->bhts", q, k)
    scores = jnp.where(t[:, None] >= t, scores, -jnp.inf)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores, axis=-1), v)


def turned(q, k):
    t = jnp.arange(q.shape[1])
    return rotate(q, t), rotate(k, t)


def tiled(a, groups, axis):
    return jnp.concatenate([a] * groups, axis)


def reshaped_in_the_wrong_order(q, k, v):
    """ulysses: rows_alternate
    Row: after the all-to-all the positions are put together in the wrong order."""

    def spread_untiled(a):
        n = jax.lax.axis_size("x")
        B, t, H, d = a.shape
        parts = jax.lax.all_to_all(a.reshape(B, t, n, H // n, d), "x", 2, 2)  # axis 2 is the sender now
        return parts.reshape(B, t * n, H // n, d)

    q, k, v = spread_untiled(q), spread_untiled(k), spread_untiled(v)
    q, k = turned(q, k)
    return back(attend(q, k, v))


def batch_taken_for_positions(q, k, v):
    """ulysses: joined_before_the_texts
    Row: a reshape in the wrong order: the sender's axis comes before the batch."""

    def spread_untiled(a):
        n = jax.lax.axis_size("x")
        B, t, H, d = a.shape
        parts = jax.lax.all_to_all(a.reshape(B, t, n, H // n, d), "x", 2, 0)  # [N, B, t, H/N, d]
        return parts.reshape(B, t * n, H // n, d)

    q, k, v = spread_untiled(q), spread_untiled(k), spread_untiled(v)
    q, k = turned(q, k)
    return back(attend(q, k, v))


def heads_interleaved_on_return(q, k, v):
    """ulysses: heads_alternate
    Row: the return copies the way out: sizes fit, but the heads come in the wrong order."""
    q, k, v = spread(q), spread(k), spread(v)
    q, k = turned(q, k)
    out, n = attend(q, k, v), jax.lax.axis_size("x")
    B, T, h, d = out.shape
    parts = jax.lax.all_to_all(out.reshape(B, n, T // n, h, d), "x", 1, 3)  # [B, T/N, h, N, d]
    return parts.reshape(B, T // n, h * n, d)


def return_copies_the_way_out(q, k, v):
    """ulysses: out_again_on_the_way_back
    Row: the return is the all-to-all of the way out, with a reshape to make the sizes fit."""
    shape = q.shape
    q, k, v = spread(q), spread(k), spread(v)
    q, k = turned(q, k)
    out, n = attend(q, k, v), jax.lax.axis_size("x")
    return jax.lax.all_to_all(out.reshape(shape[0], shape[1], n, -1, shape[3]), "x", 2, 1).reshape(shape)


def rotated_at_home(q, k, v):
    """ulysses: rotated_by_the_block
    Row: rotates before the all-to-all, by local positions."""
    q, k = turned(q, k)
    return back(attend(spread(q), spread(k), spread(v)))


def queries_rotated_at_home(q, k, v):
    """ulysses: rotated_by_the_block
    Row: local positions for the queries alone."""
    q = rotate(q, jnp.arange(q.shape[1]))
    q, k, v = spread(q), spread(k), spread(v)
    return back(attend(q, rotate(k, jnp.arange(k.shape[1])), v))


def key_heads_tiled(q, k, v):
    """ulysses: key_heads_in_turns
    Row: the groups of query and key heads do not match: key heads are tiled, not repeated."""
    q, k, v = spread(q), spread(k), spread(v)
    q, k = turned(q, k)
    return back(attend(q, k, v, repeat=tiled))


def repeated_before_the_send(q, k, v):
    """ulysses: repeated_before_sending
    Row: key heads are repeated for their query heads before the all-to-all."""
    groups = q.shape[2] // k.shape[2]
    k, v = jnp.repeat(k, groups, 2), jnp.repeat(v, groups, 2)
    q, k, v = spread(q), spread(k), spread(v)
    q, k = turned(q, k)
    return back(attend(q, k, v))


def _to_heads(a):
    return jax.lax.all_to_all(a, "x", split_axis=2, concat_axis=1, tiled=True)


def _attend(q, k, v, scale=1.0, turn=lambda a, p: rotate(a, p)):
    p = jnp.arange(q.shape[1])
    q = rotate(q, p)
    k = turn(k, p)
    k, v = (jnp.repeat(a, q.shape[2] // k.shape[2], axis=2) for a in (k, v))
    s = jnp.einsum("bthd,bshd->bhts", q, k) * scale
    s = jnp.where(p[:, None] >= p[None, :], s, -jnp.inf)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(s, axis=-1), v)


def _home(o):
    return jax.lax.all_to_all(o, "x", split_axis=1, concat_axis=2, tiled=True)


def scores_scaled(q, k, v):
    """ulysses: scaled_by_the_root_of_d"""
    return _home(_attend(*map(_to_heads, (q, k, v)), scale=q.shape[-1] ** -0.5))


def keys_not_rotated(q, k, v):
    """ulysses: rotated_only_queries"""
    return _home(_attend(*map(_to_heads, (q, k, v)), turn=lambda a, p: a))


def whole_text_gathered(q, k, v):
    """ulysses: gathered_the_text"""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    T = q.shape[1]
    k, v = (jax.lax.all_gather(a, "x", axis=1, tiled=True) for a in (k, v))
    mine, whole = me * T + jnp.arange(T), jnp.arange(n * T)
    q, k = rotate(q, mine), rotate(k, whole)
    k, v = (jnp.repeat(a, q.shape[2] // k.shape[2], axis=2) for a in (k, v))
    s = jnp.einsum("bthd,bshd->bhts", q, k)
    s = jnp.where(mine[:, None] >= whole[None, :], s, -jnp.inf)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(s), v)
