# pyright: reportOptionalOperand=false, reportOptionalMemberAccess=false, reportOptionalSubscript=false, reportArgumentType=false
import jax
import jax.numpy as jnp

from grader.hardware import CHIPS


def right(n):
    return [(d, (d + 1) % n) for d in range(n)]


def hops_then_concatenated(a, w):
    """ag_matmul: ag_hops_first_then_one_matmul"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    parts = [a]
    for _ in range(n - 1):
        parts.append(jax.lax.ppermute(parts[-1], "y", right(n)))
    blocks = jnp.stack([w.reshape(n, a.shape[1], -1)[(me - t) % n] for t in range(n)])
    return jnp.concatenate(parts, axis=1) @ blocks.reshape(w.shape)


def hops_then_sorted(a, w):
    """ag_matmul: ag_hops_first_then_one_matmul"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    whole, moving = jnp.zeros((a.shape[0], n * a.shape[1]), a.dtype), a
    for t in range(n):
        whole = jax.lax.dynamic_update_slice_in_dim(whole, moving, (me - t) % n * a.shape[1], axis=1)
        if t < n - 1:
            moving = jax.lax.ppermute(moving, "y", right(n))
    return whole @ w


def receives_n_times(a, w):
    """ag_matmul: ag_in_n_hops"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows, c = w.reshape(n, a.shape[1], -1), jnp.zeros((a.shape[0], w.shape[1]), a.dtype)
    for t in range(1, n + 1):
        a = jax.lax.ppermute(a, "y", right(n))
        c = c + a @ rows[(me - t) % n]
    return c


def scanned_n_hops(a, w):
    """ag_matmul: ag_in_n_hops"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = w.reshape(n, a.shape[1], -1)

    def one(carry, t):
        c, a = carry
        return (c + jnp.einsum("bd,df->bf", a, rows[(me - t) % n]), jax.lax.ppermute(a, "y", right(n))), None

    return jax.lax.scan(one, (jnp.zeros((a.shape[0], w.shape[1]), a.dtype), a), jnp.arange(n))[0][0]


def gathered_then_small_matmuls(a, w):
    """ag_matmul: ag_gathered_first"""
    n = jax.lax.axis_size("y")
    parts, rows = jax.lax.all_gather(a, "y"), w.reshape(n, a.shape[1], -1)
    return sum(parts[i] @ rows[i] for i in range(n))


def to_the_left_with_wrong_sign(a, w):
    """ag_matmul: ag_rows_with_wrong_sign"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows, c = w.reshape(n, a.shape[1], -1), 0
    for t in range(n):
        c += jnp.dot(a, rows[(me - t) % n])
        if t < n - 1:
            a = jax.lax.ppermute(a, "y", [(d, (d - 1) % n) for d in range(n)])
    return c


def by_step_in_a_loop(a, w):
    """ag_matmul: ag_rows_by_step"""
    n = jax.lax.axis_size("y")
    rows = w.reshape(n, a.shape[1], -1)

    def one(t, carry):
        a, c = carry
        return jax.lax.ppermute(a, "y", right(n)), c + a @ rows[t]

    a, c = jax.lax.fori_loop(0, n - 1, one, (a, jnp.zeros((a.shape[0], w.shape[1]), a.dtype)))
    return c + a @ rows[n - 1]


def sends_what_the_matmul_touched(a, w):
    """ag_matmul: ag_sends_after_the_matmul"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = w.reshape(n, a.shape[1], -1)
    c = a @ rows[me]
    for t in range(1, n):
        a = jax.lax.ppermute(a + 0 * c[:, :1], "y", right(n))
        c = c + a @ rows[(me - t) % n]
    return c


def scan_that_receives_first(a, w):
    """ag_matmul: ag_late_in_a_loop"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = w.reshape(n, a.shape[1], -1)

    def one(carry, t):
        c, a = carry
        a = jax.lax.ppermute(a, "y", right(n))
        return (c + a @ rows[(me - t) % n], a), None

    return jax.lax.scan(one, (a @ rows[me], a), jnp.arange(1, n))[0][0]


def own_block_of_w_alone(a, w):
    """ag_matmul: none"""
    n, c = jax.lax.axis_size("y"), 0
    rows = w.reshape(n, a.shape[1], -1)
    for t in range(n):
        c += a @ rows[0]
        a = jax.lax.ppermute(a, "y", right(n)) if t < n - 1 else a
    return c


def two_shards_a_hop(a, w):
    """ag_matmul: none"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows, c = w.reshape(n, a.shape[1], -1), 0
    both = jnp.stack([a, a])
    for t in range(n):
        c += both[0] @ rows[(me - t) % n]
        both = jax.lax.ppermute(both, "y", right(n)) if t < n - 1 else both
    return c + 0 * both[1, :, :1]


def hop_carries_a_zero_of_the_matmul(a, w):
    """ag_matmul: ag_sends_after_the_matmul"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = a.shape[1]
    c = jnp.zeros((a.shape[0], w.shape[1]), a.dtype)
    shard = a
    for k in range(n):
        part = jax.lax.dynamic_slice_in_dim(w, (me - k) % n * rows, rows)
        c = c + jnp.einsum("bd,df->bf", shard, part)
        if k + 1 < n:
            shard, c = jax.lax.optimization_barrier((shard, c))
            shard = jax.lax.ppermute(shard, "y", [(i, (i + 1) % n) for i in range(n)])
    return c


def wrong_rows_in_a_fori_loop(a, w):
    """ag_matmul: ag_rows_with_wrong_sign"""
    n = jax.lax.axis_size("y")
    me = jax.lax.axis_index("y")
    blocks = w.reshape(n, -1, w.shape[1])

    def turn(k, state):
        c, shard = state
        coming = jax.lax.ppermute(shard, "y", [(i, (i + 1) % n) for i in range(n)])
        return c + jnp.einsum("df,bd->bf", blocks[(me + k) % n], shard), coming

    c, shard = jax.lax.fori_loop(0, n - 1, turn, (jnp.zeros((a.shape[0], w.shape[1]), a.dtype), a))
    return c + jnp.einsum("df,bd->bf", blocks[(me + n - 1) % n], shard)


def by_far_jumps(a, w):
    """ag_matmul: ag_over_the_heads"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    blocks = w.reshape(n, -1, w.shape[1])
    total = a @ blocks[me]
    for k in range(1, n):
        shard = jax.lax.ppermute(a, "y", [(i, (i + k) % n) for i in range(n)])
        total = total + shard @ blocks[(me - k) % n]
    return total


def _hop(a):
    Y = jax.lax.axis_size("y")
    return jax.lax.ppermute(a, "y", [(i, (i + 1) % Y) for i in range(Y)])


def _rows(w, j, height):
    Y = jax.lax.axis_size("y")
    return jax.lax.dynamic_slice_in_dim(w, (j % Y) * height, height, axis=0)


def collective_first(a, w):
    """ag_matmul: ag_gathered_first"""
    return jnp.matmul(jax.lax.all_gather(a, "y", axis=1, tiled=True), w)


def last_shard_goes_on(a, w):
    """ag_matmul: ag_in_n_hops"""
    me = jax.lax.axis_index("y")
    out = jnp.zeros((a.shape[0], w.shape[1]), a.dtype)
    for r in range(jax.lax.axis_size("y")):
        out = out + a @ _rows(w, me - r, a.shape[1])
        a = _hop(a)
    return out + 0 * jnp.sum(a)


def loop_receives_then_multiplies(a, w):
    """ag_matmul: ag_late_in_a_loop"""
    me = jax.lax.axis_index("y")

    def step(carry, r):
        shard, out = carry
        shard = _hop(shard)
        return (shard, out + shard @ _rows(w, me - r, a.shape[1])), None

    first = a @ _rows(w, me, a.shape[1])
    (_, out), _ = jax.lax.scan(step, (a, first), jnp.arange(1, jax.lax.axis_size("y")))
    return out


def counts_up(a, w):
    """ag_matmul: ag_rows_with_wrong_sign"""
    me = jax.lax.axis_index("y")
    out = 0
    for r in range(jax.lax.axis_size("y")):
        nxt = _hop(a) if r < jax.lax.axis_size("y") - 1 else None
        out = out + a @ _rows(w, me + r, a.shape[1])
        a = nxt
    return out


def wide_result(a, w):
    """ag_matmul: ag_returns_float32"""
    me, out = jax.lax.axis_index("y"), 0
    for r in range(jax.lax.axis_size("y")):
        nxt = _hop(a) if r < jax.lax.axis_size("y") - 1 else None
        out = out + jnp.dot(a, _rows(w, me - r, a.shape[1]), preferred_element_type=jnp.float32)
        a = nxt
    return out


def hops_then_one_matmul(a, w):
    """ag_matmul: ag_hops_first_then_one_matmul"""
    Y, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    full = jnp.zeros((a.shape[0], Y * a.shape[1]), a.dtype)
    width = a.shape[1]
    for r in range(Y):
        full = jax.lax.dynamic_update_slice_in_dim(full, a, ((me - r) % Y) * width, 1)
        if r < Y - 1:
            a = _hop(a)
    return full @ w


def hop_for_each_shard(B, D, X, Y):
    """ag_matmul_bytes: ag_bytes_of_n_hops"""
    return Y * (B / X) * (D / Y) * 2


def own_columns(chip, Y):
    """ag_matmul_overlaps_from: ag_overlaps_per_device"""
    return CHIPS[chip].bf16 / CHIPS[chip].ici


def every_round_like_a_hop_round(chip, B, D, F, G, Y):
    """ag_matmul_time: ag_time_of_n_rounds"""
    c = CHIPS[chip]
    hop = 2 * B * D / Y / c.ici
    return sum(Y * max(hop, 2 * B * (D / Y) * (n / Y) / c.bf16) for n in (F, G))
