import jax
import jax.numpy as jnp


def right(n):
    return [(d, (d + 1) % n) for d in range(n)]


def hops_then_concatenated(a, w):
    """ag_matmul: ag_hops_first_then_one_product"""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    parts = [a]
    for _ in range(n - 1):
        parts.append(jax.lax.ppermute(parts[-1], "y", right(n)))
    blocks = jnp.stack([w.reshape(n, a.shape[1], -1)[(me - t) % n] for t in range(n)])
    return jnp.concatenate(parts, axis=1) @ blocks.reshape(w.shape)


def hops_then_sorted(a, w):
    """ag_matmul: ag_hops_first_then_one_product"""
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


def gathered_then_small_products(a, w):
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


def sends_what_the_product_touched(a, w):
    """ag_matmul: ag_sends_after_the_product"""
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


def hop_carries_a_zero_of_the_product(a, w):
    """ag_matmul: ag_sends_after_the_product"""
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
