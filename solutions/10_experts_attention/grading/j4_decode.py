"""J4: misconceptions and alternatives."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario
from grader.hardware import all_gather_time, all_reduce_time, hbm_time, latency
from j4_decode import cache_read_time, decode, decode_traffic, decode_value, exercise, merge_time


def scored(q, k, length, empty=-jnp.inf):
    """The right scores of a device's own part, with `empty` at positions that are not filled."""
    rows = k.shape[1]
    position = jax.lax.axis_index("x") * rows + jnp.arange(rows)
    return jnp.where(position < length[:, None, None], jnp.einsum("bkh,bskh->bks", q, k), empty)


@exercise.alternative()
def merged_by_log_sum_exp(q, k, v, length):
    """Each device finishes its own softmax; the results are gathered with their log-sum-exps, which give the
    weights."""
    scores = scored(q, k, length)
    top = jnp.maximum(scores.max(-1), -1e30)  # a device without a filled position
    weights = jnp.exp(scores - top[..., None])
    mass = weights.sum(-1)
    own = jnp.einsum("bks,bskh->bkh", weights, v) / jnp.maximum(mass, 1e-30)[..., None]
    every, lse = jax.lax.all_gather((own, top + jnp.log(mass)), "x")
    return jnp.einsum("xbk,xbkh->bkh", jax.nn.softmax(lse, axis=0), every)


@exercise.alternative()
def merged_from_maximum_mass_and_sum(q, k, v, length):
    """Each device gathers the maximum, mass and sum of all devices, rescales them and adds them."""
    scores = scored(q, k, length)
    mine = jnp.maximum(scores.max(-1), -1e30)  # a device without a filled position
    weights = jnp.exp(scores - mine[..., None])
    sums = jnp.einsum("bks,bskh->bkh", weights, v)
    tops, mass, sums = jax.lax.all_gather((mine, weights.sum(-1), sums), "x")
    scale = jnp.exp(tops - tops.max(0))
    return (scale[..., None] * sums).sum(0) / (scale * mass).sum(0)[..., None]


@exercise.alternative()
def packed_into_one_sum(q, k, v, length):
    """The mass is one more column of the sums, so one psum adds both."""
    scores = scored(q, k, length)
    weights = jnp.exp(scores - jax.lax.pmax(scores.max(-1), "x")[..., None])
    ones = jnp.ones((*v.shape[:-1], 1), v.dtype)
    both = jax.lax.psum(jnp.einsum("bks,bskh->bkh", weights, jnp.concatenate([v, ones], -1)), "x")
    return both[..., :-1] / both[..., -1:]


@exercise.alternative()
def rescaled_after_the_maximum(q, k, v, length):
    """Local sums use local maxima and are rescaled when the largest score is known. The mask is finite."""
    scores = scored(q, k, length, -1e9)
    mine = scores.max(-1)
    weights = jnp.exp(scores - mine[..., None]) * (scores > -1e8)
    scale = jnp.exp(mine - jax.lax.pmax(mine, "x"))
    sums = scale[..., None] * jnp.einsum("bks,bskh->bkh", weights, v)
    sums, mass = jax.lax.psum((sums, scale * weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.alternative()
def head_by_head(q, k, v, length):
    """Use vmap over sequences and heads, so that each call sees one query."""

    def one(q, k, v, length):
        position = jax.lax.axis_index("x") * k.shape[0] + jnp.arange(k.shape[0])
        scores = jnp.where(position < length, k @ q, -jnp.inf)
        weights = jnp.exp(scores - jax.lax.pmax(scores.max(), "x"))
        return jax.lax.psum(weights @ v, "x") / jax.lax.psum(weights.sum(), "x")

    heads = jax.vmap(one, in_axes=(0, 1, 1, None))
    return jax.vmap(heads)(q, k, v, length)


@exercise.misconception(fails=decode_value, breaks="weighted by the softmax")
def mean_of_softmaxes(q, k, v, length):
    """You averaged the devices' softmaxes. Weight each device's result by its mass: a device with larger scores has
    a larger mass."""
    scores = scored(q, k, length, -1e9)
    own = jnp.einsum("bks,bskh->bkh", jax.nn.softmax(scores), v)
    return jax.lax.pmean(own, "x")


@exercise.misconception(form_of=mean_of_softmaxes, breaks="weighted by the softmax")
def mean_of_softmaxes_and_zeros(q, k, v, length):
    """Like `mean_of_softmaxes`, but a device without keys adds zero."""
    scores = scored(q, k, length)
    top = jnp.maximum(scores.max(-1, keepdims=True), -1e9)
    weights = jnp.exp(scores - top)
    mass = jnp.maximum(weights.sum(-1, keepdims=True), 1e-30)
    return jax.lax.pmean(jnp.einsum("bks,bskh->bkh", weights / mass, v), "x")


@exercise.misconception(form_of=mean_of_softmaxes, breaks="weighted by the softmax")
def mean_of_softmaxes_and_nan(q, k, v, length):
    """Like `mean_of_softmaxes`, but a device without keys makes the result NaN."""
    return jax.lax.pmean(jnp.einsum("bks,bskh->bkh", jax.nn.softmax(scored(q, k, length)), v), "x")


@exercise.misconception(fails=decode_value, breaks="take the softmax of q · k")
def raw_scores(q, k, v, length):
    """You weighted the rows of v by the scores. The weights are the softmax of the scores."""
    return jax.lax.psum(jnp.einsum("bks,bskh->bkh", scored(q, k, length, 0.0), v), "x")


@exercise.misconception(fails=decode_value, breaks="the mean of v over the filled positions")
def one_position_too_many(q, k, v, length):
    """You read position `length`. The first `length` positions are 0 to length - 1: compare with <, not with <=."""
    return decode(q, k, v, jnp.minimum(length + 1, k.shape[1] * jax.lax.axis_size("x")))


@exercise.misconception(fails=decode_value, breaks="`q` is already scaled")
def scaled_by_the_root_of_h(q, k, v, length):
    """You divided the scores by the square root of H. Here q is already scaled: the score is q · k."""
    scores = scored(q / q.shape[-1] ** 0.5, k, length)
    weights = jnp.exp(scores - jax.lax.pmax(scores.max(-1), "x")[..., None])
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.misconception(fails=decode_value, breaks="weighted by the softmax")
def mean_over_devices_with_keys(q, k, v, length):
    """You averaged the softmaxes of the devices that have keys. Weight each device's result by its mass."""
    scores = scored(q, k, length, -1e9)
    own = jnp.einsum("bks,bskh->bkh", jax.nn.softmax(scores), v)
    has = (scores.max(-1) > -1e8).astype(own.dtype)[..., None]
    return jax.lax.psum(has * own, "x") / jax.lax.psum(has, "x")


@exercise.misconception(fails=decode_value, breaks="weighted by the softmax")
def each_by_its_own_maximum(q, k, v, length):
    """You added sums that were scaled by each device's own maximum. First bring them to one scale with a pmax."""
    scores = scored(q, k, length, -1e9)
    weights = jnp.exp(scores - scores.max(-1, keepdims=True)) * (scores > -1e8)
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.misconception(form_of=each_by_its_own_maximum, breaks="weighted by the softmax")
def each_by_its_own_maximum_or_nan(q, k, v, length):
    """Like `each_by_its_own_maximum`, but a device without keys has the maximum -inf, and the result is NaN."""
    scores = scored(q, k, length)
    weights = jnp.exp(scores - scores.max(-1, keepdims=True))
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.misconception(fails=decode_value, breaks="so that e^s overflows")
def no_maximum(q, k, v, length):
    """You computed e^s directly. For a score of 100, e^s exceeds every float32 number: subtract the largest score
    first."""
    weights = jnp.exp(scored(q, k, length))
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.misconception(form_of=no_maximum)
def no_maximum_before_the_mask(q, k, v, length):
    """Like `no_maximum`, but masked after e^s, by a factor."""
    rows = k.shape[1]
    filled = jax.lax.axis_index("x") * rows + jnp.arange(rows) < length[:, None, None]
    weights = jnp.exp(jnp.einsum("bkh,bskh->bks", q, k)) * filled
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.misconception(fails=decode_value, breaks="weighted by the softmax")
def never_divided_by_the_mass(q, k, v, length):
    """You did not divide by the mass. Divide the sum of e^s v over all devices by the sum of e^s over all devices."""
    scores = scored(q, k, length)
    weights = jnp.exp(scores - jax.lax.pmax(scores.max(-1), "x")[..., None])
    return jax.lax.psum(jnp.einsum("bks,bskh->bkh", weights, v), "x")


@exercise.misconception(fails=decode_value, breaks="the mean of v over the filled positions")
def empty_part_is_nan(q, k, v, length):
    """A device without a filled position has the maximum -inf, and -inf - (-inf) is NaN. Give an empty part weight 0."""
    scores = scored(q, k, length)
    mine = scores.max(-1)
    weights = jnp.exp(scores - mine[..., None])
    scale = jnp.exp(mine - jax.lax.pmax(mine, "x"))
    sums = jax.lax.psum(scale[..., None] * jnp.einsum("bks,bskh->bkh", weights, v), "x")
    return sums / jax.lax.psum(scale * weights.sum(-1), "x")[..., None]


@exercise.misconception(fails=decode_value, breaks="hold old data: ignore them")
def masked_by_zero(q, k, v, length):
    """You set the scores of empty positions to 0, so their weight is e^0 = 1. Use -inf."""
    scores = scored(q, k, length, 0.0)
    weights = jnp.exp(scores - jax.lax.pmax(scores.max(-1), "x")[..., None])
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.misconception(fails=decode_value, breaks="the mean of v over the filled positions")
def masked_by_local_position(q, k, v, length):
    """You compared `length` with row numbers within the block. A block starts at position axis_index('x') times its
    number of rows."""
    scores = jnp.where(jnp.arange(k.shape[1]) < length[:, None, None], jnp.einsum("bkh,bskh->bks", q, k), -jnp.inf)
    weights = jnp.exp(scores - jax.lax.pmax(scores.max(-1), "x")[..., None])
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.misconception(fails=decode_value, breaks="hold old data: ignore them")
def nothing_masked(q, k, v, length):
    """You read the whole cache. Positions from `length` on do not belong to this sequence: mask them."""
    scores = jnp.einsum("bkh,bskh->bks", q, k)
    weights = jnp.exp(scores - jax.lax.pmax(scores.max(-1), "x")[..., None])
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.misconception(fails=decode_value, breaks="weighted by the softmax")
def added_over_heads(q, k, v, length):
    """You summed over y as well. Devices along y have different heads. Sum only over x, the axis that cuts the
    positions."""
    scores = scored(q, k, length)
    weights = jnp.exp(scores - jax.lax.pmax(scores.max(-1), "x")[..., None])
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), ("x", "y"))
    return sums / mass[..., None]


@exercise.misconception(form_of=added_over_heads, breaks="weighted by the softmax")
def added_over_heads_with_their_maximum(q, k, v, length):
    """Like `added_over_heads`, but the maximum is taken over y, too."""
    scores = scored(q, k, length)
    weights = jnp.exp(scores - jax.lax.pmax(scores.max(-1), ("x", "y"))[..., None])
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), ("x", "y"))
    return sums / mass[..., None]


@exercise.misconception(fails=decode_value, breaks="weighted by the softmax")
def added_over_sequences(q, k, v, length):
    """You summed over z as well. Devices along z have different sequences. Sum only over x, the axis that cuts the
    positions."""
    scores = scored(q, k, length)
    weights = jnp.exp(scores - jax.lax.pmax(scores.max(-1), "x")[..., None])
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), ("x", "z"))
    return sums / mass[..., None]


@exercise.misconception(fails=decode_value, breaks="weighted by the softmax")
def two_bases(q, k, v, length):
    """You mixed two bases: log has base e, and exp2 has base 2. Use one base."""
    scores = scored(q, k, length, -1e9)
    top = scores.max(-1)
    mass = jnp.exp(scores - top[..., None]).sum(-1)
    own = jnp.einsum("bks,bskh->bkh", jax.nn.softmax(scores), v)
    lse = top + jnp.log(mass)
    weight = jnp.exp2(lse - jax.lax.pmax(lse, "x"))[..., None]
    return jax.lax.psum(weight * own, "x") / jax.lax.psum(weight, "x")


@exercise.misconception(fails=decode_traffic, breaks="an all-gather of H + 2 numbers")
def gathered_the_cache(q, k, v, length):
    """You gathered keys and values, which fill most of the chips' memory. Send results instead: they are as small as q."""
    k, v = (jax.lax.all_gather(a, "x", axis=1, tiled=True) for a in (k, v))
    scores = jnp.einsum("bkh,bskh->bks", q, k)
    scores = jnp.where(jnp.arange(k.shape[1]) < length[:, None, None], scores, -jnp.inf)
    return jnp.einsum("bks,bskh->bkh", jax.nn.softmax(scores), v)


@exercise.misconception(fails=decode_traffic, breaks="an all-gather of H + 2 numbers")
def gathered_the_values(q, k, v, length):
    """You gathered scores and values for one softmax. The values are half of the cache: sum them on the device that
    holds them."""
    scores = jax.lax.all_gather(scored(q, k, length), "x", axis=2, tiled=True)
    return jnp.einsum("bks,bskh->bkh", jax.nn.softmax(scores), jax.lax.all_gather(v, "x", axis=1, tiled=True))


@exercise.misconception(fails=decode_traffic, breaks="nothing over y and z")
def gathered_all_heads(q, k, v, length):
    """You gathered the results of all heads over y. Each device returns only its own heads, so nothing has to be sent
    over y."""
    heads, made = q.shape[1], decode(q, k, v, length)
    whole = jax.lax.all_gather(made, "y", axis=1, tiled=True)
    return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("y") * heads, heads, axis=1)


@exercise.misconception(fails=decode_value, breaks="From all scores of a sequence and head, subtract")
def maximum_over_all(q, k, v, length):
    """You subtracted the largest score of all sequences and heads. If one head has a score of 100, the weights of other heads become 0. Give each sequence and head its own maximum."""
    scores = scored(q, k, length)
    weights = jnp.exp(scores - jax.lax.pmax(scores.max(), ("x", "y", "z")))
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.misconception(form_of=maximum_over_all, breaks="From all scores of a sequence and head, subtract")
def maximum_over_the_heads_of_a_sequence(q, k, v, length):
    """Like `maximum_over_all`, but each sequence has its own maximum."""
    scores = scored(q, k, length)
    weights = jnp.exp(scores - jax.lax.pmax(scores.max((1, 2), keepdims=True), "x"))
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.misconception(fails=decode_value, breaks="From all scores of a sequence and head, subtract")
def maxima_added(q, k, v, length):
    """You added the maxima of the devices. The weights of all scores then become 0, or overflow. Use pmax."""
    scores = scored(q, k, length, -1e30)
    top = jax.lax.psum(jnp.maximum(scores.max(-1), -1e3), "x")
    weights = jnp.exp(scores - top[..., None])
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.misconception(fails=decode_value, breaks="hold old data: ignore them")
def maximum_of_old_data(q, k, v, length):
    """You took the largest score of all positions, also of those that are not filled. If old data have a much larger
    score, all weights become 0. Mask the scores before you take the maximum."""
    scores = scored(q, k, length)
    top = jax.lax.pmax(jnp.einsum("bkh,bskh->bks", q, k).max(-1), "x")
    weights = jnp.exp(scores - top[..., None])
    sums, mass = jax.lax.psum((jnp.einsum("bks,bskh->bkh", weights, v), weights.sum(-1)), "x")
    return sums / mass[..., None]


@exercise.misconception(of=cache_read_time)
def read_keys_only(chip, B, S, X):
    """You read only one of the two arrays, keys and values."""
    return hbm_time(2 * B / 4 * S / X * 8 / 4 * 128, chip)


@exercise.misconception(of=cache_read_time)
def read_by_positions_only(chip, B, S, X):
    """You divided only by the size of x. y cuts the heads and z cuts the sequences."""
    return hbm_time(2 * 2 * B * S / X * 8 * 128, chip)


@exercise.misconception(of=cache_read_time)
def read_with_an_axis_left_out(chip, B, S, X):
    """You left out y or z. y cuts the heads and z cuts the sequences."""
    return hbm_time(2 * 2 * B * S / X * 8 / 4 * 128, chip)


@exercise.misconception(of=cache_read_time)
def read_uncut(chip, B, S, X):
    """You left out x. Each chip has only its part of the positions."""
    return hbm_time(2 * 2 * B / 4 * S * 8 / 4 * 128, chip)


@exercise.misconception(of=merge_time)
def merged_one_way(chip, B, X):
    """You used one direction of the links. W counts both directions."""
    return 2 * all_reduce_time(4 * B * 64 * 33, X, chip)


@exercise.misconception(of=merge_time)
def merged_once(chip, B, X):
    """Your answer is half of the right one. An all-reduce has two passes (a reduce-scatter and an all-gather), and a
    float32 number has 4 bytes."""
    return all_gather_time(4 * B * 64 * 33, X, chip)


@exercise.misconception(of=merge_time)
def merged_without_heads(chip, B, X):
    """You counted one head. Each of the 64 heads has its own softmax."""
    return all_reduce_time(4 * B * 33, X, chip)


@exercise.misconception(of=merge_time)
def merged_without_masses(chip, B, X):
    """You left out the masses. Besides the sum of v, a device sends one number for each head: the mass."""
    return all_reduce_time(4 * B * 64 * 32, X, chip)


@exercise.misconception(of=merge_time)
def merged_part(chip, B, X):
    """You divided by the number of devices. Each device has a sum for every sequence and head."""
    return all_reduce_time(4 * B * 64 * 33, X, chip) / X


exercise.scenario(
    cache_read_time,
    lambda chip, B, S, X: Scenario(
        chip=chip,
        mesh={"z": 4, "x": X, "y": 4},
        arrays=[((B, S, 8, 128), P("z", "x", "y", None))],
        holds=4 * B / 4 * S / X * 2 * 128,
    ),
)
exercise.scenario(merge_time, lambda chip, B, X: Scenario(chip=chip, rings=(X,), least=2 * latency(X)))
