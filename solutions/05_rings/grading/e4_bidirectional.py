"""Misconceptions of E4."""

from itertools import zip_longest

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from e4_bidirectional import (
    bidi_gather_rounds,
    bidi_gather_time,
    bidi_gather_traffic,
    bidi_gather_value,
    bidi_time_saved,
    exercise,
)
from grader.exercise import Scenario, larger
from grader.hardware import CHIPS, all_gather_time, hop_time, latency


@exercise.alternative()
def bidi_opposite_in_halves(a):
    """Gather one half of the opposite device's shard each way, if N is even."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    forth, back = ([(d, (d + step) % n) for d in range(n)] for step in (1, -1))
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    right = left = a
    for hop in range(1, (n - 1) // 2 + 1):
        right, left = jax.lax.ppermute(right, "x", forth), jax.lax.ppermute(left, "x", back)
        out = out.at[(me - hop) % n].set(right).at[(me + hop) % n].set(left)
    if n % 2 == 0:
        half = a.shape[0] // 2
        upper = jax.lax.ppermute(right[:half], "x", forth)
        lower = jax.lax.ppermute(left[half:], "x", back)
        out = out.at[(me + n // 2) % n].set(jnp.concatenate([upper, lower]))
    return out.reshape(-1, a.shape[1])


@exercise.misconception(fails=bidi_gather_traffic, breaks=["no shard comes twice", "Do not send it twice"])
def bidi_middle_twice(a):
    """With an even N you let the opposite device's shard travel both ways. This shard arrives twice, and each device sends N shards instead of N - 1."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    right = left = a
    for hop in range(1, n // 2 + 1):
        right = jax.lax.ppermute(right, "x", [(d, (d + 1) % n) for d in range(n)])
        left = jax.lax.ppermute(left, "x", [(d, (d - 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n].set(right).at[(me + hop) % n].set(left)
    return out.reshape(-1, a.shape[1])


@exercise.misconception(fails=bidi_gather_value, breaks="N may be odd or even")
def bidi_middle_missing(a):
    """With an even N the shard from the opposite device never arrives. (N - 1) // 2 rounds each way bring N - 2 shards."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    right = left = a
    for hop in range(1, (n - 1) // 2 + 1):
        right = jax.lax.ppermute(right, "x", [(d, (d + 1) % n) for d in range(n)])
        left = jax.lax.ppermute(left, "x", [(d, (d - 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n].set(right).at[(me + hop) % n].set(left)
    return out.reshape(-1, a.shape[1])


@exercise.misconception(fails=bidi_gather_value, breaks="N may be odd or even")
def bidi_odd_missing(a):
    """With an odd N one shard never arrives. An odd N has (N - 1) / 2 rounds each way. Only with an even N is one round fewer enough in one direction."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    right = left = a
    for hop in range(1, n // 2 + 1):
        right = jax.lax.ppermute(right, "x", [(d, (d + 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n].set(right)
        if hop < n // 2:
            left = jax.lax.ppermute(left, "x", [(d, (d - 1) % n) for d in range(n)])
            out = out.at[(me + hop) % n].set(left)
    return out.reshape(-1, a.shape[1])


@exercise.misconception(fails=bidi_gather_value, breaks="every device holds the whole `A`")
def bidi_mirrored(a):
    """You swapped the two directions. A shard that travels forwards comes from device me - hop. A shard that travels backwards comes from device me + hop."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    right = left = a
    for hop in range(1, n // 2 + 1):
        right = jax.lax.ppermute(right, "x", [(d, (d + 1) % n) for d in range(n)])
        left = jax.lax.ppermute(left, "x", [(d, (d - 1) % n) for d in range(n)])
        out = out.at[(me + hop) % n].set(right).at[(me - hop) % n].set(left)
    return out.reshape(-1, a.shape[1])


def arrived(a, joined):
    """Return all shards in the order of ``joined``, a function of the shards that came forwards and backwards."""
    n = jax.lax.axis_size("x")
    forth, back = ([(d, (d + step) % n) for d in range(n)] for step in (1, -1))
    right, left = [a], [a]
    for hop in range(1, n // 2 + 1):
        right.append(jax.lax.ppermute(right[-1], "x", forth))
        if 2 * hop < n:
            left.append(jax.lax.ppermute(left[-1], "x", back))
    return jnp.concatenate(joined(right, left[1:]))


@exercise.misconception(fails=bidi_gather_value, breaks="every device holds the whole `A`")
def bidi_in_order_of_arrival(a):
    """You joined the shards in the order in which they came. This order differs from device to device. Put each shard into the slot of the device that owns the shard: me - hop or me + hop."""
    return arrived(a, lambda right, left: [*right, *left])


@exercise.misconception(form_of=bidi_in_order_of_arrival)
def bidi_around_the_own_shard(a):
    """Like `bidi_in_order_of_arrival`, but this program puts the shards that came backwards before the device's own shard."""
    return arrived(a, lambda right, left: [*left[::-1], *right])


@exercise.misconception(form_of=bidi_in_order_of_arrival)
def bidi_around_the_own_shard_by_place(a):
    """Like `bidi_around_the_own_shard`, but this program puts the shards that came forwards before the device's own shard."""
    return arrived(a, lambda right, left: [*right[::-1], *left])


@exercise.misconception(form_of=bidi_in_order_of_arrival)
def bidi_round_by_round(a):
    """Like `bidi_in_order_of_arrival`, with both shards of a round side by side."""
    pairs = lambda right, left: [one for both in zip_longest(right[1:], left) for one in both if one is not None]  # noqa: E731
    return arrived(a, lambda right, left: [right[0], *pairs(right, left)])


@exercise.misconception(fails=bidi_gather_rounds, breaks="at most ⌊N/2⌋ `ppermute`s each way round")
def bidi_one_way(a):
    """All your hops go one way round. So they take N - 1 rounds, and one direction of every wire is idle."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    for hop in range(1, n):
        a = jax.lax.ppermute(a, "x", [(d, (d + 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n].set(a)
    return out.reshape(-1, a.shape[1])


@exercise.misconception(fails=bidi_gather_rounds, breaks="at most ⌊N/2⌋ `ppermute`s each way round")
def bidi_halves(a):
    """You send half a shard each way, all the way round. You send the right number of bytes, but in N - 1 rounds. Send whole shards both ways: each shard goes at most half of the way round."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    half = a.shape[1] // 2
    right, left = a[:, :half], a[:, half:]
    for hop in range(1, n):
        right = jax.lax.ppermute(right, "x", [(d, (d + 1) % n) for d in range(n)])
        left = jax.lax.ppermute(left, "x", [(d, (d - 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n, :, :half].set(right).at[(me + hop) % n, :, half:].set(left)
    return out.reshape(-1, a.shape[1])


@exercise.misconception(fails=bidi_gather_rounds, breaks="all to neighbours")
def bidi_over_the_heads(a):
    """You send your own shard straight to the device t places away. On a ring the shard still passes every device on its way. Send the shard to your neighbour, which then passes it on."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    for far in range(1, n):
        out = out.at[(me - far) % n].set(jax.lax.ppermute(a, "x", [(d, (d + far) % n) for d in range(n)]))
    return out.reshape(-1, a.shape[1])


@exercise.misconception(fails=[bidi_gather_traffic, bidi_gather_rounds], breaks="only `ppermute`s")
def bidi_built_in(a):
    """You called all_gather. Build the gather from hops: ppermute is the only collective that this exercise allows."""
    return jax.lax.all_gather(a, "x", tiled=True)


@exercise.misconception(of=bidi_gather_time)
def bidi_time_one_way(chip, I, J, X):
    """Your answer is the time of the one-way ring, which has N - 1 rounds. If shards travel both ways, there are ⌊N/2⌋ rounds."""
    return all_gather_time(2 * I * J, X, chip, topology="one_way_ring")


@exercise.misconception(of=bidi_gather_time)
def bidi_time_of_half_shards(chip, I, J, X):
    """You halved twice. Halve either the number of rounds or the size of a shard."""
    return all_gather_time(2 * I * J, X, chip) / 2


@exercise.misconception(of=bidi_gather_time)
def bidi_time_split_middle(chip, I, J, X):
    """Your answer is the shortest possible time, (N - 1)/N · V / W. That time needs half of the opposite device's shard from each side. Here each round sends whole shards."""
    return all_gather_time(2 * I * J, X, chip, model="exact")


def shard_times(chip, I, L, J, X):
    """Return for each array the seconds that the bytes of a shard take, without the latency of the hop."""
    return [2 * rows * J / X / CHIPS[chip].ici for rows in (I, L)]


@exercise.misconception(of=bidi_time_saved)
def bidi_saved_in_bytes(X, **rest):
    """You counted bytes only. The bytes of a shard of the small array take less than 1 us, but a hop takes at least 1 us."""
    return (X - 1 - X // 2) * sum(shard_times(X=X, **rest))


@exercise.misconception(of=bidi_time_saved)
def bidi_saved_in_hops(X, **rest):
    """You counted hops of 1 us. A shard of the large array takes longer than 1 us."""
    return (X - 1 - X // 2) * 2 * hop_time()


@exercise.misconception(of=bidi_time_saved)
def bidi_saved_half_the_ring(X, **rest):
    """You halved N rounds. The one-way ring has N - 1 rounds, and a ring used both ways has ⌊N/2⌋ rounds."""
    return bidi_time_saved(X=X, **rest) * (X // 2) / (X - 1 - X // 2)


@exercise.misconception(of=bidi_time_saved)
def bidi_saved_all(X, **rest):
    """Your answer is the whole time of the one-way ring. Subtract the time of the ring that sends both ways."""
    return bidi_time_saved(X=X, **rest) * (X - 1) / (X - 1 - X // 2)


exercise.scenario(
    bidi_gather_time,
    lambda chip, I, J, X: Scenario(chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, J), P("x"))], least=latency(X)),
)
exercise.scenario(
    bidi_time_saved,
    lambda chip, I, L, J, X: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, J), P("x")), ((L, J), P("x"))],
        branches=tuple(larger(hop=hop_time(), bytes=seconds) for seconds in shard_times(chip, I, L, J, X)),
    ),
)  # fmt: skip
