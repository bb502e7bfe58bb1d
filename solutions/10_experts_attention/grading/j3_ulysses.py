"""J3: misconceptions and alternatives."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario
from grader.hardware import all_gather_time, all_to_all_time, latency
from j3_ulysses import exercise, rotate, ulysses_bytes, ulysses_time, ulysses_traffic, ulysses_value


def to_heads(a):
    """Exchange all heads of some positions for all positions of some heads."""
    return jax.lax.all_to_all(a, "x", split_axis=2, concat_axis=1, tiled=True)


def to_rows(a):
    """Exchange all positions of some heads for all heads of some positions."""
    return jax.lax.all_to_all(a, "x", split_axis=1, concat_axis=2, tiled=True)


def attention(q, k, v):
    """Causal attention of rotated q and k; query head h uses key head h // groups."""
    groups, T = q.shape[2] // k.shape[2], q.shape[1]
    scores = jnp.einsum("bthd,bshd->bhts", q, jnp.repeat(k, groups, axis=2))
    weights = jax.nn.softmax(jnp.where(jnp.tri(T, dtype=bool), scores, -jnp.inf))
    return jnp.einsum("bhts,bshd->bthd", weights, jnp.repeat(v, groups, axis=2))


def rotated(q, k):
    """Rotate q and k by their position in the text."""
    position = jnp.arange(q.shape[1])
    return rotate(q, position), rotate(k, position)


@exercise.alternative()
def rotated_before_sending(q, k, v):
    """Each device rotates its own rows before the all-to-all, by their position in the text."""
    position = jax.lax.axis_index("x") * q.shape[1] + jnp.arange(q.shape[1])
    q, k = rotate(q, position), rotate(k, position)
    return to_rows(attention(to_heads(q), to_heads(k), to_heads(v)))


@exercise.alternative()
def sent_in_one_piece(q, k, v):
    """One all-to-all sends q, k and v, joined so that each device's part is contiguous."""
    n, heads = jax.lax.axis_size("x"), [a.shape[2] for a in (q, k, v)]
    parts = [a.reshape(*a.shape[:2], n, -1, a.shape[3]) for a in (q, k, v)]
    packed = to_heads(jnp.concatenate(parts, 3).reshape(*q.shape[:2], sum(heads), q.shape[3]))
    q, k, v = jnp.split(packed, [heads[0] // n, (heads[0] + heads[1]) // n], axis=2)
    return to_rows(attention(*rotated(q, k), v))


@exercise.alternative()
def untiled(q, k, v):
    """Use all_to_all without tiled=True, with a separate dimension for the chunks."""
    n = jax.lax.axis_size("x")

    def there(a):
        b, t, h, d = a.shape
        chunks = jax.lax.all_to_all(a.reshape(b, t, n, h // n, d), "x", split_axis=2, concat_axis=1)
        return chunks.reshape(b, n * t, h // n, d)

    def back(a):
        b, t, h, d = a.shape
        chunks = jax.lax.all_to_all(a.reshape(b, n, t // n, h, d), "x", split_axis=1, concat_axis=2)
        return chunks.reshape(b, t // n, n * h, d)

    return back(attention(*rotated(there(q), there(k)), there(v)))


@exercise.alternative()
def grouped_without_copies(q, k, v):
    """Query heads have two dimensions, (key head, member), so no key is repeated. Loop over the texts."""

    def one(q, k, v):
        T = q.shape[0]
        q = q.reshape(T, k.shape[1], -1, q.shape[2])
        scores = jnp.einsum("tkgd,skd->kgts", q, k)
        weights = jax.nn.softmax(jnp.where(jnp.tri(T, dtype=bool), scores, -jnp.inf))
        return jnp.einsum("kgts,skd->tkgd", weights, v).reshape(T, -1, v.shape[2])

    q, k, v = to_heads(q), to_heads(k), to_heads(v)
    q, k = rotated(q, k)
    return to_rows(jax.vmap(one)(q, k, v))


@exercise.misconception(fails=ulysses_value, breaks="whose scores q · k are not scaled")
def scaled_by_the_root_of_d(q, k, v):
    """You divided the scores by the square root of d. Here the score is q · k."""
    q, k = rotated(to_heads(q), to_heads(k))
    return to_rows(attention(q / q.shape[-1] ** 0.5, k, to_heads(v)))


@exercise.misconception(fails=ulysses_value, breaks="by their position *in the whole text*")
def rotated_by_the_block(q, k, v):
    """You rotated by row numbers within the block. A block starts at position axis_index('x') times its number of
    rows."""
    q, k = rotated(q, k)
    return to_rows(attention(to_heads(q), to_heads(k), to_heads(v)))


@exercise.misconception(form_of=rotated_by_the_block, breaks="by their position *in the whole text*")
def queries_rotated_by_the_block(q, k, v):
    """Like `rotated_by_the_block`, but for queries only."""
    q = rotate(q, jnp.arange(q.shape[1]))
    q, k, v = to_heads(q), to_heads(k), to_heads(v)
    return to_rows(attention(q, rotated(k, k)[0], v))


@exercise.misconception(form_of=rotated_by_the_block, breaks="by their position *in the whole text*")
def keys_rotated_by_the_block(q, k, v):
    """Like `rotated_by_the_block`, but for keys only."""
    k = rotate(k, jnp.arange(k.shape[1]))
    q, k, v = to_heads(q), to_heads(k), to_heads(v)
    return to_rows(attention(rotated(q, q)[0], k, v))


@exercise.misconception(fails=ulysses_value, breaks="causal attention of whole texts")
def out_again_on_the_way_back(q, k, v):
    """You repeated the first all-to-all for the result, and reshaped. The sizes fit, but the order is wrong. Split the
    rows and join the heads."""
    q, k, v = to_heads(q), to_heads(k), to_heads(v)
    out = attention(*rotated(q, k), v)
    n, (b, t, h, d) = jax.lax.axis_size("x"), out.shape
    return to_heads(out.reshape(b, t // n, n * h, d)).reshape(b, t // n, n * h, d)


def to_heads_untiled(a, concat_axis):
    """Send heads without tiled=True, put the axis of devices in the given place, and reshape."""
    n, (b, t, h, d) = jax.lax.axis_size("x"), a.shape
    chunks = jax.lax.all_to_all(a.reshape(b, t, n, h // n, d), "x", split_axis=2, concat_axis=concat_axis)
    return chunks.reshape(b, n * t, h // n, d)


@exercise.misconception(fails=ulysses_value, breaks="causal attention of whole texts")
def joined_before_the_texts(q, k, v):
    """You reshaped the received array while its axis of devices came before its axis of texts. This is right for one text only: first move the axis of devices next to the rows."""
    q, k, v = (to_heads_untiled(a, concat_axis=0) for a in (q, k, v))
    return to_rows(attention(*rotated(q, k), v))


def rotated_first(q, k):
    """Rotate a device's rows of q and k by their position in the text, before they are sent."""
    position = jax.lax.axis_index("x") * q.shape[1] + jnp.arange(q.shape[1])
    return rotate(q, position), rotate(k, position)


@exercise.misconception(form_of=joined_before_the_texts)
def rotated_and_joined_before_the_texts(q, k, v):
    """Like `joined_before_the_texts`, but rotated before the all-to-all."""
    q, k, v = (to_heads_untiled(a, concat_axis=0) for a in (*rotated_first(q, k), v))
    return to_rows(attention(q, k, v))


@exercise.misconception(fails=ulysses_value, breaks="causal attention of whole texts")
def rows_alternate(q, k, v):
    """You joined the received parts row by row, so rows of different devices alternate. Put all rows of device 0 first,
    then those of device 1: concat_axis=1."""
    q, k, v = (to_heads_untiled(a, concat_axis=2) for a in (q, k, v))
    return to_rows(attention(*rotated(q, k), v))


@exercise.misconception(form_of=rows_alternate)
def rotated_rows_alternate(q, k, v):
    """Like `rows_alternate`, but rotated before the all-to-all."""
    q, k, v = (to_heads_untiled(a, concat_axis=2) for a in (*rotated_first(q, k), v))
    return to_rows(attention(q, k, v))


@exercise.misconception(fails=ulysses_value, breaks="First rotate queries and keys")
def never_rotated(q, k, v):
    """You did not rotate queries and keys. Without rotation, scores do not depend on the distance between positions."""
    return to_rows(attention(to_heads(q), to_heads(k), to_heads(v)))


@exercise.misconception(fails=ulysses_value, breaks="First rotate queries and keys")
def values_rotated_too(q, k, v):
    """You rotated the values, too. Rotate only queries and keys: the result is a mean of values."""
    q, k, v = to_heads(q), to_heads(k), to_heads(v)
    return to_rows(attention(*rotated(q, k), rotated(v, v)[0]))


@exercise.misconception(fails=ulysses_value, breaks="causal attention of whole texts")
def heads_alternate(q, k, v):
    """You joined the heads of the result in the wrong order, so heads of different devices alternate. Put all heads of
    device 0 first, then those of device 1."""
    q, k, v = to_heads(q), to_heads(k), to_heads(v)
    out = attention(*rotated(q, k), v)
    n, (b, t, h, d) = jax.lax.axis_size("x"), out.shape
    chunks = jax.lax.all_to_all(out.reshape(b, n, t // n, h, d), "x", split_axis=1, concat_axis=3)
    return chunks.reshape(b, t // n, n * h, d)


@exercise.misconception(fails=ulysses_value, breaks="causal attention of whole texts")
def local_attention(q, k, v):
    """You computed attention within each block. A query needs the keys of all earlier blocks, so bring whole heads
    together first."""
    start = jax.lax.axis_index("x") * q.shape[1]
    position = start + jnp.arange(q.shape[1])
    return attention(rotate(q, position), rotate(k, position), v)


@exercise.misconception(fails=ulysses_value, breaks="causal attention of whole texts")
def not_causal(q, k, v):
    """Your queries see later positions. Mask keys whose position is larger than the query's."""
    q, k, v = to_heads(q), to_heads(k), to_heads(v)
    q, k = rotated(q, k)
    groups = q.shape[2] // k.shape[2]
    weights = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, jnp.repeat(k, groups, axis=2)))
    return to_rows(jnp.einsum("bhts,bshd->bthd", weights, jnp.repeat(v, groups, axis=2)))


@exercise.misconception(fails=ulysses_value, breaks="causal attention of whole texts")
def key_heads_in_turns(q, k, v):
    """You used key head h % K for query head h. Query head h uses key head h // (Q / K), so neighbouring query heads
    share a key head. Repeat each key head so that its copies follow one another."""
    q, k, v = to_heads(q), to_heads(k), to_heads(v)
    q, k = rotated(q, k)
    groups = q.shape[2] // k.shape[2]
    return to_rows(attention(q, jnp.tile(k, (1, 1, groups, 1)), jnp.tile(v, (1, 1, groups, 1))))


@exercise.misconception(fails=ulysses_value, breaks="causal attention of whole texts")
def sent_untiled(q, k, v):
    """Without tiled=True, jax.lax.all_to_all needs one head for each device along split_axis, and removes this
    dimension. Set tiled=True to cut a dimension of any size that N divides."""
    q, k, v = (jax.lax.all_to_all(a, "x", split_axis=2, concat_axis=1) for a in (q, k, v))
    return jax.lax.all_to_all(attention(*rotated(q, k), v), "x", split_axis=1, concat_axis=2)


@exercise.misconception(fails=ulysses_value, breaks="First rotate queries and keys")
def rotated_only_queries(q, k, v):
    """You rotated only the queries. The angle between query and key encodes their distance, so rotate the keys too."""
    q, k, v = to_heads(q), to_heads(k), to_heads(v)
    return to_rows(attention(rotated(q, k)[0], k, v))


@exercise.misconception(fails=ulysses_value, breaks="causal attention of whole texts")
def rows_left_where_heads_are(q, k, v):
    """You returned the first T/N positions of your own heads. Send the result back, so that each device has all heads
    of its own positions."""
    q, k, v = to_heads(q), to_heads(k), to_heads(v)
    out = attention(*rotated(q, k), v)
    n = jax.lax.axis_size("x")
    return jnp.tile(out[:, : out.shape[1] // n], (1, 1, n, 1))


@exercise.misconception(fails=ulysses_traffic, breaks="all-to-alls only")
def gathered_the_text(q, k, v):
    """You gathered whole texts. Each device needs all positions only of its own heads: an all-to-all sends 1/N of
    the bytes of a gather."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    q, k, v = (jax.lax.all_gather(a, "x", axis=1, tiled=True) for a in (q, k, v))

    def mine(a):
        return jax.lax.dynamic_slice_in_dim(a, me * (a.shape[2] // n), a.shape[2] // n, axis=2)

    return to_rows(attention(*rotated(mine(q), mine(k)), mine(v)))


@exercise.misconception(
    fails=ulysses_traffic, breaks=["of each of its blocks of q, k, v and the result, once", "send only K key heads"]
)
def repeated_before_sending(q, k, v):
    """You repeated keys and values before you sent them, which sends Q/K times the bytes. Repeat them after the
    all-to-all."""
    groups = q.shape[2] // k.shape[2]
    q, k, v = to_heads(q), to_heads(jnp.repeat(k, groups, axis=2)), to_heads(jnp.repeat(v, groups, axis=2))
    return to_rows(attention(*rotated(q, k), v))


@exercise.misconception(fails=ulysses_traffic, breaks="all-to-alls only")
def gathered_on_the_way_back(q, k, v):
    """You gathered all heads of all positions at the end and kept your rows. Use an all-to-all for the result too."""
    q, k, v = to_heads(q), to_heads(k), to_heads(v)
    out = jax.lax.all_gather(attention(*rotated(q, k), v), "x", axis=2, tiled=True)
    rows = out.shape[1] // jax.lax.axis_size("x")
    return jax.lax.dynamic_slice_in_dim(out, jax.lax.axis_index("x") * rows, rows, axis=1)


@exercise.misconception(of=ulysses_bytes)
def sent_all_of_it(B, T, N):
    """You counted the part that a device keeps. A device sends N − 1 of its N parts."""
    return 2 * B * T * 128 * 128 / N


@exercise.misconception(of=ulysses_bytes)
def sent_one_way_only(B, T, N):
    """You left out the all-to-all of the result. The result is as large as q."""
    return 2 * B * T * 128 * 80 / N * (N - 1) / N


@exercise.misconception(of=ulysses_bytes)
def sent_as_a_gather(B, T, N):
    """You counted an all-gather, in which every device receives everything. In an all-to-all, a device sends 1/N² of
    the array to each other device."""
    return 2 * B * T * 128 * 128 * (N - 1) / N


@exercise.misconception(of=ulysses_bytes)
def sent_all_heads_alike(B, T, N):
    """You gave keys and values 48 heads. Keys and values have 16 heads."""
    return 2 * B * T * 128 * 192 / N * (N - 1) / N


@exercise.misconception(of=ulysses_time)
def time_as_a_gather(chip, B, T, N):
    """You took V / W, the time of an all-gather. An all-to-all on a ring takes a quarter of that time."""
    return all_gather_time(2 * B * T * 128 * 128, N, chip)


@exercise.misconception(of=ulysses_time)
def time_one_way_only(chip, B, T, N):
    """You left out the all-to-all of the result. The result is as large as q."""
    return all_to_all_time(2 * B * T * 128 * 80, N, chip)


@exercise.misconception(of=ulysses_time)
def time_in_one_direction(chip, B, T, N):
    """You counted one direction of each link. On a ring, an all-to-all sends in both directions."""
    return 2 * all_to_all_time(2 * B * T * 128 * 128, N, chip)


@exercise.misconception(of=ulysses_time)
def time_of_a_block(chip, B, T, N):
    """You used the bytes of one device's block as V. V counts the bytes of the whole arrays."""
    return all_to_all_time(2 * B * T * 128 * 128, N, chip) / N


@exercise.misconception(of=ulysses_time)
def time_of_all_heads_alike(chip, B, T, N):
    """You gave keys and values 48 heads. Keys and values have 16 heads."""
    return all_to_all_time(2 * B * T * 128 * 192, N, chip)


exercise.scenario(
    ulysses_bytes,
    lambda B, T, N: Scenario(mesh={"x": N}, arrays=[((B, T, 48, 128), P(None, "x")), ((B, T, 16, 128), P(None, "x"))]),
)
exercise.scenario(
    ulysses_time,
    lambda chip, B, T, N: Scenario(
        chip=chip, rings=(N,), mesh={"x": N}, arrays=[((B, T, 16, 128), P(None, "x"))], least=4 * latency(N)
    ),
)
