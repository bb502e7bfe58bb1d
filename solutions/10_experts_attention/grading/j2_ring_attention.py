"""J2: calls, checks, misconceptions and alternatives."""

import jax
import jax.numpy as jnp
import numpy as np

from grader.exercise import Scenario, array, normal
from grader.expect import Failure, between, expect_close, expect_memory, expect_traffic, needed
from grader.hardware import matmul_time
from j2_ring_attention import ROWS, attend, exercise, ring_attn, ring_overlaps_from, scored, send, stripes_save


@exercise.helper
def spread(rng, shape):
    """Queries whose scores differ by a few units for every second head, and by hundreds for the heads between."""
    return rng.standard_normal(shape) * np.where(np.arange(shape[1]) % 2, 20, 3)[:, None]


@exercise.helper
def in_order(seen):
    """The position in the text of each row of the arrays."""
    n, T = seen.mesh["cp"], seen.dims["T"]
    return np.arange(T).reshape(-1, n).T.ravel() if seen.striped else np.arange(T)


@exercise.helper
def attention_of(seen):
    """Weights [H, T, T] and the result for whole arrays, in float64."""
    q, k, v = (a.astype(np.float64) for a in (seen.q, seen.k, seen.v))
    scores = np.einsum("thd,shd->hts", q, k)
    if seen.causal:
        scores[:, in_order(seen)[:, None] < in_order(seen)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights, np.einsum("hts,shd->thd", weights, v)


@exercise.helper
def gradients_of(seen):
    """Gradients of the sum of result times cotangent, in float64."""
    q, k, v, ct = (a.astype(np.float64) for a in (seen.q, seen.k, seen.v, seen.cotangent))
    weights, _ = attention_of(seen)
    back = np.einsum("thd,shd->hts", ct, v)
    back = weights * (back - (back * weights).sum(-1, keepdims=True))
    return {
        "q": np.einsum("hts,shd->thd", back, k),
        "k": np.einsum("hts,thd->shd", back, q),
        "v": np.einsum("hts,thd->shd", weights, ct),
    }


@exercise.helper
def expect_near(got, due):
    """Compare within rounding: a score in the hundreds has an error of hundreds of eps, and so has its weight."""
    expect_close(got, due, terms=1 << 18)


@exercise.helper
def arrays(draw=spread):
    """The arguments q, k and v; the scores of every second head are in the hundreds."""
    rest = {name: normal("T", "H", "d", spec=ROWS) for name in ("k", "v")}
    return {"q": array("T", "H", "d", draw=draw, spec=ROWS), **rest}


WITH_GRADIENTS = {"wrt": ("q", "k", "v"), "cotangent": normal("T", "H", "d", spec=ROWS)}
whole = exercise.call(
    # On three devices, N hops send 1.5 times as much as N - 1 hops.
    ring_attn, **arrays(), meshes=[{"cp": 3, "tp": 2}], static={"causal": False, "striped": False},
    dims={"T": 42, "H": 4, "d": 8}, hidden_dims={"T": 57, "H": 6, "d": 11},
)  # fmt: skip
blocks = exercise.call(
    ring_attn, **arrays(), **WITH_GRADIENTS, meshes=[{"cp": 4, "tp": 2}], static={"causal": True, "striped": False},
    dims={"T": 96, "H": 12, "d": 2}, hidden_dims={"T": 132, "H": 10, "d": 3},
)  # fmt: skip
long = exercise.call(
    ring_attn, **arrays(), **WITH_GRADIENTS, meshes=[{"cp": 8, "tp": 1}], static={"causal": True, "striped": False},
    hidden_static={"causal": True, "striped": True}, dims={"T": 192, "H": 6, "d": 2}, hidden_dims={"T": 232, "H": 5, "d": 3},
)  # fmt: skip
stripes = exercise.call(
    ring_attn, **arrays(), **WITH_GRADIENTS, meshes=[{"cp": 3, "tp": 2}], static={"causal": True, "striped": True},
    dims={"T": 24, "H": 2, "d": 6}, hidden_dims={"T": 33, "H": 6, "d": 5},
)  # fmt: skip


wide = exercise.call(
    ring_attn, **arrays(), meshes=[{"cp": 7, "tp": 1}], static={"causal": False, "striped": False},
    # With twice as many positions on a device as d, the scores of all rounds exceed the budget too.
    dims={"T": 224, "H": 1, "d": 16}, hidden_dims={"T": 259, "H": 3, "d": 19},
)  # fmt: skip


@exercise.check(blocks, points=1, public=True)
def ring_value(seen):
    """ring_attn: causal attention of a text in blocks"""
    expect_near(seen.out, attention_of(seen)[1])


@exercise.check(whole, points=0.5, public=True)
def ring_whole(seen):
    """ring_attn: attention that is not causal"""
    expect_near(seen.out, attention_of(seen)[1])


@exercise.check(blocks, points=1, public=True, after=ring_value)
def ring_gradients(seen):
    """ring_attn: the gradients of q, k and v"""
    due = gradients_of(seen)
    for name in "qkv":
        expect_near(seen.grads[name], due[name])


@exercise.check(stripes, points=1, public=True, after=ring_value)
def ring_stripes(seen):
    """ring_attn: a text in stripes, its values and gradients"""
    expect_near(seen.out, attention_of(seen)[1])
    due = gradients_of(seen)
    for name in "qkv":
        expect_near(seen.grads[name], due[name])


@exercise.helper
def block_of(seen):
    """The size of a device's block of q, the size of its scores with one block of keys, and its number of rows."""
    rows, heads = seen.dims["T"] // seen.mesh["cp"], seen.dims["H"] // seen.mesh["tp"]
    return rows * heads * seen.dims["d"], rows * rows * heads, rows


@exercise.helper
def expect_sent(seen, right, most, wrong, near=""):
    """Require at most `most` sent blocks over cp, each with one extra number per row. Right programs send at least `right`
    blocks, and wrong programs at least `wrong` blocks."""
    block, _, rows = block_of(seen)
    budget = needed(4 * right * block, 4 * wrong * block, at=4 * most * (block + rows), near=near)
    expect_traffic(seen, at_most=budget, axis="cp")


@exercise.helper
def expect_sent_forward(seen, near=""):
    """Require that K and V are sent N - 1 times, not N times."""
    n = seen.mesh["cp"]
    expect_sent(seen, 2 * (n - 1), 2 * (n - 1), 2 * n, near=near)


@exercise.helper
def expect_sent_back(seen):
    """Require that K and V are sent N - 1 times, then K, V and their gradients at most N times."""
    n = seen.mesh["cp"]
    expect_sent(seen, 4 * (n - 1), 2 * (n - 1) + 4 * n, 3 * n * (n - 1))  # wrong: `each_round_from_home`


@exercise.check(whole, points=0.5, after=ring_whole)
def ring_sent(seen):
    """ring_attn forward: K and V are sent N - 1 times"""
    expect_sent_forward(seen)


@exercise.check(wide, points=0.5, after=[ring_whole, ring_sent])
def ring_held(seen):
    """ring_attn forward: a device holds no more than one round needs, and sends K and V N - 1 times"""
    expect_near(seen.out, attention_of(seen)[1])
    n = seen.mesh["cp"]
    expect_sent_forward(seen, near="N hops instead of N - 1: `ring_sent` has 3 devices")
    block, scores, rows = block_of(seen)
    round_needs = block + 2 * scores + 15 * rows * seen.dims["H"]
    wrong = 3 * block + n * scores  # scores of all rounds; K and V of all devices take more memory
    # A program that sends blocks in both directions passes, too.
    budget = between(4 * round_needs, 4 * wrong, at=2.4 * 4 * round_needs)
    expect_memory(seen, at_most=budget, by="program", arguments=False)


@exercise.check(blocks, points=0.25, after=ring_gradients)
def ring_back(seen):
    """ring_attn and its gradients: the backward pass sends K, V and their gradients at most N times"""
    expect_sent_back(seen)
    expect_traffic(seen, at_most=0, axis="tp")


@exercise.check(long, points=0.25, after=[ring_gradients, ring_stripes, ring_back])
def ring_kept(seen):
    """ring_attn and its gradients: no scores of a finished round are kept; the limit for what is sent holds"""
    expect_sent_back(seen)
    for name, due in gradients_of(seen).items():
        expect_near(seen.grads[name], due)
    block, scores, _ = block_of(seen)
    right = 12 * block + 2 * scores  # a backward pass by hand; with jax.checkpoint about twice that
    wrong = 3 * block + seen.mesh["cp"] * scores  # the weights of half of the rounds
    # Gradients by JAX, with a loop over heads, take 2 * right.
    budget = between(4 * right, 4 * wrong, styles=1.5, at=2.29 * 4 * right)
    expect_memory(seen, at_most=budget, by="program", arguments=False)


# -- right, in other styles --------------------------------------------------------------------


def start(q):
    """The state without any keys: largest score, mass and sum."""
    T, H, d = q.shape
    return jnp.full((H, T), -jnp.inf), jnp.zeros((H, T)), jnp.zeros((H, T, d))


def added(state, weights, v, largest, scale):
    """Multiply the mass and the sum so far by ``scale``, and add a block's ``weights``. ``largest``: the new maximum."""
    _, mass, total = state
    return largest, mass * scale + weights.sum(-1), total * scale[..., None] + jnp.einsum("hts,shd->htd", weights, v)


def fold(state, scores, v):
    """Add one block of keys to the state."""
    largest = jnp.maximum(state[0], scores.max(-1))
    return added(state, jnp.exp(scores - largest[..., None]), v, largest, jnp.exp(state[0] - largest))


def mean_of(state):
    """The result, [T, H, d]."""
    _, mass, total = state
    return (total / mass[..., None]).swapaxes(0, 1)


def around(q, k, v, how, step=None, score=None, checkpoint=None):
    """All rounds, unrolled; JAX differentiates them, and the backward pass computes each round again."""
    step, score, checkpoint = step or fold, score or scored, checkpoint or jax.checkpoint
    n, state = jax.lax.axis_size("cp"), start(q)
    for hop in range(n):
        state = checkpoint(lambda state, q, k, v, hop=hop: step(state, score(q, k, hop, **how), v))(state, q, k, v)
        k, v = send(k, v) if hop < n - 1 else (k, v)
    return mean_of(state)


def by_hand(q, k, v, how, backward):
    """A right forward pass with the given backward pass."""

    def forward(q, k, v):
        out, lse = attend(q, k, v, **how)
        return out, (q, k, v, out, lse)

    attention = jax.custom_vjp(lambda q, k, v: attend(q, k, v, **how)[0])
    attention.defvjp(forward, backward)
    return attention(q, k, v)


def back_through(kept, d_out, k, v, hop, how):
    """What one round adds to the gradients of q, k and v."""
    q, _, _, out, lse = kept
    weights = jnp.exp(scored(q, k, hop, **how) - lse[..., None])
    mean = jnp.einsum("thd,thd->ht", d_out, out)[..., None]
    d_scores = weights * (jnp.einsum("thd,shd->hts", d_out, v) - mean)
    d_q, d_k = jnp.einsum("hts,shd->thd", d_scores, k), jnp.einsum("hts,thd->shd", d_scores, q)
    return d_q, d_k, jnp.einsum("hts,thd->shd", weights, d_out)


@exercise.alternative()
def rounds_that_jax_differentiates(q, k, v, *, causal, striped):
    """JAX computes the gradients, with a checkpoint around each round."""
    return around(q, k, v, {"causal": causal, "striped": striped})


@exercise.alternative()
def scan_with_packed_keys(q, k, v, *, causal, striped):
    """A scan over N - 1 rounds and a last round after it; K and V travel as one array; each round has a checkpoint."""
    n = jax.lax.axis_size("cp")

    @jax.checkpoint
    def one(state, both, hop):
        return fold(state, scored(q, both[0], hop, causal, striped), both[1])

    def step(carry, hop):
        state, both = carry
        (arriving,) = send(both)
        return (one(state, both, hop), arriving), None

    (state, both), _ = jax.lax.scan(step, (start(q), jnp.stack([k, v])), jnp.arange(n - 1))
    return mean_of(one(state, both, n - 1))


@exercise.alternative()
def other_way_round(q, k, v, *, causal, striped):
    """Blocks travel in the other direction, so the block of hop h comes from device me + h. The mask is applied after
    the exponential."""
    n, me, rows = jax.lax.axis_size("cp"), jax.lax.axis_index("cp"), q.shape[0]
    back = [(i, (i - 1) % n) for i in range(n)]

    def places(device):
        return jnp.arange(rows) * n + device if striped else jnp.arange(rows) + device * rows

    @jax.checkpoint
    def one(state, k, v, theirs):
        scores = jnp.einsum("thd,shd->hts", q, k)
        seen = places(me)[:, None] >= places(theirs) if causal else jnp.ones((rows, rows), bool)
        largest = jnp.maximum(state[0], jnp.where(seen, scores, -jnp.inf).max(-1))
        weights = seen * jnp.exp(jnp.where(seen, scores - largest[..., None], 0))
        return added(state, weights, v, largest, jnp.exp(state[0] - largest))

    state = start(q)
    for hop in range(n):
        if hop:
            k, v = jax.lax.ppermute((k, v), "cp", back)
        state = one(state, k, v, (me + hop) % n)
    return mean_of(state)


@exercise.alternative()
def both_ways_round(q, k, v, *, causal, striped):
    """Half of the blocks travel in one direction, and half in the other direction. So two pairs of blocks are on their
    way at a time."""
    n, how = jax.lax.axis_size("cp"), {"causal": causal, "striped": striped}
    back = [(i, (i - 1) % n) for i in range(n)]

    def one(state, k, v, hop):
        return jax.checkpoint(lambda state, q, k, v: fold(state, scored(q, k, hop, **how), v))(state, q, k, v)

    state, left, right = one(start(q), k, v, 0), (k, v), (k, v)
    for hop in range(1, n // 2 + 1):
        left = tuple(send(*left))
        state = one(state, *left, hop)
        if 2 * hop < n:
            right = jax.lax.ppermute(right, "cp", back)
            state = one(state, *right, n - hop)
    return mean_of(state)


@exercise.alternative()
def result_and_log_sum_exp(q, k, v, *, causal, striped):
    """Each round has its own softmax, with a finite mask; results are merged by their log-sum-exp."""
    n = jax.lax.axis_size("cp")

    @jax.checkpoint
    def one(out, lse, k, v, hop):
        scores = jnp.maximum(scored(q, k, hop, causal, striped), -1e30)
        own, more = jnp.einsum("hts,shd->htd", jax.nn.softmax(scores), v), jax.nn.logsumexp(scores, axis=-1)
        both = jnp.logaddexp(lse, more)
        return jnp.exp(lse - both)[..., None] * out + jnp.exp(more - both)[..., None] * own, both

    out, lse = jnp.zeros((q.shape[1], q.shape[0], q.shape[2])), jnp.full((q.shape[1], q.shape[0]), -1e30)
    for hop in range(n):
        out, lse = one(out, lse, k, v, hop)
        k, v = send(k, v) if hop < n - 1 else (k, v)
    return out.swapaxes(0, 1)


@exercise.alternative()
def unseen_blocks_skipped(q, k, v, *, causal, striped):
    """lax.cond skips the matmuls of a block if no query sees its keys."""
    n, me = jax.lax.axis_size("cp"), jax.lax.axis_index("cp")
    state = start(q)
    for hop in range(n):

        @jax.checkpoint
        def one(state, k, v, hop=hop):
            return fold(state, scored(q, k, hop, causal, striped), v)

        if causal and not striped:
            state = jax.lax.cond(hop <= me, one, lambda state, k, v: state, state, k, v)
        else:
            state = one(state, k, v)
        k, v = send(k, v) if hop < n - 1 else (k, v)
    return mean_of(state)


@exercise.alternative()
def positions_travel_with_keys(q, k, v, *, causal, striped):
    """The position of each key goes round with the key."""
    n, me, rows = jax.lax.axis_size("cp"), jax.lax.axis_index("cp"), q.shape[0]
    mine = jnp.arange(rows) * n + me if striped else jnp.arange(rows) + me * rows

    @jax.checkpoint
    def one(state, k, v, place):
        scores = jnp.einsum("thd,shd->hts", q, k)
        return fold(state, jnp.where((place <= mine[:, None]) | (not causal), scores, -jnp.inf), v)

    state, place = start(q), mine
    for hop in range(n):
        state = one(state, k, v, place)
        if hop < n - 1:
            k, v, place = send(k, v, place)
    return mean_of(state)


@exercise.alternative()
def back_the_way_it_came(q, k, v, *, causal, striped):
    """The backward pass runs the rounds in reverse, from the last block, with N - 1 hops for the gradients."""
    how = {"causal": causal, "striped": striped}
    n = jax.lax.axis_size("cp")
    back = [(i, (i - 1) % n) for i in range(n)]

    def forward(q, k, v):
        out, lse = attend(q, k, v, **how)
        return out, (q, k, v, out, lse)

    def backward(kept, d_out):
        _, k, v, _, _ = kept
        k, v = jax.lax.ppermute((k, v), "cp", [(i, (i + n - 1) % n) for i in range(n)])
        d_q, d_k, d_v = 0, 0, 0
        for hop in reversed(range(n)):
            more = back_through(kept, d_out, k, v, hop, how)
            d_q, d_k, d_v = d_q + more[0], d_k + more[1], d_v + more[2]
            if hop:
                k, v, d_k, d_v = jax.lax.ppermute((k, v, d_k, d_v), "cp", back)
        return d_q, d_k, d_v

    attention = jax.custom_vjp(lambda q, k, v: attend(q, k, v, **how)[0])
    attention.defvjp(forward, backward)
    return attention(q, k, v)


# -- what goes wrong ---------------------------------------------------------------------------


@exercise.misconception(fails=[ring_value, ring_whole], breaks="blocks with `causal`, blocks without `causal`")
def never_rescaled(q, k, v, *, causal, striped):
    """You added sums that were scaled by different maxima. When the maximum grows, multiply mass and sum so far by exp(old - new)."""

    def step(state, scores, v):
        top, mass, total = state
        top = jnp.maximum(top, scores.max(-1))
        weights = jnp.exp(scores - top[..., None])
        return top, mass + weights.sum(-1), total + jnp.einsum("hts,shd->htd", weights, v)

    return around(q, k, v, {"causal": causal, "striped": striped}, step)


@exercise.misconception(fails=[ring_value, ring_whole], breaks="blocks with `causal`, blocks without `causal`")
def mass_not_rescaled(q, k, v, *, causal, striped):
    """You rescaled the sum of v but not the mass. Both sums were scaled by the old maximum."""

    def step(state, scores, v):
        top, mass, total = state
        largest = jnp.maximum(top, scores.max(-1))
        weights, scale = jnp.exp(scores - largest[..., None]), jnp.exp(top - largest)
        return largest, mass + weights.sum(-1), total * scale[..., None] + jnp.einsum("hts,shd->htd", weights, v)

    return around(q, k, v, {"causal": causal, "striped": striped}, step)


@exercise.misconception(fails=[ring_value, ring_whole], breaks="blocks with `causal`, blocks without `causal`")
def sum_not_rescaled(q, k, v, *, causal, striped):
    """You rescaled the mass but not the sum of v. Both sums were scaled by the old maximum."""

    def step(state, scores, v):
        top, mass, total = state
        largest = jnp.maximum(top, scores.max(-1))
        weights, scale = jnp.exp(scores - largest[..., None]), jnp.exp(top - largest)
        return largest, mass * scale + weights.sum(-1), total + jnp.einsum("hts,shd->htd", weights, v)

    return around(q, k, v, {"causal": causal, "striped": striped}, step)


@exercise.misconception(fails=[ring_value, ring_whole], breaks="blocks with `causal`, blocks without `causal`")
def rescaled_upside_down(q, k, v, *, causal, striped):
    """You multiplied mass and sum so far by e^(new - old), which makes them larger. Multiply by e^(old - new)."""

    def step(state, scores, v):
        largest = jnp.maximum(state[0], scores.max(-1))
        scale = jnp.where(state[0] == -jnp.inf, 0, jnp.exp(largest - state[0]))
        return added(state, jnp.exp(scores - largest[..., None]), v, largest, scale)

    return around(q, k, v, {"causal": causal, "striped": striped}, step)


@exercise.misconception(fails=[ring_value, ring_whole], breaks="blocks with `causal`, blocks without `causal`")
def one_maximum_for_all(q, k, v, *, causal, striped):
    """You subtracted one maximum for all queries and heads. A query whose scores are far below this maximum gets only zeros, and 0/0 is NaN. Take the maximum of each query and head."""

    def step(state, scores, v):
        largest = jnp.maximum(state[0], scores.max())
        return added(state, jnp.exp(scores - largest[..., None]), v, largest, jnp.exp(state[0] - largest))

    return around(q, k, v, {"causal": causal, "striped": striped}, step)


@exercise.misconception(fails=[ring_value, ring_whole], breaks="blocks with `causal`, blocks without `causal`")
def divided_in_each_round(q, k, v, *, causal, striped):
    """You divided the sum of v by the mass in each round, so early blocks are divided again and again. Divide once, after the last round."""

    def step(state, scores, v):
        top, mass, total = fold(state, scores, v)
        return top, mass, total / mass[..., None]

    n, state = jax.lax.axis_size("cp"), start(q)
    for hop in range(n):
        state = step(state, scored(q, k, hop, causal, striped), v)
        k, v = send(k, v) if hop < n - 1 else (k, v)
    return state[2].swapaxes(0, 1)


@exercise.misconception(fails=[ring_value, ring_whole], breaks="q · k (not scaled)")
def scaled_by_the_root_of_d(q, k, v, *, causal, striped):
    """You divided the scores by the square root of d. Here the score is q · k, not scaled."""
    return around(q / q.shape[-1] ** 0.5, k, v, {"causal": causal, "striped": striped})


@exercise.misconception(fails=[ring_value, ring_whole], breaks="q · k (not scaled)")
def scaled_twice(q, k, v, *, causal, striped):
    """You divided the scores by the square root of d twice. Here the score is q · k, not scaled."""
    return around(q / q.shape[-1], k, v, {"causal": causal, "striped": striped})


@exercise.misconception(fails=ring_value, breaks="a query sees its own position")
def diagonal_masked(q, k, v, *, causal, striped):
    """You masked a query's own position. A query at position t sees its own position too: s <= t."""

    def masked(q, k, hop, causal, striped):
        n, me, rows = jax.lax.axis_size("cp"), jax.lax.axis_index("cp"), jnp.arange(len(q))
        mine, theirs = (rows * n + i if striped else rows + i * len(q) for i in (me, (me - hop) % n))
        scores = jnp.einsum("thd,shd->hts", q, k)
        return jnp.where(theirs < mine[:, None], scores, -1e30) if causal else scores

    return around(q, k, v, {"causal": causal, "striped": striped}, score=masked)


@exercise.misconception(form_of=diagonal_masked, breaks="a query sees its own position")
def diagonal_masked_by_infinity(q, k, v, *, causal, striped):
    """Like `diagonal_masked`, but the first query sees no key and its result is NaN."""

    def masked(q, k, hop, causal, striped):
        n, me, rows = jax.lax.axis_size("cp"), jax.lax.axis_index("cp"), jnp.arange(len(q))
        mine, theirs = (rows * n + i if striped else rows + i * len(q) for i in (me, (me - hop) % n))
        scores = jnp.einsum("thd,shd->hts", q, k)
        return jnp.where(theirs < mine[:, None], scores, -jnp.inf) if causal else scores

    def step(state, scores, v):
        largest = jnp.maximum(state[0], scores.max(-1))
        safe = jnp.where(largest == -jnp.inf, 0, largest)
        return added(state, jnp.exp(scores - safe[..., None]), v, largest, jnp.exp(state[0] - safe))

    return around(q, k, v, {"causal": causal, "striped": striped}, step, score=masked)


@exercise.misconception(form_of=diagonal_masked, breaks="a query sees its own position")
def diagonal_masked_in_every_round(q, k, v, *, causal, striped):
    """Like `diagonal_masked_by_infinity`, but the result is NaN for each query that sees no key in its first round."""

    def masked(q, k, hop, causal, striped):
        n, me, rows = jax.lax.axis_size("cp"), jax.lax.axis_index("cp"), jnp.arange(len(q))
        mine, theirs = (rows * n + i if striped else rows + i * len(q) for i in (me, (me - hop) % n))
        scores = jnp.einsum("thd,shd->hts", q, k)
        return jnp.where(theirs < mine[:, None], scores, -jnp.inf) if causal else scores

    return around(q, k, v, {"causal": causal, "striped": striped}, score=masked)


@exercise.misconception(fails=[ring_value, ring_whole], breaks="blocks with `causal`, blocks without `causal`")
def no_maximum(q, k, v, *, causal, striped):
    """You computed e^s directly. For a score of 100, e^s exceeds every float32 number: subtract the largest score so
    far."""

    def step(state, scores, v):
        top, mass, total = state
        weights = jnp.exp(scores)
        return top, mass + weights.sum(-1), total + jnp.einsum("hts,shd->htd", weights, v)

    return around(q, k, v, {"causal": causal, "striped": striped}, step)


@exercise.misconception(fails=[ring_value, ring_whole], breaks="blocks with `causal`, blocks without `causal`")
def mean_of_rounds(q, k, v, *, causal, striped):
    """You averaged the rounds' softmaxes. Weight each block by its mass: a block with larger scores has a larger mass."""

    def step(state, scores, v):
        top, mass, total = state
        own = jnp.einsum("hts,shd->htd", jax.nn.softmax(jnp.maximum(scores, -1e30)), v)
        seen = (scores.max(-1) > -jnp.inf).astype(own.dtype)
        return top, mass + seen, total + seen[..., None] * own

    return around(q, k, v, {"causal": causal, "striped": striped}, step)


@exercise.misconception(form_of=mean_of_rounds, breaks="blocks with `causal`, blocks without `causal`")
def mean_of_all_rounds(q, k, v, *, causal, striped):
    """Like `mean_of_rounds`, but rounds without keys count, too."""

    def step(state, scores, v):
        top, mass, total = state
        own = jnp.einsum("hts,shd->htd", jax.nn.softmax(jnp.maximum(scores, -1e30)), v)
        seen = (scores.max(-1) > -jnp.inf).astype(own.dtype)
        return top, mass + 1, total + seen[..., None] * own

    return around(q, k, v, {"causal": causal, "striped": striped}, step)


@exercise.misconception(form_of=mean_of_rounds, breaks="blocks with `causal`, blocks without `causal`")
def mean_of_rounds_and_nan(q, k, v, *, causal, striped):
    """Like `mean_of_rounds`, but a round without keys makes the result NaN."""

    def step(state, scores, v):
        top, mass, total = state
        return top, mass + 1, total + jnp.einsum("hts,shd->htd", jax.nn.softmax(scores), v)

    return around(q, k, v, {"causal": causal, "striped": striped}, step)


@exercise.misconception(fails=ring_value, breaks="blocks with `causal`, blocks without `causal`")
def masked_by_local_index(q, k, v, *, causal, striped):
    """You compared row numbers within blocks. Compare positions in the text: add the position where the block
    starts."""

    def masked(q, k, hop, causal, striped):
        scores = jnp.einsum("thd,shd->hts", q, k)
        return jnp.where(jnp.tri(len(q), dtype=bool), scores, -jnp.inf) if causal else scores

    return around(q, k, v, {"causal": causal, "striped": striped}, score=masked)


@exercise.misconception(fails=ring_value, breaks="blocks with `causal`, blocks without `causal`")
def mask_of_the_next_device(q, k, v, *, causal, striped):
    """You treated the block of hop h as the block of device me + h. Each hop sends a block one device on, so this
    block comes from device me - h."""

    def masked(q, k, hop, causal, striped):
        return scored(q, k, -hop, causal, striped)

    return around(q, k, v, {"causal": causal, "striped": striped}, score=masked)


@exercise.misconception(fails=ring_value, breaks="a query sees its own position and the positions before it")
def whole_blocks_masked(q, k, v, *, causal, striped):
    """You compared devices, not positions, so a query sees all keys of its own block. Compare the positions of each query and key in the text."""

    def masked(q, k, hop, causal, striped):
        n, me = jax.lax.axis_size("cp"), jax.lax.axis_index("cp")
        scores = jnp.einsum("thd,shd->hts", q, k)
        return jnp.where((me - hop) % n <= me, scores, -jnp.inf) if causal else scores

    return around(q, k, v, {"causal": causal, "striped": striped}, score=masked)


def masked_for_another_round(later, low):
    """Return `scored` with the mask of the block that arrives ``later`` rounds later; masked scores are ``low``."""

    def masked(q, k, hop, causal, striped):
        seen = scored(jnp.ones_like(q), jnp.ones_like(k), hop + later, causal, striped) > -jnp.inf
        return jnp.where(seen, jnp.einsum("thd,shd->hts", q, k), low)

    return masked


@exercise.misconception(fails=ring_value, breaks="blocks with `causal`, blocks without `causal`")
def mask_one_round_off(q, k, v, *, causal, striped):
    """You masked a block with the mask of the block of the next or the previous round. In round h, counted from 0, a device has the block of device me - h."""
    return around(q, k, v, {"causal": causal, "striped": striped}, score=masked_for_another_round(1, -1e30))


@exercise.misconception(form_of=mask_one_round_off)
def mask_of_the_previous_round(q, k, v, *, causal, striped):
    """Like `mask_one_round_off`, with the mask of the previous round."""
    return around(q, k, v, {"causal": causal, "striped": striped}, score=masked_for_another_round(-1, -1e30))


@exercise.misconception(fails=ring_value, breaks="blocks with `causal`, blocks without `causal`")
def masked_by_zero(q, k, v, *, causal, striped):
    """You set the scores of unseen keys to 0, so their weight is e^0 = 1. Use -inf, or a number far below every score."""

    def masked(q, k, hop, causal, striped):
        scores = scored(q, k, hop, causal, striped)
        return jnp.where(scores == -jnp.inf, 0, scores)

    return around(q, k, v, {"causal": causal, "striped": striped}, score=masked)


@exercise.misconception(fails=[ring_value, ring_sent], breaks="blocks with `causal`, blocks without `causal`")
def foreign_block_first(q, k, v, *, causal, striped):
    """You began with a neighbour's block. The first device's queries see no key of that block, and -inf - (-inf) is
    NaN. Begin with the device's own block, or guard against this NaN."""
    n, state = jax.lax.axis_size("cp"), start(q)
    how = {"causal": causal, "striped": striped}
    for hop in range(1, n + 1):
        k, v = send(k, v)
        state = jax.checkpoint(lambda state, q, k, v, hop=hop: fold(state, scored(q, k, hop, **how), v))(state, q, k, v)
    return mean_of(state)


@exercise.misconception(fails=ring_value, breaks="blocks with `causal`, blocks without `causal`")
def softmax_of_nothing(q, k, v, *, causal, striped):
    """If a query sees no key in a round, that round's softmax is NaN, and 0 times NaN is NaN. Handle such rounds
    separately."""

    def step(state, scores, v):
        lse, _, total = state
        own, more = jnp.einsum("hts,shd->htd", jax.nn.softmax(scores), v), jax.nn.logsumexp(scores, axis=-1)
        both = jnp.logaddexp(lse, more)
        return both, jnp.ones_like(both), jnp.exp(lse - both)[..., None] * total + jnp.exp(more - both)[..., None] * own

    return around(q, k, v, {"causal": causal, "striped": striped}, step)


@exercise.misconception(fails=[ring_value, ring_whole], breaks="blocks with `causal`, blocks without `causal`")
def values_stay(q, k, v, *, causal, striped):
    """You sent the keys round but kept the values on their device. A block's weights belong to the values of that
    block, so send both."""
    n, state = jax.lax.axis_size("cp"), start(q)
    for hop in range(n):
        state = fold(state, scored(q, k, hop, causal, striped), v)
        (k,) = send(k)
    return mean_of(state)


@exercise.misconception(fails=[ring_value, ring_whole], breaks="blocks with `causal`, blocks without `causal`")
def added_over_heads(q, k, v, *, causal, striped):
    """You summed over tp. Devices along tp have different heads, and no head needs another head."""
    return jax.lax.psum(around(q, k, v, {"causal": causal, "striped": striped}), "tp")


@exercise.misconception(form_of=added_over_heads)
def mass_added_over_heads(q, k, v, *, causal, striped):
    """Like `added_over_heads`, for the mass alone."""
    n, state = jax.lax.axis_size("cp"), start(q)
    for hop in range(n):
        state = fold(state, scored(q, k, hop, causal, striped), v)
        k, v = send(k, v)
    top, mass, total = state
    return mean_of((top, jax.lax.psum(mass, "tp"), total))


@exercise.misconception(fails=ring_whole, breaks="blocks with `causal`, blocks without `causal`")
def always_causal(q, k, v, *, causal, striped):
    """You applied the causal mask with causal=False. With causal=False every query sees all keys."""
    return around(q, k, v, {"causal": True, "striped": striped})


@exercise.misconception(fails=ring_value, breaks="a query sees its own position and the positions before it")
def never_causal(q, k, v, *, causal, striped):
    """You left out the mask. With causal=True a query sees its own position and the positions before it."""
    return around(q, k, v, {"causal": False, "striped": striped})


@exercise.misconception(fails=ring_value, breaks="a query sees its own position and the positions before it")
def mask_upside_down(q, k, v, *, causal, striped):
    """You masked the keys before the query and kept the keys after it. With causal=True a query sees its own position
    and the positions before it: s <= t."""

    def masked(q, k, hop, causal, striped):
        n, me, rows = jax.lax.axis_size("cp"), jax.lax.axis_index("cp"), jnp.arange(len(q))
        mine, theirs = (rows * n + i if striped else rows + i * len(q) for i in (me, (me - hop) % n))
        scores = jnp.einsum("thd,shd->hts", q, k)
        return jnp.where(theirs >= mine[:, None], scores, -jnp.inf) if causal else scores

    return around(q, k, v, {"causal": causal, "striped": striped}, score=masked)


@exercise.misconception(fails=[ring_value, ring_whole], breaks="take the softmax of q · k")
def raw_scores(q, k, v, *, causal, striped):
    """You weighted the rows of v by the scores. The weights are the softmax of the scores."""

    def step(state, scores, v):
        top, mass, total = state
        seen = jnp.where(scores == -jnp.inf, 0, scores)
        return top, jnp.ones_like(mass), total + jnp.einsum("hts,shd->htd", seen, v)

    return around(q, k, v, {"causal": causal, "striped": striped}, step)


@exercise.misconception(fails=ring_stripes, breaks="stripes with `causal`")
def stripes_as_blocks(q, k, v, *, causal, striped):
    """You masked stripes as if they were blocks. Row r of device i is position r · N + i of the text."""
    return around(q, k, v, {"causal": causal, "striped": False})


BACK = [ring_gradients, ring_stripes]


@exercise.misconception(fails=BACK, breaks="gradients of q, k and v")
def home_keys_in_the_backward_pass(q, k, v, *, causal, striped):
    """Your backward pass used your own keys and values in all rounds. The weights came from the blocks that passed, so
    send these blocks round again."""
    how = {"causal": causal, "striped": striped}

    def backward(kept, d_out):
        _, k, v, _, _ = kept
        d_q, d_k, d_v = 0, 0, 0
        for hop in range(jax.lax.axis_size("cp")):
            more = back_through(kept, d_out, k, v, hop, how)
            d_q = d_q + more[0]
            d_k, d_v = send(d_k + more[1], d_v + more[2])
        return d_q, d_k, d_v

    return by_hand(q, k, v, how, backward)


def back_around(kept, d_out, how, hops):
    """A backward pass in which the first `hops(n)` of n rounds send the sums of gradients to the next device."""
    _, k, v, _, _ = kept
    n, d_q, d_k, d_v = jax.lax.axis_size("cp"), 0, 0, 0
    for hop in range(n):
        more = back_through(kept, d_out, k, v, hop, how)
        d_q, d_k, d_v = d_q + more[0], d_k + more[1], d_v + more[2]
        k, v = send(k, v) if hop < n - 1 else (k, v)
        d_k, d_v = send(d_k, d_v) if hop < hops(n) else (d_k, d_v)
    return d_q, d_k, d_v


@exercise.misconception(fails=BACK, breaks="gradients of q, k and v")
def gradients_one_hop_short(q, k, v, *, causal, striped):
    """Your sums of dK and dV stopped one hop too early. They need N hops to return to the device that owns their
    block."""
    how = {"causal": causal, "striped": striped}
    return by_hand(q, k, v, how, lambda kept, d_out: back_around(kept, d_out, how, lambda n: n - 1))


@exercise.misconception(fails=BACK, breaks="gradients of q, k and v")
def gradients_stay(q, k, v, *, causal, striped):
    """You kept the sums of dK and dV on each device while the keys moved on, so each sum mixes all blocks. Send the
    sums along with their keys."""
    how = {"causal": causal, "striped": striped}
    return by_hand(q, k, v, how, lambda kept, d_out: back_around(kept, d_out, how, lambda n: 0))


@exercise.misconception(fails=BACK, breaks="gradients of q, k and v")
def weights_taken_as_given(q, k, v, *, causal, striped):
    """You ignored that weights sum to one: dscores = w · (dw − the mean of dw weighted by w)."""
    how = {"causal": causal, "striped": striped}

    def backward(kept, d_out):
        q, k, v, out, lse = kept
        return back_around((q, k, v, jnp.zeros_like(out), lse), d_out, how, lambda n: n)

    return by_hand(q, k, v, how, backward)


@exercise.misconception(fails=ring_sent, breaks="`k` and `v` are sent N − 1 times")
def one_hop_too_many(q, k, v, *, causal, striped):
    """You sent K and V N times. After N - 1 hops every device has seen all blocks, so no device uses the last hop."""
    how = {"causal": causal, "striped": striped}
    step = jax.checkpoint(lambda state, k, v, hop: fold(state, scored(q, k, hop, **how), v))

    def one(carry, hop):
        state, k, v = carry
        return (step(state, k, v, hop), *send(k, v)), None

    return mean_of(jax.lax.scan(one, (start(q), k, v), jnp.arange(jax.lax.axis_size("cp")))[0][0])


@exercise.misconception(fails=ring_sent, breaks="`k` and `v` are sent N − 1 times")
def queries_sent_round(q, k, v, *, causal, striped):
    """You sent the queries and their running softmax round the ring, which are more numbers than K and V. They also need N hops to return. Queries stay on their device: send K and V."""
    n, me, state = jax.lax.axis_size("cp"), jax.lax.axis_index("cp"), start(q)
    places = lambda i: jnp.arange(len(q)) * n + i if striped else jnp.arange(len(q)) + i * len(q)  # noqa: E731

    @jax.checkpoint
    def one(state, q, k, v, theirs):
        seen = places(me) <= places(theirs)[:, None] if causal else True
        return fold(state, jnp.where(seen, jnp.einsum("thd,shd->hts", q, k), -1e30), v)

    for hop in range(n):
        q, *state = send(q, *one(state, q, k, v, (me - hop) % n))
    return mean_of(state)


@exercise.misconception(
    fails=[ring_sent, ring_back], breaks=["`k` and `v` are sent N − 1 times", "are sent at most N times"]
)
def each_round_from_home(q, k, v, *, causal, striped):
    """In round h you send your own block h hops, so a block crosses the links again and again. In each round, send the
    block that you received to the next device."""
    state = start(q)
    for hop in range(jax.lax.axis_size("cp")):

        @jax.checkpoint
        def one(state, q, k, v, hop=hop):
            for _ in range(hop):
                k, v = send(k, v)
            return fold(state, scored(q, k, hop, causal, striped), v)

        state = one(state, q, k, v)
    return mean_of(state)


@exercise.misconception(fails=ring_back, breaks="nothing over tp")
def gathered_all_heads(q, k, v, *, causal, striped):
    """You gathered the results of all heads over tp. Each device returns only its own heads, so nothing has to be sent
    over tp."""
    heads, made = q.shape[1], ring_attn(q, k, v, causal=causal, striped=striped)
    whole = jax.lax.all_gather(made, "tp", axis=1, tiled=True)
    return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("tp") * heads, heads, axis=1)


def gathers(seen):
    """For `gives`: require an all-gather over cp."""
    if not seen.only(kind="all_gather", axis="cp").collectives:
        raise Failure("this mistake gives other collectives")


@exercise.misconception(fails=ring_held, gives=gathers, breaks="not for `k` and `v` of all devices")
def gathered_keys_and_values(q, k, v, *, causal, striped):
    """You gathered keys and values, so every device holds the keys and values of the whole text. Use each block when it
    arrives, then send it on."""
    n, me = jax.lax.axis_size("cp"), jax.lax.axis_index("cp")
    every = jax.lax.all_gather((k, v), "cp")
    state = start(q)
    for hop in range(n):
        k, v = (a[(me - hop) % n] for a in every)
        state = jax.checkpoint(lambda state, q, k, v, hop=hop: fold(state, scored(q, k, hop, causal, striped), v))(
            state, q, k, v
        )
    return mean_of(state)


@exercise.misconception(fails=[ring_held, ring_kept], breaks="not for scores of all rounds")
def keys_round_then_values(q, k, v, *, causal, striped):
    """A device holds the scores of all rounds. You take one softmax at the end, perhaps because you sent the keys round first and the values after them. Send both in each round, and add each block to the running softmax."""
    n, scores, out = jax.lax.axis_size("cp"), [], 0
    for hop in range(n):
        scores.append(scored(q, k, hop, causal, striped))
        k = next(send(k)) if hop < n - 1 else k
    weights = jnp.split(jax.nn.softmax(jnp.concatenate(scores, axis=-1)), n, axis=-1)
    for hop in range(n):
        out += jnp.einsum("hts,shd->thd", weights[hop], v)
        v = next(send(v)) if hop < n - 1 else v
    return out


@exercise.misconception(fails=ring_kept, breaks="no scores or weights of a finished round")
def weights_of_all_rounds_kept(q, k, v, *, causal, striped):
    """JAX kept each round's weights for the backward pass, T/N by T in all. Put a checkpoint around each round, so that the backward pass computes them again."""

    def step(state, scores, v):
        largest = jax.lax.stop_gradient(jnp.maximum(state[0], scores.max(-1)))
        return added(state, jnp.exp(scores - largest[..., None]), v, largest, jnp.exp(state[0] - largest))

    return around(q, k, v, {"causal": causal, "striped": striped}, step, checkpoint=lambda step: step)


@exercise.misconception(form_of=weights_of_all_rounds_kept)
def weights_of_half_of_the_rounds_kept(q, k, v, *, causal, striped):
    """Like `weights_of_all_rounds_kept`, but every second round has a checkpoint."""
    how = {"causal": causal, "striped": striped}
    n, state = jax.lax.axis_size("cp"), start(q)
    for hop in range(n):
        step = lambda state, q, k, v, hop=hop: fold(state, scored(q, k, hop, **how), v)  # noqa: E731
        state = (jax.checkpoint(step) if hop % 2 else step)(state, q, k, v)
        k, v = send(k, v) if hop < n - 1 else (k, v)
    return mean_of(state)


@exercise.misconception(fails=ring_kept, breaks="no scores or weights of a finished round")
def one_checkpoint_around_all(q, k, v, *, causal, striped):
    """You put one checkpoint around all rounds, so the backward pass holds all weights at once. Put a checkpoint around
    each round."""
    how = {"causal": causal, "striped": striped}
    return jax.checkpoint(lambda q, k, v: around(q, k, v, how, checkpoint=lambda step: step))(q, k, v)


@exercise.misconception(of=ring_overlaps_from)
def overlaps_with_both_ways(chip, N, Q):
    """You used both directions of a link. A ring in one direction uses W1."""
    return ring_overlaps_from(chip=chip, N=N, Q=Q) / 2


@exercise.misconception(of=ring_overlaps_from)
def overlaps_on_one_chip(chip, N, Q):
    """You gave the positions of one chip. The whole text has N times as many positions."""
    return ring_overlaps_from(chip=chip, N=N, Q=Q) / N


@exercise.misconception(of=ring_overlaps_from)
def overlaps_with_equal_heads(chip, N, Q):
    """You sent as many key heads as there are query heads. Only 8 key heads are sent, and each serves several query
    heads."""
    return ring_overlaps_from(chip=chip, N=N, Q=Q) * Q / 8


@exercise.misconception(of=ring_overlaps_from)
def overlaps_with_one_matmul(chip, N, Q):
    """You counted one matmul. A round has two matmuls: q · k and weights · v."""
    return ring_overlaps_from(chip=chip, N=N, Q=Q) * 2


@exercise.misconception(of=stripes_save)
def saved_with_a_full_first_round(chip, T, N, H):
    """You counted the first round of blocks in full. In the block of its own device, a query sees only the positions up
    to its own position: half of the block on average."""
    rows = T // N
    return matmul_time(4 * 128 * H * (N * rows**2 - N * rows * (rows + 1) / 2), chip)


@exercise.misconception(of=stripes_save)
def saved_against_no_mask_at_all(chip, T, N, H):
    """Your answer is twice the right one. Either you gave stripes no work after round 0, although each stripe sees half
    of every other stripe. Or you counted 8·d FLOPs for each pair: two matmuls of 2·d FLOPs have 4·d FLOPs."""
    rows = T // N
    return matmul_time(4 * 128 * H * (N - 1) * rows**2, chip)


@exercise.misconception(of=stripes_save)
def saved_with_one_matmul(chip, T, N, H):
    """You counted 2·d FLOPs for each pair. Each pair takes part in two matmuls."""
    return stripes_save(chip=chip, T=T, N=N, H=H) / 2


@exercise.misconception(of=stripes_save)
def saved_one_head(chip, T, N, H):
    """You counted one head. Count all heads."""
    return stripes_save(chip=chip, T=T, N=N, H=H) / H


@exercise.misconception(of=stripes_save)
def saved_by_all(chip, T, N, H):
    """You added up all devices. The devices work at the same time, so a round takes as long as its busiest device."""
    return stripes_save(chip=chip, T=T, N=N, H=H) * N


exercise.scenario(ring_overlaps_from, lambda chip, N, Q: Scenario(chip=chip, rings=(N,), heads=(Q, 8)))
exercise.scenario(
    stripes_save,
    lambda chip, T, N, H: Scenario(
        chip=chip,
        rings=(N,),
        mesh={"cp": N},
        arrays=[((T, H, 128), ROWS[:1])],
        most=matmul_time(4 * 128 * H * T * T / N, chip),
    ),
)
