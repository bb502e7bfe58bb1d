import jax
import jax.numpy as jnp

from grader.hardware import CHIPS


def right(n):
    return [(d, (d + 1) % n) for d in range(n)]


def adds_then_hops_in_a_scan(t, w):
    """matmul_rs: rs_late_in_a_loop"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)

    def one(total, hop):
        total = total + t @ columns[:, (me - 1 - hop) % n]
        return jax.lax.ppermute(total, "y", right(n)), None

    total, _ = jax.lax.scan(one, jnp.zeros((t.shape[0], w.shape[1] // n), t.dtype), jnp.arange(n - 1))
    return total + t @ columns[:, me]


def adds_then_hops_with_fori(t, w):
    """matmul_rs: rs_late_in_a_loop"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    width = w.shape[1] // n

    def part(j):
        return t @ jax.lax.dynamic_slice_in_dim(w, j % n * width, width, axis=1)

    def one(hop, total):
        return jax.lax.ppermute(total + part(me - 1 - hop), "y", right(n))

    return part(me) + jax.lax.fori_loop(0, n - 1, one, jnp.zeros((t.shape[0], width), t.dtype))


def running_sum_in_bfloat16(t, w):
    """matmul_rs: rs_sum_in_bfloat16"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = (t @ columns[:, (me - 1) % n]).astype(jnp.bfloat16)
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", right(n)) + (t @ columns[:, (me - 1 - hop) % n]).astype(jnp.bfloat16)
    return total.astype(t.dtype)


def own_first_to_the_left(t, w):
    """matmul_rs: rs_own_block_first, rs_wrong_sign"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, me]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d - 1) % n) for d in range(n)]) + t @ columns[:, (me + hop) % n]
    return total


def own_first_in_a_loop(t, w):
    """matmul_rs: rs_own_block_first"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)

    def one(hop, total):
        return jax.lax.ppermute(total, "y", right(n)) + t @ columns[:, (me - hop) % n]

    return jax.lax.fori_loop(1, n, one, t @ columns[:, me])


def everything_then_scattered(t, w):
    """matmul_rs: rs_reduced_last"""
    return jax.lax.psum_scatter(jnp.einsum("bf,fd->bd", t, w), "y", scatter_dimension=1, tiled=True)


def summed_then_own_columns(t, w):
    """matmul_rs: rs_summed_then_cut"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    whole = jax.lax.psum(t @ w, "y").reshape(t.shape[0], n, -1)
    return jax.lax.dynamic_index_in_dim(whole, me, axis=1, keepdims=False)


def own_part_only_by_slice(t, w):
    """matmul_rs: rs_own_part_only"""
    width = w.shape[1] // jax.lax.axis_size("y")
    return jax.lax.dynamic_slice_in_dim(t @ w, jax.lax.axis_index("y") * width, width, axis=1)


def all_matmuls_first_in_a_list(t, w):
    """matmul_rs: rs_full_matmul_first"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    parts = jnp.einsum("bf,fnd->nbd", t, w.reshape(w.shape[0], n, -1))
    total = parts[(me - 1) % n]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", right(n)) + parts[(me - 1 - hop) % n]
    return total


def scaled_by_n(t, w):
    """matmul_rs: none"""
    n = jax.lax.axis_size("y")
    return jax.lax.psum_scatter(t @ w, "y", scatter_dimension=1, tiled=True) / n


def own_block_first_by_einsum(t, w):
    """matmul_rs: rs_own_block_first"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    blocks = jnp.stack(jnp.split(w, n, axis=1))
    s = jnp.einsum("fd,bf->bd", blocks[me], t)
    for k in range(1, n):
        mine = jnp.einsum("fd,bf->bd", blocks[(me - k) % n], t)
        s = jax.lax.ppermute(s, "y", [(i, (i + 1) % n) for i in range(n)]) + mine
    return s


def passes_on_matmuls(t, w):
    """matmul_rs: rs_forwards_its_matmul"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    width = w.shape[1] // n

    def matmul(j):
        return t @ jax.lax.dynamic_slice_in_dim(w, j % n * width, width, axis=1)

    mine = matmul(me - 1)
    for k in range(2, n + 1):
        came = jax.lax.ppermute(mine, "y", [(i, (i + 1) % n) for i in range(n)])
        mine = matmul(me - k)
        total = came + mine
    return total


def looped_adds_before_the_hop(t, w):
    """matmul_rs: rs_late_in_a_loop"""
    size, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    wide = w.shape[1] // size
    ring = [(i, (i + 1) % size) for i in range(size)]

    def part(j):
        return t @ jax.lax.dynamic_slice_in_dim(w, (j % size) * wide, wide, axis=1)

    def round_(r, total):
        total = total + part(me - 1 - r)
        return jax.lax.ppermute(total, "y", ring)

    total = jax.lax.fori_loop(0, size - 1, round_, jnp.zeros((t.shape[0], wide), t.dtype))
    return total + part(me)


def starts_with_its_own_block(t, w):
    """matmul_rs: rs_own_block_first"""
    size, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    blocks = jnp.stack(jnp.split(w, size, axis=1))
    acc = t @ blocks[me]
    for r in range(1, size):
        arrived = jax.lax.ppermute(acc, "y", [(i, (i + 1) % size) for i in range(size)])
        acc = t @ blocks[(me - r) % size] + arrived
    return acc


def library_scatter_of_the_matmul(t, w):
    """matmul_rs: rs_reduced_last"""
    full = jnp.dot(t, w)
    return jax.lax.psum_scatter(full, "y", scatter_dimension=1, tiled=True)


def sends_zeros_first(t, w):
    """matmul_rs: rs_sends_zeros"""
    Y = jax.lax.axis_size("y")
    idx = jax.lax.axis_index("y")
    d = w.shape[1] // Y
    out = jnp.zeros((t.shape[0], d), t.dtype)
    perm = [(s, (s + 1) % Y) for s in range(Y)]
    for k in range(Y):
        out = jax.lax.ppermute(out, "y", perm)
        cols = jax.lax.dynamic_slice(w, (0, ((idx - k - 1) % Y) * d), (w.shape[0], d))
        out = out + t @ cols
    return out


def _sum_around(piece):
    Y = jax.lax.axis_size("y")
    idx = jax.lax.axis_index("y")
    s = piece((idx - 1) % Y)
    for k in range(2, Y + 1):
        s = jax.lax.ppermute(s, "y", [(i, (i + 1) % Y) for i in range(Y)]) + piece((idx - k) % Y)
    return s


def multiplies_everything_at_once(t, w):
    """matmul_rs: rs_full_matmul_first"""
    matmul = t @ w
    d = matmul.shape[1] // jax.lax.axis_size("y")
    return _sum_around(lambda k: jax.lax.dynamic_slice_in_dim(matmul, k * d, d, 1))


def float32_sums_are_returned(t, w):
    """matmul_rs: rs_returns_float32"""
    d = w.shape[1] // jax.lax.axis_size("y")

    def piece(k):
        return jnp.dot(t, jax.lax.dynamic_slice_in_dim(w, k * d, d, 1), preferred_element_type=jnp.float32)

    return _sum_around(piece)


def running_sums_in_bfloat16(B, F, D, X, Y):
    """matmul_rs_bytes: rs_bytes_of_bfloat16"""
    return (Y - 1) * (B / X) * (D / Y) * 2


def columns_of_one_device(chip, Y):
    """matmul_rs_overlaps_from: rs_overlaps_per_device"""
    c = CHIPS[chip]
    return 2 * c.bf16 / c.ici


def whole_scatters_are_saved(chip, B, F, G, D, Y):
    """matmul_rs_time_saved: rs_saved_all_talk"""
    c = CHIPS[chip]
    return 2 * (Y - 1) / Y * (2 * B * D) / (2 * c.ici)
