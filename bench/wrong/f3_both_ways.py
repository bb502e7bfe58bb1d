import jax
import jax.numpy as jnp

from grader.hardware import CHIPS


def to(n, step):
    return [(d, (d + step) % n) for d in range(n)]


def both_halves_to_the_right(a, w):
    """both_ways_ag_matmul: both_ag_halves_one_way, both_ag_one_way
    Row: both halves travel in the same direction."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    blocks = w.reshape(n, -1, w.shape[1])
    top, bottom = jnp.split(a, [a.shape[0] // 2])
    c = jnp.concatenate([top, bottom]) @ blocks[me]
    for t in range(1, n):
        top = jax.lax.ppermute(top, "y", to(n, 1))
        bottom = jax.lax.ppermute(bottom, "y", to(n, 1))
        c += jnp.concatenate([top @ blocks[(me - t) % n], bottom @ blocks[(me - t) % n]])
    return c


def scanned_to_the_right(a, w):
    """both_ways_ag_matmul: both_ag_halves_one_way, both_ag_one_way
    Row: both halves travel in the same direction, in a list of halves."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    blocks, half = w.reshape(n, a.shape[1], w.shape[1]), a.shape[0] // 2
    halves = [a[:half], a[half:]]
    sums = [h @ blocks[me] for h in halves]
    for t in range(1, n):
        halves = [jax.lax.ppermute(h, "y", to(n, -1)) for h in halves]
        sums = [s + h @ blocks[(me + t) % n] for s, h in zip(sums, halves, strict=True)]
    return jnp.vstack(sums)


def halves_swapped_on_landing(a, w):
    """both_ways_ag_matmul: both_ag_records_swapped
    Row: each half is multiplied by the rows of the other half's origin."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    blocks, half = w.reshape(n, a.shape[1], w.shape[1]), a.shape[0] // 2
    forth, back = a[:half], a[half:]
    c = a @ blocks[me]
    for t in range(1, n):
        forth, back = jax.lax.ppermute(forth, "y", to(n, 1)), jax.lax.ppermute(back, "y", to(n, -1))
        c = c.at[:half].add(forth @ blocks[(me + t) % n]).at[half:].add(back @ blocks[(me - t) % n])
    return c


def stacked_in_the_wrong_order(a, w):
    """both_ways_ag_matmul: both_ag_swapped
    Row: the sums of the halves are joined in the wrong order."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    blocks, half = w.reshape(n, a.shape[1], w.shape[1]), a.shape[0] // 2
    forth, back = a[:half], a[half:]
    one, two = forth @ blocks[me], back @ blocks[me]
    for t in range(1, n):
        forth, back = jax.lax.ppermute(forth, "y", to(n, 1)), jax.lax.ppermute(back, "y", to(n, -1))
        one, two = one + forth @ blocks[(me - t) % n], two + back @ blocks[(me + t) % n]
    return jnp.concatenate([two, one])


def whole_block_both_ways(a, w):
    """both_ways_ag_matmul: both_ag_whole_shards_all_round
    Row: whole blocks travel both ways, N - 1 hops each; each half is used once."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    blocks, half = w.reshape(n, a.shape[1], w.shape[1]), a.shape[0] // 2
    left, right, c = a, a, a @ blocks[me]
    for t in range(1, n):
        right, left = jax.lax.ppermute(right, "y", to(n, 1)), jax.lax.ppermute(left, "y", to(n, -1))
        c += jnp.concatenate([right[:half] @ blocks[(me - t) % n], left[half:] @ blocks[(me + t) % n]])
    return c


def opposite_block_twice(a, w):
    """both_ways_ag_matmul: both_ag_middle_twice
    Row: whole blocks both ways, and the opposite device's block is added twice with even N."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    blocks = w.reshape(n, a.shape[1], w.shape[1])
    left, right, c = a, a, a @ blocks[me]
    for t in range(1, n // 2 + 1):
        right, left = jax.lax.ppermute(right, "y", to(n, 1)), jax.lax.ppermute(left, "y", to(n, -1))
        c += right @ blocks[(me - t) % n] + left @ blocks[(me + t) % n]
    return c


def both_sums_to_the_right(t, w):
    """both_ways_matmul_rs: both_rs_halves_one_way, both_rs_one_way
    Row: both halves of the sums travel in the same direction."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    parts = jnp.stack(jnp.split(w, n, axis=1))
    half = t.shape[0] // 2
    top, bottom = t[:half], t[half:]
    up, low = top @ parts[(me - 1) % n], bottom @ parts[(me - 1) % n]
    for k in range(2, n + 1):
        up = jax.lax.ppermute(up, "y", to(n, 1)) + top @ parts[(me - k) % n]
        low = jax.lax.ppermute(low, "y", to(n, 1)) + bottom @ parts[(me - k) % n]
    return jnp.vstack([up, low])


def sums_swapped(t, w):
    """both_ways_matmul_rs: both_rs_records_swapped
    Row: the sum that travels forth adds the columns of the sum that travels back."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    parts, half = jnp.stack(jnp.split(w, n, axis=1)), t.shape[0] // 2
    up, low = t[:half] @ parts[(me + 1) % n], t[half:] @ parts[(me - 1) % n]
    for k in range(2, n + 1):
        up = jax.lax.ppermute(up, "y", to(n, 1)) + t[:half] @ parts[(me + k) % n]
        low = jax.lax.ppermute(low, "y", to(n, -1)) + t[half:] @ parts[(me - k) % n]
    return jnp.vstack([up, low])


def whole_sums_both_ways(t, w):
    """both_ways_matmul_rs: both_rs_mean_of_two_rings
    Row: whole sums travel both ways, and each device keeps half of each."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    parts, half = jnp.stack(jnp.split(w, n, axis=1)), t.shape[0] // 2
    forth, back = t @ parts[(me - 1) % n], t @ parts[(me + 1) % n]
    for k in range(2, n + 1):
        forth = jax.lax.ppermute(forth, "y", to(n, 1)) + t @ parts[(me - k) % n]
        back = jax.lax.ppermute(back, "y", to(n, -1)) + t @ parts[(me + k) % n]
    return jnp.concatenate([forth[:half], back[half:]])


def sums_meet_twice(t, w):
    """both_ways_matmul_rs: both_rs_middle_twice
    Row: whole sums both ways; both directions carry the matmul of the opposite device with even N."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    parts, far = jnp.stack(jnp.split(w, n, axis=1)), n // 2
    forth, back = t @ parts[(me + far) % n], t @ parts[(me - far) % n]
    for k in range(far - 1, 0, -1):
        forth = jax.lax.ppermute(forth, "y", to(n, 1)) + t @ parts[(me + k) % n]
        back = jax.lax.ppermute(back, "y", to(n, -1)) + t @ parts[(me - k) % n]
    return t @ parts[me] + jax.lax.ppermute(forth, "y", to(n, 1)) + jax.lax.ppermute(back, "y", to(n, -1))


def _slab(w, j, Y, axis=0):
    size = w.shape[axis] // Y
    return jax.lax.dynamic_slice_in_dim(w, (j % Y) * size, size, axis)


def _send(v, by):
    Y = jax.lax.axis_size("y")
    return jax.lax.ppermute(v, "y", [(i, (i + by) % Y) for i in range(Y)])


def both_halves_to_the_right_again(a, w):
    """both_ways_ag_matmul: both_ag_halves_one_way"""
    Y, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    cut = a.shape[0] // 2
    up, low = a[:cut], a[cut:]
    top = bottom = 0
    for r in range(Y):
        top = top + up @ _slab(w, me - r, Y)
        bottom = bottom + low @ _slab(w, me - r, Y)
        if r + 1 < Y:
            up, low = _send(up, 1), _send(low, 1)
    return jnp.concatenate([top, bottom])


def lower_half_counts_like_the_upper(a, w):
    """both_ways_ag_matmul: both_ag_one_record"""
    Y, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    cut = a.shape[0] // 2
    up, low = a[:cut], a[cut:]
    acc = jnp.zeros((a.shape[0], w.shape[1]), a.dtype)
    for r in range(Y):
        acc = acc.at[:cut].add(up @ _slab(w, me - r, Y))
        acc = acc.at[cut:].add(low @ _slab(w, me - r, Y))
        if r + 1 < Y:
            up, low = _send(up, 1), _send(low, -1)
    return acc


def whole_shards_in_both_directions(a, w):
    """both_ways_ag_matmul: both_ag_whole_shards_all_round"""
    Y, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    cut = a.shape[0] // 2
    right = left = a
    acc = jnp.zeros((a.shape[0], w.shape[1]), a.dtype)
    for r in range(Y):
        acc = acc.at[:cut].add(right[:cut] @ _slab(w, me - r, Y))
        acc = acc.at[cut:].add(left[cut:] @ _slab(w, me + r, Y))
        if r + 1 < Y:
            right, left = _send(right, 1), _send(left, -1)
    return acc


def loop_adds_then_sends(t, w):
    """both_ways_matmul_rs: both_rs_late_in_a_loop"""
    Y, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    cut = t.shape[0] // 2
    wide = w.shape[1] // Y

    def step(sums, r):
        up, low = sums
        up = up + t[:cut] @ _slab(w, me - 1 - r, Y, 1)
        low = low + t[cut:] @ _slab(w, me + 1 + r, Y, 1)
        return (_send(up, 1), _send(low, -1)), None

    zeros = jnp.zeros((cut, wide), t.dtype), jnp.zeros((t.shape[0] - cut, wide), t.dtype)
    (up, low), _ = jax.lax.scan(step, zeros, jnp.arange(Y - 1))
    mine = t @ _slab(w, me, Y, 1)
    return mine + jnp.concatenate([up, low])


def still_one_way_round(t, w):
    """both_ways_matmul_rs: both_rs_one_way"""
    Y, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    s = t @ _slab(w, me - 1, Y, 1)
    for r in range(2, Y + 1):
        s = _send(s, 1) + t @ _slab(w, me - r, Y, 1)
    return s


def low_half_starts_like_the_upper(t, w):
    """both_ways_matmul_rs: both_rs_one_record"""
    Y, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    cut = t.shape[0] // 2
    up = t[:cut] @ _slab(w, me - 1, Y, 1)
    low = t[cut:] @ _slab(w, me - 1, Y, 1)
    for r in range(2, Y + 1):
        up = _send(up, 1) + t[:cut] @ _slab(w, me - r, Y, 1)
        low = _send(low, -1) + t[cut:] @ _slab(w, me - r, Y, 1)
    return jnp.concatenate([up, low])


def both_halves_counted(B, D, X, Y):
    """both_ways_bytes: both_bytes_both_directions"""
    return (Y - 1) * (B / X) * (D / Y) * 2


def as_if_one_way(chip, N):
    """both_ways_most_chips: both_chips_one_way"""
    return 20 * N * CHIPS[chip].ici / CHIPS[chip].bf16


def half_of_all_hops(chip, B, D, F, G, Y):
    """both_ways_time_saved: both_saved_half_the_hops"""
    hop = B * D / Y * 2 / CHIPS[chip].ici
    return 2 * (Y - 1) * hop / 2
