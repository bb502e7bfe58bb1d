"""Misconceptions of E3."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from e3_ring_all_reduce import (
    exercise,
    ring_reduce_hops,
    ring_reduce_one_way_time,
    ring_reduce_total_bytes,
    ring_reduce_traffic,
    ring_reduce_value,
)
from grader.exercise import Scenario
from grader.hardware import all_gather_time, all_reduce_time, latency


def summed_chunk(chunks, start):
    """Run the first phase. Start with chunk ``start``; after each hop, add the chunk with the next lower number."""
    n, acc = jax.lax.axis_size("x"), chunks[start % len(chunks)]
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", [(d, (d + 1) % n) for d in range(n)]) + chunks[(start - hop) % n]
    return acc


@exercise.alternative()
def reduced_backwards(a):
    """Send to the previous device in both phases."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    ring = [(d, (d - 1) % n) for d in range(n)]
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[(me + 1) % n]
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", ring) + chunks[(me + 1 + hop) % n]
    out = jnp.zeros_like(chunks).at[me].set(acc)
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", ring)
        out = out.at[(me + hop) % n].set(acc)
    return out.reshape(a.shape)


@exercise.misconception(
    fails=[ring_reduce_hops, ring_reduce_traffic],
    breaks=["2 (N − 1) `ppermute`s", "each device sends to neighbours | at most 2·(N − 1)·V/N bytes"],
)
def reduced_whole_arrays(a):
    """You sent whole arrays round the ring: each device sends (N - 1) V bytes. Chunks that go round twice send less than 2 V bytes."""
    n, total = jax.lax.axis_size("x"), a
    for _ in range(n - 1):
        a = jax.lax.ppermute(a, "x", [(d, (d + 1) % n) for d in range(n)])
        total = total + a
    return total


@exercise.misconception(fails=ring_reduce_traffic, breaks="all devices send to neighbours | exactly 2·(N − 1)·V bytes")
def reduced_whole_arrays_twice_round(a):
    """Your two phases send whole arrays instead of chunks, which takes N times the bytes. After the first phase every device already has the total."""
    n, total = jax.lax.axis_size("x"), a
    ring = [(d, (d + 1) % n) for d in range(n)]
    for _ in range(n - 1):
        a = jax.lax.ppermute(a, "x", ring)
        total = total + a
    for _ in range(n - 1):
        total = jax.lax.ppermute(total, "x", ring)
    return total


@exercise.misconception(fails=ring_reduce_traffic, breaks="at most 2·(N − 1)·V/N bytes")
def reduced_by_chunks_gathered_whole(a):
    """Your first phase sends chunks, but your second phase sends the whole array, empty slots too. Send only the chunk that arrived last."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    out = own = jnp.zeros_like(chunks).at[me].set(summed_chunk(chunks, me - 1))
    for _ in range(n - 1):
        out = own + jax.lax.ppermute(out, "x", [(d, (d + 1) % n) for d in range(n)])
    return out.reshape(a.shape)


@exercise.misconception(
    fails=ring_reduce_traffic, breaks=["what each device sends to neighbours", "what all devices send to neighbours"]
)
def reduced_over_the_heads(a):
    """You send each chunk straight to its device, past the devices on the way. Send the chunk to your neighbour, which adds its part or passes the chunk on."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[me]
    for far in range(1, n):
        acc = acc + jax.lax.ppermute(chunks[(me + far) % n], "x", [(d, (d + far) % n) for d in range(n)])
    out = jnp.zeros_like(chunks).at[me].set(acc)
    for far in range(1, n):
        out = out.at[(me - far) % n].set(jax.lax.ppermute(acc, "x", [(d, (d + far) % n) for d in range(n)]))
    return out.reshape(a.shape)


@exercise.misconception(fails=ring_reduce_value, breaks="every device holds the sum")
def reduced_into_the_wrong_slots(a):
    """You started with your own chunk, so after the first phase device i holds the sum of chunk i + 1. Device i should hold the sum of chunk i. Start with the chunk of the device before you."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = summed_chunk(chunks, me)
    out = chunks.at[me].set(acc)
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", [(d, (d + 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n].set(acc)
    return out.reshape(a.shape)


@exercise.misconception(fails=ring_reduce_value, breaks="every device holds the sum")
def reduced_second_phase_late(a):
    """Your first phase is right, but your second phase counts its hops from 0. Count t from 1: the chunk that arrives in hop t comes from the device t places before you, me - t."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = summed_chunk(chunks, me - 1)
    out = jnp.zeros_like(chunks).at[me].set(acc)
    for hop in range(n - 1):
        acc = jax.lax.ppermute(acc, "x", [(d, (d + 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n].set(acc)
    return out.reshape(a.shape)


@exercise.misconception(fails=ring_reduce_value, breaks="*put* chunks into their slots and do not add them")
def reduced_and_added_again(a):
    """You added the finished chunks to your own partial sums, so your part counts twice. In the second phase put the chunks into their slots, and do not add them."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = summed_chunk(chunks, me - 1)
    out = chunks.at[me].set(acc)
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", [(d, (d + 1) % n) for d in range(n)])
        out = out.at[(me - hop) % n].add(acc)
    return out.reshape(a.shape)


@exercise.misconception(form_of=reduced_and_added_again)
def reduced_and_added_in_place(a):
    """Like `reduced_and_added_again`, with both phases in one array of chunks."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks, ring = a.reshape(n, -1, a.shape[1]), [(d, (d + 1) % n) for d in range(n)]
    for hop in (*range(n - 1), *range(-1, n - 2)):
        arrived = jax.lax.ppermute(chunks[(me - hop) % n], "x", ring)
        chunks = chunks.at[(me - hop - 1) % n].add(arrived)
    return chunks.reshape(a.shape)


@exercise.misconception(fails=ring_reduce_value, breaks="every device holds the sum")
def reduced_second_phase_mirrored(a):
    """Your first phase is right, but the slots of your second phase run in the wrong direction. The chunk that arrives in hop t comes from the device t places before you: me - t."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    acc = summed_chunk(a.reshape(n, -1, a.shape[1]), me - 1)
    out = jnp.zeros((n, *acc.shape), acc.dtype).at[me].set(acc)
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", [(d, (d + 1) % n) for d in range(n)])
        out = out.at[(me + hop) % n].set(acc)
    return out.reshape(a.shape)


@exercise.misconception(fails=ring_reduce_value, breaks="every device holds the sum")
def reduced_but_not_gathered(a):
    """You stopped after the first phase. Each device has one finished chunk and does not get the other chunks. Add the second phase."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    return chunks.at[me].set(summed_chunk(chunks, me - 1)).reshape(a.shape)


@exercise.misconception(fails=[ring_reduce_hops, ring_reduce_traffic], breaks="no other collective")
def reduced_by_built_in(a):
    """You called psum. Build the all-reduce from hops: ppermute is the only collective that this exercise allows."""
    return jax.lax.psum(a, "x")


@exercise.misconception(of=ring_reduce_total_bytes)
def ring_reduce_bytes_of_one_device(I, J, X):
    """Your answer counts the bytes of one device. All N devices send equally many bytes: add them up."""
    return 2 * (X - 1) * 4 * I * J / X


@exercise.misconception(of=ring_reduce_total_bytes)
def ring_reduce_bytes_of_one_phase(I, J, X):
    """You counted one phase. The chunks go round twice, once to be summed and once to be gathered."""
    return (X - 1) * 4 * I * J


@exercise.misconception(of=ring_reduce_total_bytes)
def ring_reduce_bytes_of_whole_arrays(I, J, X):
    """You counted whole arrays: V bytes from each of N devices in each of N - 1 hops. A hop sends one chunk of V/N bytes."""
    return X * (X - 1) * 4 * I * J


@exercise.misconception(of=ring_reduce_total_bytes)
def ring_reduce_bytes_of_n_hops(I, J, X):
    """You counted N hops in a phase. A chunk makes N - 1 hops in each phase."""
    return 2 * X * 4 * I * J


@exercise.misconception(of=ring_reduce_one_way_time)
def ring_reduce_time_of_one_phase(chip, I, J, X):
    """Your answer is too small by a factor of two. An all-reduce has two phases, and all hops use one direction of the links."""
    return all_gather_time(2 * I * J, X, chip, topology="one_way_ring")


@exercise.misconception(of=ring_reduce_one_way_time)
def ring_reduce_time_of_whole_arrays(chip, I, J, X):
    """You counted whole arrays in each hop. A hop sends one chunk of V/N bytes."""
    return all_gather_time(2 * I * J, X, chip, topology="one_way_ring") * X


@exercise.misconception(of=ring_reduce_one_way_time)
def ring_reduce_time_of_n_hops(chip, I, J, X):
    """You counted N hops in a phase. N - 1 hops are enough."""
    return all_reduce_time(2 * I * J, X, chip, topology="one_way_ring") * X / (X - 1)


exercise.scenario(ring_reduce_total_bytes, lambda I, J, X: Scenario(mesh={"x": X}, arrays=[((I, J), P("x"))]))
exercise.scenario(
    ring_reduce_one_way_time,
    lambda chip, I, J, X: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, J), P("x"))], least=2 * latency(X, "one_way_ring")
    ),
)
