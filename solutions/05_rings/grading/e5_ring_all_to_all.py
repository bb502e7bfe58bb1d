"""Misconceptions of E5."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from e5_ring_all_to_all import (
    exercise,
    ring_trade_bytes,
    ring_trade_chunk_hops,
    ring_trade_permutes,
    ring_trade_time,
    ring_trade_value,
)
from grader.exercise import Scenario
from grader.hardware import all_gather_time, all_to_all_time, latency


@exercise.alternative()
def straight_to_its_device(a):
    """Send each chunk by one rotation, which takes the shorter way round."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = jnp.stack(jnp.split(a, n, axis=1))
    out = jnp.zeros_like(chunks).at[me].set(chunks[me])
    for far in range(1, n):
        arrived = jax.lax.ppermute(chunks[(me + far) % n], "x", [(d, (d + far) % n) for d in range(n)])
        out = out.at[(me - far) % n].set(arrived)
    return out.reshape(-1, out.shape[2])


@exercise.misconception(fails=ring_trade_chunk_hops, breaks="at most N (N − 1) / 2 chunk-hops")
def traded_by_ring_gather(a):
    """You gathered everything and kept 1/N of it. This makes twice as many chunk-hops as allowed. Stop sending a chunk once it reaches its device."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    for hop in range(1, n):
        a = jax.lax.ppermute(a, "x", [(d, (d + 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n].set(a)
    whole = out.reshape(-1, a.shape[1])
    return jnp.stack(jnp.split(whole, n, axis=1))[me]


@exercise.misconception(fails=ring_trade_chunk_hops, breaks="at most N (N − 1) / 2 chunk-hops")
def traded_without_letting_off(a):
    """You carry all N - 1 chunks through all N - 1 hops. Drop a chunk from the bag at every stop."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = jnp.stack(jnp.split(a, n, axis=1))
    out = jnp.zeros_like(chunks).at[me].set(chunks[me])
    bag = chunks[(me + jnp.arange(1, n)) % n]
    for hop in range(1, n):
        bag = jax.lax.ppermute(bag, "x", [(d, (d + 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n].set(bag[hop - 1])
    return out.reshape(-1, out.shape[2])


@exercise.misconception(fails=ring_trade_chunk_hops, breaks="Each `ppermute` must be a rotation of the ring")
def traded_in_pairs(a):
    """You let devices exchange chunks in pairs, so some chunks pass many wires and others few. In each ppermute, send all chunks the same number of places round the ring."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = jnp.stack(jnp.split(a, n, axis=1))
    out = jnp.zeros_like(chunks)
    for turn in range(n):
        arrived = jax.lax.ppermute(chunks[(turn - me) % n], "x", [(d, (turn - d) % n) for d in range(n)])
        out = out.at[(turn - me) % n].set(arrived)
    return out.reshape(-1, out.shape[2])


@exercise.misconception(fails=ring_trade_value, breaks="the result is `A`, with its columns cut over x")
def traded_by_number(a):
    """You put the chunks into the bag in the order of their numbers. The first stop is the device after you: sort the chunks by distance."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    bag = chunks = jnp.stack(jnp.split(a, n, axis=1))
    out = jnp.zeros_like(chunks).at[me].set(chunks[me])
    for hop in range(1, n):
        bag = jax.lax.ppermute(bag[1:], "x", [(d, (d + 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n].set(bag[0])
    return out.reshape(-1, out.shape[2])


@exercise.misconception(fails=ring_trade_value, breaks="the result is `A`, with its columns cut over x")
def traded_in_order_of_arrival(a):
    """You joined the chunks in order of arrival, so each device's result starts with its own chunk. Put each chunk into the slot of the device that it comes from."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = jnp.stack(jnp.split(a, n, axis=1))
    bag = chunks[(me + jnp.arange(n)) % n]
    held = [bag[0]]
    for _ in range(1, n):
        bag = jax.lax.ppermute(bag[1:], "x", [(d, (d + 1) % n) for d in range(n)])
        held.append(bag[0])
    return jnp.concatenate(held)


@exercise.misconception(fails=ring_trade_value, breaks="the result is `A`, with its columns cut over x")
def traded_with_wrong_sign(a):
    """Your slots run in the wrong direction. The chunk that you unload in hop t comes from the device t places before you: me - t."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = jnp.stack(jnp.split(a, n, axis=1))
    out = jnp.zeros_like(chunks).at[me].set(chunks[me])
    bag = chunks[(me + jnp.arange(1, n)) % n]
    for hop in range(1, n):
        bag = jax.lax.ppermute(bag, "x", [(d, (d + 1) % n) for d in range(n)])
        out, bag = out.at[(me + hop) % n].set(bag[0]), bag[1:]
    return out.reshape(-1, out.shape[2])


@exercise.misconception(fails=ring_trade_permutes, breaks="`ppermute` is the only collective")
def traded_by_built_in(a):
    """You called all_to_all. Build the all-to-all from hops: ppermute is the only collective that this exercise allows."""
    return jax.lax.all_to_all(a, "x", split_axis=1, concat_axis=0, tiled=True)


@exercise.misconception(of=ring_trade_bytes)
def ring_trade_bytes_of_gather(I, J, X):
    """Your answer counts the bytes of an all-gather, where every chunk goes all the way round. In an all-to-all a chunk leaves the bag at its device, on average halfway round."""
    return 4 * I * J * (X - 1) / X


@exercise.misconception(of=ring_trade_bytes)
def ring_trade_bytes_without_passing_on(I, J, X):
    """You counted only the device's own chunks. A device of a ring also passes on the chunks of other devices."""
    return 4 * I * J * (X - 1) / X**2


@exercise.misconception(of=ring_trade_bytes)
def ring_trade_bytes_of_full_bag(I, J, X):
    """You carried all N - 1 chunks through all N - 1 hops. At each stop one chunk leaves the bag."""
    return 4 * I * J * (X - 1) ** 2 / X**2


@exercise.misconception(of=ring_trade_time)
def ring_trade_time_of_gather(chip, I, J, X):
    """Your answer is the time of the one-way all-gather. In an all-to-all a chunk leaves the bag at each stop, so the all-to-all takes half of this time."""
    return all_gather_time(2 * I * J, X, chip, topology="one_way_ring")


@exercise.misconception(of=ring_trade_time)
def ring_trade_time_both_ways(chip, I, J, X):
    """Your answer is the time of a ring used both ways, V / (4 W). Such a ring halves the distance and uses twice the wires. Your ring goes one way."""
    return all_to_all_time(2 * I * J, X, chip)


@exercise.misconception(of=ring_trade_time)
def ring_trade_time_of_quarter_gather(chip, I, J, X):
    """You took a quarter of the all-gather's time. That is right for a ring used both ways. On your one-way ring the all-to-all takes half of the all-gather's time."""
    return all_gather_time(2 * I * J, X, chip, topology="one_way_ring") / 4


exercise.scenario(
    ring_trade_bytes, lambda I, J, X: Scenario(mesh={"x": X}, arrays=[((I, J), P("x")), ((I, J), P(None, "x"))])
)
exercise.scenario(
    ring_trade_time,
    lambda chip, I, J, X: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, J), P("x")), ((I, J), P(None, "x"))],
        least=latency(X, "one_way_ring"),
    ),
)  # fmt: skip
