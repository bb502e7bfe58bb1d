import jax
import jax.numpy as jnp

from grader.hardware import CHIPS


def one_direction(chip, I, J, X):
    """bidi_gather_time: bidi_time_one_way"""
    return 2 * I * J * (X - 1) / X / CHIPS[chip].ici


def half_shards(chip, I, J, X):
    """bidi_gather_time: bidi_time_of_half_shards"""
    return I * J / CHIPS[chip].ici_both


def no_latency(chip, I, L, J, X):
    """bidi_time_saved: bidi_saved_in_bytes"""
    return (X - 1 - X // 2) * 2 * (I + L) * J / X / CHIPS[chip].ici


def half_of_the_hops(chip, I, L, J, X):
    """bidi_time_saved: bidi_saved_half_the_ring"""
    return X // 2 * sum(max(1e-6, 2 * rows * J / X / CHIPS[chip].ici) for rows in (I, L))


def _rings(n):
    return [(i, (i + 1) % n) for i in range(n)], [(i, (i - 1) % n) for i in range(n)]


def _put(out, part, owner):
    return jax.lax.dynamic_update_slice_in_dim(out, part, owner * part.shape[0], 0)


def one_way_only(a):
    """bidi_all_gather: bidi_one_way"""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    held = [a]
    for _ in range(n - 1):
        held.append(jax.lax.ppermute(held[-1], "x", _rings(n)[0]))
    out = jnp.zeros((n * a.shape[0], a.shape[1]), a.dtype)
    for k, part in enumerate(held):
        out = _put(out, part, (me - k) % n)
    return out


def opposite_twice(a):
    """bidi_all_gather: bidi_middle_twice"""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    there, back = _rings(n)
    out = _put(jnp.zeros((n * a.shape[0], a.shape[1]), a.dtype), a, me)
    f = b = a
    for k in range(1, n // 2 + 1):
        f = jax.lax.ppermute(f, "x", there)
        b = jax.lax.ppermute(b, "x", back)
        out = _put(_put(out, f, (me - k) % n), b, (me + k) % n)
    return out


def ways_mixed_up(a):
    """bidi_all_gather: bidi_mirrored"""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    there, back = _rings(n)
    out = _put(jnp.zeros((n * a.shape[0], a.shape[1]), a.dtype), a, me)
    f = b = a
    for k in range(1, n // 2 + 1):
        f = jax.lax.ppermute(f, "x", there)
        out = _put(out, f, (me + k) % n)
        if k <= (n - 1) // 2:
            b = jax.lax.ppermute(b, "x", back)
            out = _put(out, b, (me - k) % n)
    return out


def far_jumps(a):
    """bidi_all_gather: bidi_over_the_heads"""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = _put(jnp.zeros((n * a.shape[0], a.shape[1]), a.dtype), a, me)
    for k in range(1, n // 2 + 1):
        out = _put(out, jax.lax.ppermute(a, "x", [(i, (i + k) % n) for i in range(n)]), (me - k) % n)
        if k <= (n - 1) // 2:
            out = _put(out, jax.lax.ppermute(a, "x", [(i, (i - k) % n) for i in range(n)]), (me + k) % n)
    return out


def halves_all_the_way(a):
    """bidi_all_gather: bidi_halves"""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    there, back = _rings(n)
    cols = a.shape[1] // 2
    f, b = a[:, :cols], a[:, cols:]
    left, right = jnp.zeros((n * a.shape[0], cols), a.dtype), jnp.zeros((n * a.shape[0], a.shape[1] - cols), a.dtype)
    for k in range(n):
        left, right = _put(left, f, (me - k) % n), _put(right, b, (me + k) % n)
        if k < n - 1:
            f, b = jax.lax.ppermute(f, "x", there), jax.lax.ppermute(b, "x", back)
    return jnp.concatenate([left, right], axis=1)


def opposite_never(a):
    """bidi_all_gather: bidi_middle_missing"""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    there, back = _rings(n)
    out = _put(jnp.zeros((n * a.shape[0], a.shape[1]), a.dtype), a, me)
    f = b = a
    for k in range(1, (n - 1) // 2 + 1):
        f, b = jax.lax.ppermute(f, "x", there), jax.lax.ppermute(b, "x", back)
        out = _put(_put(out, f, (me - k) % n), b, (me + k) % n)
    return out


def joined_by_arrival(a):
    """bidi_all_gather: bidi_in_order_of_arrival"""
    n = jax.lax.axis_size("x")
    there, back = _rings(n)
    held = [a]
    f = b = a
    for k in range(1, n // 2 + 1):
        f = jax.lax.ppermute(f, "x", there)
        held.append(f)
        if k <= (n - 1) // 2:
            b = jax.lax.ppermute(b, "x", back)
            held.insert(0, b)
    return jnp.concatenate(held)
