"""Misconceptions of E2."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from e2_ring_reduce_scatter import (
    exercise,
    ring_scatter_hops,
    ring_scatter_one_way_time,
    ring_scatter_small_time,
    ring_scatter_traffic,
    ring_scatter_value,
)
from grader.exercise import Scenario, larger
from grader.hardware import hop_time, latency, reduce_scatter_time


@exercise.alternative()
def scattered_backwards(a):
    """Send to the previous device. The chunk of device i starts at device i - 1."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[(me + 1) % n]
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", [(d, (d - 1) % n) for d in range(n)]) + chunks[(me + 1 + hop) % n]
    return acc


@exercise.misconception(fails=ring_scatter_value, breaks="device i holds chunk i of the sum")
def scattered_to_the_device_before(a):
    """Your sums are right, but each sum is one device away from its owner. N - 1 hops are one hop less than a full turn. Start the chunk of device i at device i + 1."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[me]
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", [(d, (d + 1) % n) for d in range(n)]) + chunks[(me - hop) % n]
    return acc


@exercise.misconception(fails=ring_scatter_value, breaks="device i holds chunk i of the sum")
def scattered_with_wrong_sign(a):
    """You added different chunks together. The number of the chunk that arrives is lower by one than the number of the chunk that you sent: count down."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[(me + 1) % n]
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", [(d, (d + 1) % n) for d in range(n)]) + chunks[(me + 1 + hop) % n]
    return acc


@exercise.misconception(fails=ring_scatter_value, breaks="device i holds chunk i of the sum")
def scattered_along_a_line(a):
    """Your pairs end at the last device. Device 0 receives zeros instead of sums. Close the ring."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[(me - 1) % n]
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", [(d, d + 1) for d in range(n - 1)]) + chunks[(me - 1 - hop) % n]
    return acc


@exercise.misconception(fails=ring_scatter_value, breaks="device i holds chunk i of the sum")
def scattered_own_parts_again(a):
    """You send your own part of a chunk in each hop, not the sum that arrived. Add your part to the sum that arrived, and send the result."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[me]
    for _ in range(1, n):
        acc = acc + jax.lax.ppermute(chunks[(me + 1) % n], "x", [(d, (d + 1) % n) for d in range(n)])
    return acc


@exercise.misconception(form_of=scattered_own_parts_again)
def scattered_all_own_parts(a):
    """Like `scattered_own_parts_again`, but with the part of another chunk in each hop."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[me]
    for far in range(1, n):
        acc = acc + jax.lax.ppermute(chunks[(me + far) % n], "x", [(d, (d + 1) % n) for d in range(n)])
    return acc


@exercise.misconception(fails=ring_scatter_hops, breaks="N − 1 `ppermute`s")
def scattered_from_zeros(a):
    """Your first hop sends zeros, so you need N hops. Start with one of your own chunks."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = jnp.zeros_like(chunks[0])
    for hop in range(1, n + 1):
        acc = jax.lax.ppermute(acc, "x", [(d, (d + 1) % n) for d in range(n)]) + chunks[(me - hop) % n]
    return acc


@exercise.misconception(fails=[ring_scatter_hops, ring_scatter_traffic], breaks="no other collective")
def scattered_by_built_in(a):
    """You called psum_scatter. Build the reduce-scatter from hops: ppermute is the only collective that this exercise allows."""
    return jax.lax.psum_scatter(a, "x", tiled=True)


@exercise.misconception(fails=ring_scatter_traffic, breaks="each hop takes one chunk")
def scattered_whole_blocks(a):
    """You sent whole partial sums round the ring and kept one chunk of the total. A hop then sends N times the bytes of a chunk. Send one chunk in each hop."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    total = a
    for _ in range(n - 1):
        a = jax.lax.ppermute(a, "x", [(d, (d + 1) % n) for d in range(n)])
        total = total + a
    return total.reshape(n, -1, a.shape[1])[me]


@exercise.misconception(fails=ring_scatter_traffic, breaks="to a neighbour")
def scattered_over_the_heads(a):
    """You send each chunk straight to its owner, past the devices on the way. Send one running sum from neighbour to neighbour: each device adds its part."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[me]
    for far in range(1, n):
        acc = acc + jax.lax.ppermute(chunks[(me + far) % n], "x", [(d, (d + far) % n) for d in range(n)])
    return acc


@exercise.misconception(of=ring_scatter_one_way_time)
def ring_scatter_half_a_gather(chip, I, J, X):
    """You halved the time of an all-gather. A hop uses only one direction of a link, and a running sum is as large as a shard of an all-gather. Do not halve the time."""
    return reduce_scatter_time(2 * I * J, X, chip, topology="one_way_ring") / 2


@exercise.misconception(of=ring_scatter_one_way_time)
def ring_scatter_time_of_n_hops(chip, I, J, X):
    """You counted N hops. A running sum visits N devices and starts on the first of them, so it makes N - 1 hops."""
    return reduce_scatter_time(2 * I * J, X, chip, topology="one_way_ring") * X / (X - 1)


@exercise.misconception(of=ring_scatter_one_way_time)
def ring_scatter_time_of_result(chip, I, J, X):
    """You took the bytes of a device's result, A[I_X, J], as V. V counts the bytes of the block that the device starts with."""
    return reduce_scatter_time(2 * I * J, X, chip, topology="one_way_ring") / X


def small_parts(chip, I, L, J, X):
    """Return for each of the two arrays: the seconds of the hops' latency, and the seconds of the bytes."""
    return [
        ((X - 1) * hop_time(), reduce_scatter_time(2 * rows * J, X, chip, topology="one_way_ring")) for rows in (I, L)
    ]


@exercise.misconception(of=ring_scatter_small_time)
def ring_scatter_small_bandwidth(**params):
    """You counted bytes only. The bytes of a chunk of the small array take less than 1 us, but a hop takes at least 1 us."""
    return sum(bytes for _, bytes in small_parts(**params))


@exercise.misconception(of=ring_scatter_small_time)
def ring_scatter_small_hops(**params):
    """You counted hops only. The bytes of a chunk of the large array take longer than 1 us."""
    return sum(hops for hops, _ in small_parts(**params))


@exercise.misconception(of=ring_scatter_small_time)
def ring_scatter_small_added(**params):
    """You added the latency of the hops to the time of the bytes. The two overlap: take the longer time."""
    return sum(map(sum, small_parts(**params)))


@exercise.misconception(of=ring_scatter_small_time)
def ring_scatter_small_half_round(X, **rest):
    """You counted the hops of a ring that sends both ways. The ring of this exercise sends one way, so a running sum makes N - 1 hops."""
    return ring_scatter_small_time(X=X, **rest) * (X // 2) / (X - 1)


exercise.scenario(
    ring_scatter_one_way_time,
    lambda chip, I, J, X: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, J), P("x"))], least=latency(X, "one_way_ring")
    ),
)
exercise.scenario(
    ring_scatter_small_time,
    lambda chip, I, L, J, X: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, J), P("x")), ((L, J), P("x"))],
        least=2 * latency(X, "one_way_ring"),
        branches=tuple(larger(hops=hops, bytes=bytes) for hops, bytes in small_parts(chip, I, L, J, X)),
    ),
)  # fmt: skip
