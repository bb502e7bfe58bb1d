import jax
import jax.numpy as jnp


def scores_of(q, k, hop, causal, striped, local=False, ahead=1, diagonal=True, low=-1e30):
    n, me, rows = jax.lax.axis_size("cp"), jax.lax.axis_index("cp"), jnp.arange(q.shape[0])
    there = (me - ahead * hop) % n
    mine, theirs = (rows * n + me, rows * n + there) if striped else (rows + me * len(q), rows + there * len(q))
    mine, theirs = (rows, rows) if local else (mine, theirs)
    s = jnp.einsum("thd,shd->hts", q, k)
    seen = (theirs[None] <= mine[:, None]) if diagonal else (theirs[None] < mine[:, None])
    return jnp.where(seen, s, low) if causal else s


def ring(q, k, v, how, *, rescale=(True, True), values=True, hops=None, stop=False, **mask):
    n = jax.lax.axis_size("cp")
    T, H, d = q.shape
    m, l, o = jnp.full((H, T), -1e30), jnp.zeros((H, T)), jnp.zeros((H, T, d))

    @jax.checkpoint
    def fold(m, l, o, q, k, v, hop):
        s = scores_of(q, k, hop, **how, **mask)
        new = jnp.maximum(m, s.max(-1))
        new = jax.lax.stop_gradient(new) if stop else new
        p, a = jnp.exp(s - new[..., None]), jnp.exp(m - new)
        l = (l * a if rescale[0] else l) + p.sum(-1)
        o = (o * a[..., None] if rescale[1] else o) + jnp.einsum("hts,shd->htd", p, v)
        return new, l, o

    for hop in range(n):
        m, l, o = fold(m, l, o, q, k, v, jnp.int32(hop))
        if hop < (hops or n - 1):
            k = jax.lax.ppermute(k, "cp", [(i, (i + 1) % n) for i in range(n)])
            v = jax.lax.ppermute(v, "cp", [(i, (i + 1) % n) for i in range(n)]) if values else v
    return (o / l[..., None]).transpose(1, 0, 2)


def never_rescaled_flash(q, k, v, *, causal, striped):
    """ring_attn: never_rescaled"""
    return ring(q, k, v, {"causal": causal, "striped": striped}, rescale=(False, False), stop=True)


def mass_kept(q, k, v, *, causal, striped):
    """ring_attn: mass_not_rescaled"""
    return ring(q, k, v, {"causal": causal, "striped": striped}, rescale=(False, True))


def sum_kept(q, k, v, *, causal, striped):
    """ring_attn: sum_not_rescaled"""
    return ring(q, k, v, {"causal": causal, "striped": striped}, rescale=(True, False))


def scaled_by_root_d(q, k, v, *, causal, striped):
    """ring_attn: scaled_by_the_root_of_d"""
    return ring(q / q.shape[-1] ** 0.5, k, v, {"causal": causal, "striped": striped})


def scaled_twice(q, k, v, *, causal, striped):
    """ring_attn: scaled_twice"""
    return ring(q / q.shape[-1], k, v, {"causal": causal, "striped": striped})


def values_at_home(q, k, v, *, causal, striped):
    """ring_attn: values_stay"""
    return ring(q, k, v, {"causal": causal, "striped": striped}, values=False)


def sent_n_times(q, k, v, *, causal, striped):
    """ring_attn: one_hop_too_many"""
    return ring(q, k, v, {"causal": causal, "striped": striped}, hops=jax.lax.axis_size("cp"))


def mask_by_rows(q, k, v, *, causal, striped):
    """ring_attn: masked_by_local_index"""
    return ring(q, k, v, {"causal": causal, "striped": striped}, local=True)


def mask_of_the_next(q, k, v, *, causal, striped):
    """ring_attn: mask_of_the_next_device"""
    return ring(q, k, v, {"causal": causal, "striped": striped}, ahead=-1)


def blocks_for_stripes(q, k, v, *, causal, striped):
    """ring_attn: stripes_as_blocks"""
    return ring(q, k, v, {"causal": causal, "striped": False})


def diagonal_masked(q, k, v, *, causal, striped):
    """ring_attn: diagonal_masked"""
    return ring(q, k, v, {"causal": causal, "striped": striped}, diagonal=False)


def zero_for_unseen(q, k, v, *, causal, striped):
    """ring_attn: masked_by_zero"""
    return ring(q, k, v, {"causal": causal, "striped": striped}, low=0.0)


def causal_without_asking(q, k, v, *, causal, striped):
    """ring_attn: always_causal"""
    return ring(q, k, v, {"causal": True, "striped": striped})


def softmaxes_averaged(q, k, v, *, causal, striped):
    """ring_attn: mean_of_rounds"""
    n, out, seen = jax.lax.axis_size("cp"), 0, jnp.zeros(())
    for hop in range(n):
        s = scores_of(q, k, hop, causal, striped)
        some = (s.max(-1) > -1e29).astype(q.dtype)
        out += some[..., None] * jnp.einsum("hts,shd->htd", jax.nn.softmax(s), v)
        seen += some
        k, v = (jax.lax.ppermute(a, "cp", [(i, (i + 1) % n) for i in range(n)]) for a in (k, v))
    return (out / seen[..., None]).swapaxes(0, 1)
