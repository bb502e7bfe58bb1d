import jax
import jax.numpy as jnp

from grader.hardware import CHIPS


def parts(q, k, v, length, low=-jnp.inf, local=False):
    rows = k.shape[1]
    place = jnp.arange(rows) + (0 if local else rows * jax.lax.axis_index("x"))
    return jnp.where(place[None, None] < length[:, None, None], jnp.einsum("bkh,bskh->bks", q, k), low)


def combined(s, v, top, over=None):
    over = over or "x"
    p = jnp.exp(s - top[..., None])
    o = jax.lax.psum(jnp.einsum("bks,bskh->bkh", p, v), over)
    return o / jax.lax.psum(p.sum(-1), over)[..., None]


def averaged_ratios(q, k, v, length):
    """decode: mean_of_softmaxes, mean_over_devices_with_keys"""
    s = parts(q, k, v, length)
    p = jnp.exp(s - s.max(-1, keepdims=True))
    return jax.lax.pmean(jnp.einsum("bks,bskh->bkh", p, v) / p.sum(-1)[..., None], "x")


def averaged_ratios_of_all(q, k, v, length):
    """decode: mean_of_softmaxes"""
    s = parts(q, k, v, length, low=-1e30)
    p = jnp.exp(s - s.max(-1, keepdims=True))
    own = jnp.einsum("bks,bskh->bkh", p / p.sum(-1, keepdims=True), v)
    return jax.lax.psum(own, "x") / jax.lax.axis_size("x")


def averaged_with_zeros(q, k, v, length):
    """decode: mean_of_softmaxes, averaged_with_empty_devices"""
    s = parts(q, k, v, length)
    some = jnp.isfinite(s.max(-1))
    p = jnp.exp(s - jnp.where(some, s.max(-1), 0)[..., None])
    own = jnp.einsum("bks,bskh->bkh", p, v) / jnp.where(some, p.sum(-1), 1)[..., None]
    return jax.lax.pmean(own, "x")


def own_maximum(q, k, v, length):
    """decode: each_by_its_own_maximum"""
    s = parts(q, k, v, length)
    top = jnp.where(jnp.isfinite(s.max(-1)), s.max(-1), 0)
    return combined(s, v, top)


def own_maximum_at_minus_infinity(q, k, v, length):
    """decode: empty_part_is_nan, each_by_its_own_maximum"""
    s = parts(q, k, v, length)
    return combined(s, v, s.max(-1))


def no_maximum_at_all(q, k, v, length):
    """decode: no_maximum"""
    s = parts(q, k, v, length)
    return combined(s, v, jnp.zeros(s.shape[:-1]))


def local_rows(q, k, v, length):
    """decode: masked_by_local_position"""
    s = parts(q, k, v, length, local=True)
    return combined(s, v, jax.lax.pmax(s.max(-1), "x"))


def zero_scores(q, k, v, length):
    """decode: masked_by_zero"""
    s = parts(q, k, v, length, low=0.0)
    return combined(s, v, jax.lax.pmax(jnp.max(s, axis=-1), "x"))


def gathered(q, k, v, length):
    """decode: gathered_the_cache"""
    k, v = (jax.lax.all_gather(a, "x", axis=1, tiled=True) for a in (k, v))
    s = jnp.where(jnp.arange(k.shape[1]) < length[:, None, None], jnp.einsum("bkh,bskh->bks", q, k), -1e30)
    return jnp.einsum("bks,bskh->bkh", jax.nn.softmax(s), v)


def over_y_too(q, k, v, length):
    """decode: added_over_heads"""
    s = parts(q, k, v, length)
    top = jax.lax.pmax(s.max(-1), ("x", "y"))
    return combined(s, v, top, over=("x", "y"))


def root_of_h(q, k, v, length):
    """decode: scaled_by_the_root_of_h"""
    s = parts(q / q.shape[-1] ** 0.5, k, v, length)
    return combined(s, v, jax.lax.pmax(s.max(-1), "x"))


def one_position_more(q, k, v, length):
    """decode: one_position_too_many"""
    s = parts(q, k, v, length + 1)
    return combined(s, v, jax.lax.pmax(s.max(-1), "x"))


def _own(q, k, v, length):
    S = k.shape[1]
    at = jax.lax.axis_index("x") * S + jnp.arange(S)
    s = jnp.einsum("bkh,bskh->bks", q, k)
    return jnp.where(at[None, None, :] < length[:, None, None], s, -1e30)


def masses_without_maximum(q, k, v, length):
    """decode: each_by_its_own_maximum"""
    s = _own(q, k, v, length)
    top = s.max(-1, keepdims=True)
    e = jnp.where(s > -1e29, jnp.exp(s - top), 0)
    mass = e.sum(-1)
    mean = jnp.einsum("bks,bskh->bkh", e, v) / jnp.maximum(mass, 1e-30)[..., None]
    return jax.lax.psum(mean * mass[..., None], "x") / jax.lax.psum(mass, "x")[..., None]


def maxima_added(q, k, v, length):
    """decode: maxima_added"""
    s = _own(q, k, v, length)
    top = jax.lax.psum(jnp.maximum(s.max(-1, keepdims=True), -1e3), "x")
    e = jnp.exp(s - top)
    return jax.lax.psum(jnp.einsum("bks,bskh->bkh", e, v), "x") / jax.lax.psum(e.sum(-1), "x")[..., None]


def old_data_counted(q, k, v, length):
    """decode: nothing_masked"""
    s = jnp.einsum("bkh,bskh->bsk", q, k)
    top = jax.lax.pmax(s.max(1), "x")
    e = jnp.exp(s - top[:, None, :])
    both = jnp.concatenate([jnp.einsum("bsk,bskh->bkh", e, v), e.sum(1)[..., None]], -1)
    both = jax.lax.psum(both, "x")
    return both[..., :-1] / both[..., -1:]


def _scores(q, k):
    return jnp.einsum("bkh,bskh->bsk", q, k)


def _filled(k, length):
    S = k.shape[1]
    at = jnp.arange(S) + jax.lax.axis_index("x") * S
    return (at[None, :] < length[:, None])[:, :, None]


def mean_of_the_softmaxes(q, k, v, length):
    """decode: mean_of_softmaxes"""
    s = jnp.where(_filled(k, length), _scores(q, k), -1e30)
    p = jax.nn.softmax(s, axis=1)
    return jax.lax.pmean(jnp.einsum("bsk,bskh->bkh", p, v), "x")


def every_device_its_own_maximum(q, k, v, length):
    """decode: each_by_its_own_maximum"""
    s = jnp.where(_filled(k, length), _scores(q, k), -1e30)
    e = jnp.exp(s - s.max(axis=1, keepdims=True)) * _filled(k, length)
    top = jax.lax.psum(jnp.einsum("bsk,bskh->bkh", e, v), "x")
    return top / jax.lax.psum(e.sum(1), "x")[..., None]


def length_compared_with_local_positions(q, k, v, length):
    """decode: masked_by_local_position"""
    ok = (jnp.arange(k.shape[1]) < length[:, None])[..., None]
    s = jnp.where(ok, _scores(q, k), -jnp.inf)
    m = jax.lax.pmax(s.max(1, keepdims=True), "x")
    e = jnp.exp(s - m)
    num, den = jax.lax.psum((jnp.einsum("bsk,bskh->bkh", e, v), e.sum(1)), "x")
    return num / den[..., None]


def plain_exponentials(q, k, v, length):
    """decode: no_maximum"""
    e = jnp.where(_filled(k, length), jnp.exp(_scores(q, k)), 0)
    num, den = jax.lax.psum((jnp.einsum("bsk,bskh->bkh", e, v), e.sum(1)), "x")
    return num / den[..., None]


def cache_brought_together(q, k, v, length):
    """decode: gathered_the_cache"""
    k = jax.lax.all_gather(k, "x", axis=1, tiled=True)
    v = jax.lax.all_gather(v, "x", axis=1, tiled=True)
    ok = (jnp.arange(k.shape[1]) < length[:, None])[..., None]
    p = jax.nn.softmax(jnp.where(ok, _scores(q, k), -jnp.inf), axis=1)
    return jnp.einsum("bsk,bskh->bkh", p, v)


def nothing_minus_nothing(q, k, v, length):
    """decode: empty_part_is_nan"""
    s = jnp.where(_filled(k, length), _scores(q, k), -jnp.inf)
    m = s.max(1)
    e = jnp.exp(s - m[:, None])
    mass, part = e.sum(1), jnp.einsum("bsk,bskh->bkh", e, v)
    best = jax.lax.pmax(m, "x")
    rescale = jnp.exp(m - best)
    num, den = jax.lax.psum((part * rescale[..., None], mass * rescale), "x")
    return num / den[..., None]


def keys_only(chip, B, S, X):
    """cache_read_time: read_keys_only"""
    return (B / 4) * (S / X) * (8 / 4) * 128 * 2 / CHIPS[chip].hbm_bw


def sequences_uncut(chip, B, S, X):
    """cache_read_time: read_with_an_axis_left_out"""
    return 2 * B * (S / X) * (8 / 4) * 128 * 2 / CHIPS[chip].hbm_bw


def masses_left_out(chip, B, X):
    """merge_time: merged_without_masses"""
    return 2 * B * 64 * 32 * 4 / (2 * CHIPS[chip].ici)
