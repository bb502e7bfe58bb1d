"""Checks and misconceptions of B5."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from b5_rooted import (
    exercise,
    rooted_broadcast,
    rooted_broadcast_time,
    rooted_gather,
    rooted_reduce,
    rooted_scatter,
    rooted_scatter_bytes,
)
from grader.exercise import Scenario, normal
from grader.expect import expect_close, expect_traffic, needed
from grader.hardware import all_reduce_time, latency

blocks = normal("I", "J", spec=P(None, "x"))
DIMS = {"I": 40, "J": 80}
HIDDEN = {"I": 28, "J": 36}
LARGE = {"I": 120, "J": 200}
OTHER = [{"x": 8}, {"x": 5}]
broadcast = exercise.call(rooted_broadcast, a=blocks, static={"root": 1}, dims=DIMS, hidden_dims=HIDDEN)
scatter = exercise.call(rooted_scatter, a=blocks, static={"root": 1}, dims=DIMS, hidden_dims=HIDDEN)
gather = exercise.call(rooted_gather, a=blocks, static={"root": 1}, dims=DIMS, hidden_dims=HIDDEN)
reduce = exercise.call(rooted_reduce, a=blocks, static={"root": 1}, dims=DIMS, hidden_dims=HIDDEN)
broadcast_from_3 = exercise.call(rooted_broadcast, a=blocks, static={"root": 3}, dims=LARGE, meshes=OTHER)
scatter_from_3 = exercise.call(rooted_scatter, a=blocks, static={"root": 3}, dims=LARGE, meshes=OTHER)
gather_to_3 = exercise.call(rooted_gather, a=blocks, static={"root": 3}, dims=LARGE, meshes=OTHER)
reduce_to_3 = exercise.call(rooted_reduce, a=blocks, static={"root": 3}, dims=LARGE, meshes=OTHER)


@exercise.check(broadcast, points=0.5, public=True)
def rooted_broadcast_value(seen):
    """rooted_broadcast: every device has the root's block"""
    parts = seen.a.reshape(len(seen.a), seen.mesh["x"], -1)
    expect_close(seen.out, parts[:, seen.root])


@exercise.check(scatter, points=0.5, public=True)
def rooted_scatter_value(seen):
    """rooted_scatter: device i has chunk i of the root's rows"""
    parts = seen.a.reshape(len(seen.a), seen.mesh["x"], -1)
    expect_close(seen.out, parts[:, seen.root])


@exercise.check(gather, points=0.5, public=True)
def rooted_gather_value(seen):
    """rooted_gather: the root has all blocks, the other devices have zeros"""
    want = np.zeros((seen.mesh["x"], *seen.a.shape))
    want[seen.root] = seen.a
    expect_close(seen.out, want.reshape(-1, seen.a.shape[1]))


@exercise.check(reduce, points=0.5, public=True)
def rooted_reduce_value(seen):
    """rooted_reduce: the root has the sum, the other devices have zeros"""
    parts = seen.a.reshape(len(seen.a), seen.mesh["x"], -1)
    want = np.zeros(parts.shape)
    want[:, seen.root] = parts.sum(1)
    expect_close(seen.out, want.reshape(seen.a.shape))


def sends(seen, blocks, wrong):
    """Require that each device sends at most as many bytes as ``blocks`` blocks have."""
    block = 4 * seen.a.size / seen.mesh["x"]
    expect_traffic(seen, at_most=needed(blocks * block, wrong * block))


@exercise.check(broadcast_from_3, points=0.25, after=rooted_broadcast_value)
def rooted_broadcast_budget(seen):
    """rooted_broadcast: right values for another root, and each device sends at most 2 (N - 1)/N V bytes"""
    rooted_broadcast_value.fn(seen)
    sends(seen, 2 * (seen.mesh["x"] - 1) / seen.mesh["x"], wrong=seen.mesh["x"] - 1)


@exercise.check(scatter_from_3, points=0.25, after=rooted_scatter_value)
def rooted_scatter_budget(seen):
    """rooted_scatter: right values for another root, and each device sends at most (N - 1)/N V bytes"""
    rooted_scatter_value.fn(seen)
    sends(seen, (seen.mesh["x"] - 1) / seen.mesh["x"], wrong=2 * (seen.mesh["x"] - 1) / seen.mesh["x"])


@exercise.check(gather_to_3, points=0.25, after=rooted_gather_value)
def rooted_gather_budget(seen):
    """rooted_gather: right values for another root, and each device sends at most (N - 1) V bytes"""
    rooted_gather_value.fn(seen)
    sends(seen, seen.mesh["x"] - 1, wrong=2 * (seen.mesh["x"] - 1))


@exercise.check(reduce_to_3, points=0.25, after=rooted_reduce_value)
def rooted_reduce_budget(seen):
    """rooted_reduce: right values for another root, and each device sends at most 2 (N - 1)/N V bytes"""
    rooted_reduce_value.fn(seen)
    sends(seen, 2 * (seen.mesh["x"] - 1) / seen.mesh["x"], wrong=seen.mesh["x"] - 1)


@exercise.misconception(of=rooted_broadcast, fails=rooted_broadcast_value, breaks="every device has the root's block")
def broadcast_from_0(a, *, root):
    """You used device 0 as the root. Compare the device's number with `root`."""
    return jax.lax.psum(jnp.where(jax.lax.axis_index("x") == 0, a, 0), "x")


@exercise.misconception(of=rooted_broadcast, fails=rooted_broadcast_value, breaks="every device has the root's block")
def broadcast_the_sum(a, *, root):
    """You added the blocks of all devices. Mask before you add: only the root contributes."""
    return jax.lax.psum(a, "x")


@exercise.misconception(
    of=rooted_broadcast, fails=rooted_broadcast_budget, breaks="every device has the root's block | 2·(N − 1)/N · V"
)
def broadcast_by_gather(a, *, root):
    """You gathered all blocks and kept one: each device sends (N - 1)·V. A masked sum sends less than 2·V for any number of devices."""
    return jax.lax.all_gather(a, "x")[root]


@exercise.misconception(
    of=rooted_broadcast, fails=rooted_broadcast_budget, breaks="The grader also checks each body with another root"
)
def broadcast_from_1(a, *, root):
    """You used device 1 as the root, as in the picture. Compare the device's number with `root`."""
    return jax.lax.psum(jnp.where(jax.lax.axis_index("x") == 1, a, 0), "x")


@exercise.misconception(of=rooted_scatter, fails=rooted_scatter_value, breaks="device i has chunk i of the root's rows")
def scatter_the_sum(a, *, root):
    """You scattered the sum of all blocks. Mask before you add: only the root contributes."""
    return jax.lax.psum_scatter(a, "x", scatter_dimension=0, tiled=True)


@exercise.misconception(
    of=rooted_scatter, fails=rooted_scatter_budget, breaks="device i has chunk i of the root's rows | (N − 1)/N · V"
)
def scatter_by_broadcast(a, *, root):
    """You sent the root's whole block to every device and kept 1/N of it: twice the bytes of a reduce-scatter."""
    me, whole = jax.lax.axis_index("x"), rooted_broadcast(a, root=root)
    return whole.reshape(jax.lax.axis_size("x"), -1, a.shape[1])[me]


@exercise.misconception(
    of=rooted_gather, fails=rooted_gather_value, breaks="the root has all blocks, the other devices have zeros"
)
def gather_on_every_device(a, *, root):
    """You left the result on every device. Only the root keeps it. The other devices return zeros."""
    return jax.lax.all_gather(a, "x", axis=1, tiled=True)


@exercise.misconception(
    of=rooted_gather, fails=rooted_gather_budget, breaks="the other devices have zeros | (N − 1) · V"
)
def gather_by_sum(a, *, root):
    """You put each block into a whole array of zeros and summed these arrays over x. The sum sends twice the bytes of an all-gather."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    placed = jnp.zeros((a.shape[0], n, a.shape[1]), a.dtype).at[:, me].set(a)
    return jnp.where(me == root, jax.lax.psum(placed, "x").reshape(a.shape[0], -1), 0)


@exercise.misconception(of=rooted_gather, fails=rooted_gather_value, breaks="the root has all blocks")
def gather_to_0(a, *, root):
    """You used device 0 as the root. Compare the device's number with `root`."""
    return jnp.where(jax.lax.axis_index("x") == 0, jax.lax.all_gather(a, "x", axis=1, tiled=True), 0)


@exercise.misconception(of=rooted_gather, fails=rooted_gather_value, breaks="the root has all blocks")
def gather_by_rows(a, *, root):
    """You joined the blocks one below the other. Join them side by side: the result has the shape [I, N·K]."""
    return jnp.where(jax.lax.axis_index("x") == root, jax.lax.all_gather(a, "x", tiled=True), 0)


@exercise.misconception(
    of=rooted_reduce, fails=rooted_reduce_value, breaks="the root has the sum, the other devices have zeros"
)
def reduce_on_every_device(a, *, root):
    """You left the sum on every device, as an all-reduce does. Only the root keeps it. The other devices return zeros."""
    return jax.lax.psum(a, "x")


@exercise.misconception(of=rooted_reduce, fails=rooted_reduce_value, breaks="the root has the sum")
def reduce_to_0(a, *, root):
    """You used device 0 as the root. Compare the device's number with `root`."""
    return jnp.where(jax.lax.axis_index("x") == 0, jax.lax.psum(a, "x"), 0)


@exercise.misconception(of=rooted_reduce, fails=rooted_reduce_value, breaks="the root has the sum")
def reduce_masked_first(a, *, root):
    """You masked before you added, so only the root contributed. All devices contribute and only the root keeps the sum: mask after the sum."""
    return jax.lax.psum(jnp.where(jax.lax.axis_index("x") == root, a, 0), "x")


@exercise.misconception(
    of=rooted_reduce,
    fails=rooted_reduce_budget,
    breaks="the root has the sum, the other devices have zeros | 2·(N − 1)/N · V",
)
def reduce_by_gather(a, *, root):
    """You gathered all blocks and added them yourself: each device sends (N - 1)·V. psum sends less than 2·V."""
    return jnp.where(jax.lax.axis_index("x") == root, jax.lax.all_gather(a, "x").sum(0), 0)


@exercise.misconception(of=rooted_broadcast_time)
def rooted_broadcast_one_phase(chip, I, K, X):
    """You counted one phase. An all-reduce is a reduce-scatter and an all-gather, even when most devices contribute zeros."""
    return all_reduce_time(2 * I * K, X, chip) / 2


@exercise.misconception(of=rooted_broadcast_time)
def rooted_broadcast_of_chunk(chip, I, K, X):
    """You divided the block by X. Every device adds a whole masked block, so V is the bytes of a whole block."""
    return all_reduce_time(2 * I * K / X, X, chip)


@exercise.misconception(of=rooted_broadcast_time)
def rooted_broadcast_one_way(chip, I, K, X):
    """You used one direction of the link. On a ring data flows both ways."""
    return 2 * all_reduce_time(2 * I * K, X, chip)


@exercise.misconception(of=rooted_scatter_bytes)
def rooted_scatter_of_root(I, K, X):
    """You counted the bytes of one device, as if only the root sent. All devices run the same program: the others send as many bytes of zeros."""
    return (X - 1) / X * 4 * I * K


@exercise.misconception(of=rooted_scatter_bytes)
def rooted_scatter_as_reduce(I, K, X):
    """You counted an all-reduce. A reduce-scatter is only the first half of an all-reduce: it ends when every device has its chunk."""
    return 2 * (X - 1) * 4 * I * K


@exercise.misconception(of=rooted_scatter_bytes)
def rooted_scatter_n_hops(I, K, X):
    """You counted X hops. A chunk reaches its device after X - 1 hops."""
    return X * 4 * I * K


exercise.scenario(
    rooted_broadcast_time,
    lambda chip, I, K, X: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, K), P("x"))], least=2 * latency(X)
    ),
)
exercise.scenario(rooted_scatter_bytes, lambda I, K, X: Scenario(mesh={"x": X}, arrays=[((I, K), P("x"))]))
