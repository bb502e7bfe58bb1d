import jax
import jax.numpy as jnp


def by_the_library(a):
    """ring_all_gather: gathered_by_built_in"""
    return jax.lax.all_gather(a, axis_name="x", axis=0, tiled=True)


def as_they_come(a):
    """ring_all_gather: gathered_in_order_of_arrival"""
    n, parts = jax.lax.axis_size("x"), [a]
    for _ in range(n - 1):
        parts.append(jax.lax.ppermute(parts[-1], "x", [(i, (i + 1) % n) for i in range(n)]))
    return jnp.concatenate(parts)


def wrong_slot(a):
    """ring_all_gather: gathered_with_wrong_sign"""
    n, me, rows = jax.lax.axis_size("x"), jax.lax.axis_index("x"), a.shape[0]
    out = jnp.zeros((n * rows, *a.shape[1:]), a.dtype)
    for hop in range(n):
        out = jax.lax.dynamic_update_slice_in_dim(out, a, (me + hop) % n * rows, axis=0)
        if hop < n - 1:
            a = jax.lax.ppermute(a, "x", [(i, (i + 1) % n) for i in range(n)])
    return out


def a_hop_too_many(a):
    """ring_all_gather: gathered_in_n_hops"""
    n, me, rows = jax.lax.axis_size("x"), jax.lax.axis_index("x"), a.shape[0]
    out = jnp.zeros((n * rows, *a.shape[1:]), a.dtype)
    for hop in range(n):
        out = jax.lax.dynamic_update_slice_in_dim(out, a, (me - hop) % n * rows, axis=0)
        a = jax.lax.ppermute(a, "x", [(i, (i + 1) % n) for i in range(n)])
    return out + jnp.concatenate([a] * n) * 0


def x_hops(I, J, X):
    """ring_gather_bytes: ring_gather_bytes_of_n_hops"""
    return X * (I / X) * J * 4


def whole_array_each_hop(I, J, X):
    """ring_gather_bytes: ring_gather_bytes_of_slots"""
    return (X - 1) * I * J * 4


def _placed(a, place, start=True, hops=None, step=1, count_from=0):
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype)
    out = out.at[me].set(a) if start else out
    for hop in range(n - 1):
        a = jax.lax.ppermute(a, "x", [(i, (i + step) % n) for i in range(n)])
        out = out.at[place(me, hop) % n].set(a)
    return out.reshape(-1, a.shape[1])


def counted_from_0(a):
    """ring_all_gather: gathered_one_slot_off"""
    return _placed(a, lambda me, hop: me - hop)


def counted_from_2(a):
    """ring_all_gather: gathered_one_slot_off"""
    return _placed(a, lambda me, hop: me - hop - 2)


def backwards_and_counted_from_0(a):
    """ring_all_gather: gathered_one_slot_off"""
    return _placed(a, lambda me, hop: me + hop, step=-1)


def all_slots_one_on(a):
    """ring_all_gather: gathered_one_slot_off"""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[(me + 1) % n].set(a)
    for hop in range(1, n):
        a = jax.lax.ppermute(a, "x", [(i, (i + 1) % n) for i in range(n)])
        out = out.at[(me + 1 - hop) % n].set(a)
    return out.reshape(-1, a.shape[1])


def own_slot_last(a):
    """ring_all_gather: gathered_one_slot_off"""
    n, me, own = jax.lax.axis_size("x"), jax.lax.axis_index("x"), a
    out = jnp.zeros((n, *a.shape), a.dtype)
    for hop in range(1, n):
        a = jax.lax.ppermute(a, "x", [(i, (i + 1) % n) for i in range(n)])
        out = out.at[(me - hop + 1) % n].set(a)
    return out.at[me].set(own).reshape(-1, a.shape[1])
