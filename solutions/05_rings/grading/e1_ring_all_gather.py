"""Misconceptions of E1."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from e1_ring_all_gather import (
    exercise,
    ring_gather_bytes,
    ring_gather_hops,
    ring_gather_one_way_time,
    ring_gather_traffic,
    ring_gather_value,
)
from grader.exercise import Scenario
from grader.expect import Failure
from grader.hardware import all_gather_time, latency


@exercise.alternative()
def gathered_backwards(a):
    """Send to the previous device, in a loop. The shard that arrives in hop t comes from device me + t."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")

    def one(hop, carry):
        a, out = carry
        a = jax.lax.ppermute(a, "x", [(d, (d - 1) % n) for d in range(n)])
        return a, out.at[(me + hop) % n].set(a)

    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    return jax.lax.fori_loop(1, n, one, (a, out))[1].reshape(-1, a.shape[1])


@exercise.misconception(fails=ring_gather_hops, breaks="N − 1 `ppermute`s")
def gathered_in_n_hops(a):
    """You permute N times. After N - 1 permutes every device has every shard. Your last permute only returns your own shard."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype)
    for hop in range(1, n + 1):
        a = jax.lax.ppermute(a, "x", [(d, (d + 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n].set(a)
    return out.reshape(-1, a.shape[1])


@exercise.misconception(fails=[ring_gather_hops, ring_gather_traffic], breaks="no other collective")
def gathered_by_built_in(a):
    """You called all_gather. Build the gather from hops: ppermute is the only collective that this exercise allows."""
    return jax.lax.all_gather(a, "x", tiled=True)


@exercise.misconception(fails=ring_gather_value, breaks="every device holds the whole `A`")
def gathered_with_wrong_sign(a):
    """Your slots run in the wrong direction. If you send to the next device, the shard that arrives in hop t comes from the device t places before you: me - t."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    for hop in range(1, n):
        a = jax.lax.ppermute(a, "x", [(d, (d + 1) % n) for d in range(n)])
        out = out.at[(me + hop) % n].set(a)
    return out.reshape(-1, a.shape[1])


def one_slot_off(seen):
    """For `gives`: require that each device holds the shards one slot away from their own slots, on the same side.

    One slot may be empty, and one may be right, if the device puts its own shard there.
    """
    n = seen.mesh["x"]
    due = seen.a.reshape(n, -1, seen.a.shape[1])
    held = np.stack(seen.out.shards).reshape(-1, *due.shape)

    def off_by(places):
        moved, right, empty = ((held == of).all((2, 3)) for of in (np.roll(due, places, axis=0), due, 0))
        return (moved | right | empty).all() and moved.sum(1).min() >= n - 2 and right.sum(1).max() <= 1

    if not (off_by(1) or off_by(-1)):
        raise Failure("this mistake moves each shard by one slot")


@exercise.misconception(fails=ring_gather_value, gives=one_slot_off, breaks="every device holds the whole `A`")
def gathered_one_slot_off(a):
    """You put each shard one slot away from its own slot. Count hops from 1: if you send to the next device, the shard that arrives in hop t comes from device me - t."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    for hop in range(n - 1):
        a = jax.lax.ppermute(a, "x", [(d, (d + 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n].set(a)
    return out.reshape(-1, a.shape[1])


@exercise.misconception(fails=ring_gather_value, breaks="every device holds the whole `A`")
def gathered_in_order_of_arrival(a):
    """You joined the shards in order of arrival. So each device's result starts with its own shard. Put each shard into its slot."""
    n, held = jax.lax.axis_size("x"), [a]
    for _ in range(n - 1):
        held.append(jax.lax.ppermute(held[-1], "x", [(d, (d + 1) % n) for d in range(n)]))
    return jnp.concatenate(held)


@exercise.misconception(fails=ring_gather_value, breaks="every device holds the whole `A`")
def gathered_own_shard_again(a):
    """You send your own shard in every hop, so only your neighbour's shard arrives, N - 1 times. Send the shard that arrived last."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    for hop in range(1, n):
        out = out.at[(me - hop) % n].set(jax.lax.ppermute(a, "x", [(d, (d + 1) % n) for d in range(n)]))
    return out.reshape(-1, a.shape[1])


@exercise.misconception(fails=ring_gather_value, breaks="a ring without its last pair, (N − 1, 0), gives wrong values")
def gathered_along_a_line(a):
    """Your pairs end at the last device, so no device sends to device 0. A device without a sender receives zeros. Close the ring with the pair (N - 1, 0)."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    for hop in range(1, n):
        a = jax.lax.ppermute(a, "x", [(d, d + 1) for d in range(n - 1)])
        out = out.at[(me - hop) % n].set(a)
    return out.reshape(-1, a.shape[1])


@exercise.misconception(fails=ring_gather_traffic, breaks="each hop takes one shard")
def gathered_sending_all_slots(a):
    """You send the whole array of slots in every hop, empty slots too. This sends N times the bytes of one shard. Send only the shard that arrived last."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = own = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    for _ in range(n - 1):
        out = own + jax.lax.ppermute(out, "x", [(d, (d + 1) % n) for d in range(n)])
    return out.reshape(-1, a.shape[1])


@exercise.misconception(fails=ring_gather_traffic, breaks="to a neighbour")
def gathered_over_the_heads(a):
    """You send your own shard straight to the device t places away. On a ring the shard still passes every device on its way. Send the shard to your neighbour, which then passes it on."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    for far in range(1, n):
        out = out.at[(me - far) % n].set(jax.lax.ppermute(a, "x", [(d, (d + far) % n) for d in range(n)]))
    return out.reshape(-1, a.shape[1])


@exercise.misconception(of=ring_gather_bytes)
def ring_gather_bytes_of_n_hops(I, J, X):
    """You counted N hops. The last shard arrives in hop N - 1."""
    return 4 * I * J


@exercise.misconception(of=ring_gather_bytes)
def ring_gather_bytes_of_one_hop(I, J, X):
    """You counted one hop. A device also passes on the shards of other devices, so it makes N - 1 hops."""
    return 4 * I * J / X


@exercise.misconception(of=ring_gather_bytes)
def ring_gather_bytes_of_slots(I, J, X):
    """You counted the whole array in each hop. A hop sends one shard."""
    return 4 * I * J * (X - 1)


@exercise.misconception(of=ring_gather_one_way_time)
def ring_gather_time_both_ways(chip, I, J, X):
    """You used W, the bandwidth of both directions of a link. Your hops all go one way round: use W1."""
    return all_gather_time(2 * I * J, X, chip, topology="one_way_ring") / 2


@exercise.misconception(of=ring_gather_one_way_time)
def ring_gather_time_of_n_hops(chip, I, J, X):
    """You counted N hops. N - 1 hops are enough."""
    return all_gather_time(2 * I * J, X, chip, topology="one_way_ring") * X / (X - 1)


@exercise.misconception(of=ring_gather_one_way_time)
def ring_gather_time_of_one_hop(chip, I, J, X):
    """Your answer is the time of one hop. The gather takes N - 1 hops, one after the other."""
    return all_gather_time(2 * I * J, X, chip, topology="one_way_ring") / (X - 1)


exercise.scenario(ring_gather_bytes, lambda I, J, X: Scenario(mesh={"x": X}, arrays=[((I, J), P("x"))]))
exercise.scenario(
    ring_gather_one_way_time,
    lambda chip, I, J, X: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, J), P("x"))], least=latency(X, "one_way_ring")
    ),
)
