"""Checks and misconceptions of B1."""

import jax
from jax.sharding import PartitionSpec as P

from b1_collectives import (
    all_gather_body,
    all_reduce_body,
    all_to_all_body,
    all_to_all_on_ring,
    exercise,
    reduce_scatter_body,
)
from grader.exercise import Scenario, normal
from grader.expect import expect_close, expect_collectives
from grader.hardware import all_to_all_time, latency

DIMS = {"I": 64, "J": 40, "K": 16}
HIDDEN = {"I": 72, "J": 56, "K": 40}
rows = normal("I", "J", spec=P("x"))
last = normal("I", "J", "K", spec=P(None, None, "x"))
gather_rows = exercise.call(all_gather_body, a=rows, static={"dim": 0}, dims=DIMS, hidden_dims=HIDDEN)
gather_last = exercise.call(all_gather_body, a=last, static={"dim": 2}, dims=DIMS, hidden_dims=HIDDEN)
reduce = exercise.call(all_reduce_body, a=rows, dims=DIMS, hidden_dims=HIDDEN)
scatter = exercise.call(reduce_scatter_body, a=rows, dims=DIMS, hidden_dims=HIDDEN)
trade = exercise.call(all_to_all_body, a=rows, dims=DIMS, hidden_dims=HIDDEN)


@exercise.check(gather_rows, points=0.5, public=True)
def all_gather_value(seen):
    """all_gather_body: every device holds the whole A (dim=0)"""
    expect_close(seen.out, seen.a)


@exercise.check(gather_last, points=0.5)
def all_gather_other_dim(seen):
    """all_gather_body: every device holds the whole A (cut along its last dimension)"""
    expect_close(seen.out, seen.a)


@exercise.check(gather_rows, points=0.5, after=all_gather_value)
def all_gather_traffic(seen):
    """all_gather_body: one all-gather over x and no other collective"""
    expect_collectives(seen, all_gather={"x": 1})


@exercise.check(reduce, points=0.5, public=True)
def all_reduce_value(seen):
    """all_reduce_body: every device holds the sum"""
    parts = seen.a.reshape(seen.mesh["x"], -1, seen.a.shape[1])
    expect_close(seen.out, parts.sum(0))


@exercise.check(reduce, points=0.5, after=all_reduce_value)
def all_reduce_traffic(seen):
    """all_reduce_body: one all-reduce over x and no other collective"""
    expect_collectives(seen, all_reduce={"x": 1})


@exercise.check(scatter, points=0.5, public=True)
def reduce_scatter_value(seen):
    """reduce_scatter_body: every device holds its columns of the sum"""
    parts = seen.a.reshape(seen.mesh["x"], -1, seen.a.shape[1])
    expect_close(seen.out, parts.sum(0))


@exercise.check(scatter, points=0.5, after=reduce_scatter_value)
def reduce_scatter_traffic(seen):
    """reduce_scatter_body: one reduce-scatter over x and no other collective"""
    expect_collectives(seen, reduce_scatter={"x": 1})


@exercise.check(trade, points=0.5, public=True)
def all_to_all_value(seen):
    """all_to_all_body: every device holds its columns of A, not its rows"""
    expect_close(seen.out, seen.a)


@exercise.check(trade, points=0.5, after=all_to_all_value)
def all_to_all_traffic(seen):
    """all_to_all_body: one all-to-all over x and no other collective"""
    expect_collectives(seen, all_to_all={"x": 1})


@exercise.misconception(
    of=all_gather_body,
    fails=[all_gather_value, all_gather_other_dim],
    breaks="every device holds the whole `A`, for `dim=0`",
)
def gathered_untiled(a, *, dim):
    """You stacked the shards along a new dimension. Set tiled=True to join them along the cut dimension."""
    return jax.lax.all_gather(a, "x", axis=dim)


@exercise.misconception(of=all_gather_body, fails=all_gather_other_dim, breaks="an array cut along its last dimension")
def gathered_rows_only(a, *, dim):
    """You joined along dimension 0, whatever `dim` is. Join along `dim`."""
    return jax.lax.all_gather(a, "x", tiled=True)


@exercise.misconception(
    of=all_gather_body, fails=all_gather_traffic, breaks="one all-gather over x and no other collective"
)
def gathered_by_summing(a, *, dim):
    """You placed each shard in an array of zeros and added the arrays. An all-reduce sends twice the bytes of an all-gather."""
    n, size = jax.lax.axis_size("x"), a.shape[dim]
    whole = jax.numpy.zeros([n * s if d == dim else s for d, s in enumerate(a.shape)], a.dtype)
    placed = jax.lax.dynamic_update_slice_in_dim(whole, a, jax.lax.axis_index("x") * size, dim)
    return jax.lax.psum(placed, "x")


@exercise.misconception(of=all_gather_body, fails=all_gather_traffic, breaks="one all-gather over x")
def gathered_hop_by_hop(a, *, dim):
    """You passed the shards on with permutes. The collective jax.lax.all_gather does this: use it."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    whole = jax.numpy.zeros([n * s if d == dim else s for d, s in enumerate(a.shape)], a.dtype)
    for hop in range(n):
        whole = jax.lax.dynamic_update_slice_in_dim(whole, a, (me - hop) % n * a.shape[dim], dim)
        a = jax.lax.ppermute(a, "x", [(i, (i + 1) % n) for i in range(n)])
    return whole


@exercise.misconception(of=all_reduce_body, fails=all_reduce_value, breaks="every device holds the sum")
def averaged(a):
    """You took the mean. The result is the sum: add the partial sums."""
    return jax.lax.pmean(a, "x")


@exercise.misconception(
    of=all_reduce_body, fails=all_reduce_traffic, breaks="one all-reduce over x and no other collective"
)
def gathered_and_added(a):
    """You gathered all partial sums and added them on every device. An all-reduce adds in transit and sends fewer bytes."""
    return jax.lax.all_gather(a, "x").sum(0)


@exercise.misconception(of=all_reduce_body, fails=all_reduce_traffic, breaks="one all-reduce over x")
def scattered_then_gathered(a):
    """You used a reduce-scatter and an all-gather. One all-reduce, jax.lax.psum, does both."""
    return jax.lax.all_gather(reduce_scatter_body(a), "x", axis=1, tiled=True)


@exercise.misconception(
    of=reduce_scatter_body, fails=reduce_scatter_value, breaks="every device holds its columns of the sum"
)
def columns_of_own_part(a):
    """You kept your columns of your own partial sum, and added nothing. The result is a sum over the devices."""
    width = a.shape[1] // jax.lax.axis_size("x")
    return jax.lax.dynamic_slice_in_dim(a, jax.lax.axis_index("x") * width, width, axis=1)


@exercise.misconception(
    of=reduce_scatter_body, fails=reduce_scatter_traffic, breaks="one reduce-scatter over x and no other collective"
)
def reduced_then_sliced(a):
    """You all-reduced and kept 1/X of the sum. A reduce-scatter sends half the bytes."""
    width = a.shape[1] // jax.lax.axis_size("x")
    return jax.lax.dynamic_slice_in_dim(jax.lax.psum(a, "x"), jax.lax.axis_index("x") * width, width, axis=1)


@exercise.misconception(
    of=reduce_scatter_body, fails=reduce_scatter_value, breaks="every device holds its columns of the sum"
)
def scattered_untiled(a):
    """Without tiled=True, jax.lax.psum_scatter needs one column for each device, and removes this dimension. Set
    tiled=True to cut a dimension of any size that X divides."""
    return jax.lax.psum_scatter(a, "x", scatter_dimension=1)


@exercise.misconception(
    of=reduce_scatter_body, fails=reduce_scatter_value, breaks="every device holds its columns of the sum"
)
def scattered_rows(a):
    """You kept rows: scatter_dimension is 0 by default. The result A[I, J_X] needs scatter_dimension=1."""
    return jax.lax.psum_scatter(a, "x", tiled=True)


@exercise.misconception(
    of=all_to_all_body, fails=all_to_all_value, breaks="every device holds its columns of `A`, not its rows"
)
def traded_untiled(a):
    """Without tiled=True, jax.lax.all_to_all needs one column for each device along split_axis, and removes this
    dimension. Set tiled=True to cut a dimension of any size that X divides."""
    return jax.lax.all_to_all(a, "x", split_axis=1, concat_axis=0)


@exercise.misconception(
    of=all_to_all_body, fails=all_to_all_value, breaks="every device holds its columns of `A`, not its rows"
)
def traded_backwards(a):
    """You swapped split_axis and concat_axis. Split the dimension that is cut in the result. Join the dimension that is cut in the input."""
    return jax.lax.all_to_all(a, "x", split_axis=0, concat_axis=1, tiled=True)


@exercise.misconception(of=all_to_all_body, fails=all_to_all_value, breaks="every device holds its columns of `A`")
def traded_rows_for_rows(a):
    """You split and joined the same dimension, so chunks of rows changed places and the columns are still whole. Split the columns."""
    return jax.lax.all_to_all(a, "x", split_axis=0, concat_axis=0, tiled=True)


@exercise.misconception(of=all_to_all_body, fails=all_to_all_value, breaks="not its rows")
def traded_columns_for_columns(a):
    """You split and joined the same dimension, so chunks of columns changed places and the rows are still cut. Join along the rows."""
    return jax.lax.all_to_all(a, "x", split_axis=1, concat_axis=1, tiled=True)


@exercise.misconception(
    of=all_to_all_body, fails=all_to_all_traffic, breaks="one all-to-all over x and no other collective"
)
def gathered_then_sliced(a):
    """You gathered everything and kept 1/X of it. An all-to-all sends each device only the part that the device keeps."""
    a = jax.lax.all_gather(a, "x", tiled=True)
    width = a.shape[1] // jax.lax.axis_size("x")
    return jax.lax.dynamic_slice_in_dim(a, jax.lax.axis_index("x") * width, width, axis=1)


@exercise.misconception(of=all_to_all_on_ring)
def all_to_all_as_all_gather(chip, I, J, X):
    """Your answer is the all-gather's time. In an all-to-all each chunk travels to one device only, so an all-to-all has a quarter of the traffic."""
    return 4 * all_to_all_time(2 * I * J, X, chip)


@exercise.misconception(of=all_to_all_on_ring)
def all_to_all_one_way(chip, I, J, X):
    """Your answer is twice the right one. If you used one direction of the links, use both: on a ring data flows both ways. If you counted 4 bytes for a bfloat16, count 2."""
    return 2 * all_to_all_time(2 * I * J, X, chip)


@exercise.misconception(of=all_to_all_on_ring)
def all_to_all_of_a_shard(chip, I, J, X):
    """You divided the all-gather's time by the number of chips. Each chip sends its shard once, but most chunks pass several links. The all-to-all takes a quarter of the all-gather's time."""
    return 4 * all_to_all_time(2 * I * J, X, chip) / X


exercise.scenario(
    all_to_all_on_ring,
    lambda chip, I, J, X: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, J), P("x")), ((I, J), P(None, "x"))], least=latency(X)
    ),
)
