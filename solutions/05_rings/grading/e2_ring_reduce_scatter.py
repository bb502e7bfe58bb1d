"""What goes wrong in E2."""

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


@exercise.misconception(fails=ring_scatter_value)
def scattered_to_the_device_before(a):
    """Your sums are right but one device off. N - 1 hops are one less than a full turn: the chunk that shall end at i starts at i + 1."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[me]
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", [(d, (d + 1) % n) for d in range(n)]) + chunks[(me - hop) % n]
    return acc


@exercise.misconception(fails=ring_scatter_value)
def scattered_with_wrong_sign(a):
    """You added different chunks together. What arrives from the device before you is one number lower than what you sent: count down."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[(me + 1) % n]
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", [(d, (d + 1) % n) for d in range(n)]) + chunks[(me + 1 + hop) % n]
    return acc


@exercise.misconception(fails=ring_scatter_value)
def scattered_along_a_line(a):
    """Your pairs end at the last device: device 0 receives zeros in the place of sums. Close the ring."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[(me - 1) % n]
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", [(d, d + 1) for d in range(n - 1)]) + chunks[(me - 1 - hop) % n]
    return acc


@exercise.misconception(fails=ring_scatter_hops)
def scattered_from_zeros(a):
    """Your first hop sends zeros, so you need N hops. Start with a chunk of your own."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = jnp.zeros_like(chunks[0])
    for hop in range(1, n + 1):
        acc = jax.lax.ppermute(acc, "x", [(d, (d + 1) % n) for d in range(n)]) + chunks[(me - hop) % n]
    return acc


@exercise.misconception(fails=ring_scatter_hops)
def scattered_by_built_in(a):
    """You called psum_scatter. Build it: ppermute is the only collective allowed here."""
    return jax.lax.psum_scatter(a, "x", tiled=True)


@exercise.misconception(fails=ring_scatter_traffic)
def scattered_whole_blocks(a):
    """You sent whole partial sums round the ring, N times too much, and kept one chunk of the total. Send the one chunk whose turn it is."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    total = a
    for _ in range(n - 1):
        a = jax.lax.ppermute(a, "x", [(d, (d + 1) % n) for d in range(n)])
        total = total + a
    return total.reshape(n, -1, a.shape[1])[me]


@exercise.misconception(fails=ring_scatter_traffic)
def scattered_over_the_heads(a):
    """You send each chunk straight to its owner, past all devices between. Let it visit them: each adds its part to one running sum."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[me]
    for far in range(1, n):
        acc = acc + jax.lax.ppermute(chunks[(me + far) % n], "x", [(d, (d + far) % n) for d in range(n)])
    return acc


@exercise.misconception(of=ring_scatter_one_way_time)
def ring_scatter_half_a_gather(chip, I, J, X):
    """Half of it is not enough: no hop uses the other direction of a link, and sums are as large as the shards of an all-gather."""
    return reduce_scatter_time(2 * I * J, X, chip, topology="one_way_ring") / 2


@exercise.misconception(of=ring_scatter_one_way_time)
def ring_scatter_time_of_n_hops(chip, I, J, X):
    """You counted N hops. A chunk visits N devices, and starts on the first of them: N - 1."""
    return reduce_scatter_time(2 * I * J, X, chip, topology="one_way_ring") * X / (X - 1)


@exercise.misconception(of=ring_scatter_one_way_time)
def ring_scatter_time_of_result(chip, I, J, X):
    """You took V as what is left on a device, A[I_X, J]. V is the block that it starts with."""
    return reduce_scatter_time(2 * I * J, X, chip, topology="one_way_ring") / X


def small_parts(chip, I, L, J, X):
    """(hops, bytes) of the two, in seconds."""
    return [
        ((X - 1) * hop_time(), reduce_scatter_time(2 * rows * J, X, chip, topology="one_way_ring")) for rows in (I, L)
    ]


@exercise.misconception(of=ring_scatter_small_time)
def ring_scatter_small_bandwidth(**params):
    """You counted bytes only. A chunk of the small one is over the wire in less than the microsecond that a hop takes anyway."""
    return sum(bytes for _, bytes in small_parts(**params))


@exercise.misconception(of=ring_scatter_small_time)
def ring_scatter_small_hops(**params):
    """You counted hops only. A chunk of the large one needs longer than a microsecond for each."""
    return sum(hops for hops, _ in small_parts(**params))


@exercise.misconception(of=ring_scatter_small_time)
def ring_scatter_small_added(**params):
    """You added the hops' microseconds to the time of the bytes. They pass together: the longer one counts."""
    return sum(map(sum, small_parts(**params)))


@exercise.misconception(of=ring_scatter_small_time)
def ring_scatter_small_half_round(X, **rest):
    """You went both ways round. Your ring goes one way, so the farthest contribution travels N - 1 hops."""
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
