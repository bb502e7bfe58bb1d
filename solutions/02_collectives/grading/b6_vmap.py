"""Misconceptions of B6."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from b6_vmap import (
    batch_gather_time,
    centre,
    centre_batch_layout,
    centre_batch_traffic,
    centre_batch_value,
    exercise,
    looped_latency,
)
from grader.exercise import Scenario
from grader.hardware import all_gather_time, latency


@exercise.misconception(fails=centre_batch_value, breaks="in each matrix the mean of each column is subtracted")
def mapped_over_rows(a, *, mesh):
    """You mapped over the rows, so each call centred one row across all examples. The batch is dimension 0, the default of vmap's in_axes."""
    return jax.vmap(partial(centre, mesh=mesh), in_axes=1, out_axes=1)(a)


def without_means(a, mesh, mean):
    """Return each block minus its means, as ``mean`` computes them."""
    local = lambda block: block - mean(block)  # noqa: E731
    return jax.shard_map(local, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"), check_vma=False)(a)


@exercise.misconception(fails=centre_batch_value, breaks="in each matrix the mean of each column is subtracted")
def centred_over_both_axes(a, *, mesh):
    """You took the mean over y, too. Along y there are other matrices. Only x cuts the rows of a matrix."""
    return without_means(a, mesh, lambda block: jax.lax.pmean(block.mean(1, keepdims=True), ("x", "y")))


@exercise.misconception(fails=centre_batch_value, breaks="in each matrix the mean of each column is subtracted")
def centred_together(a, *, mesh):
    """You took one mean over all matrices of a device. Each matrix has its own mean of each column: keep the dimension of the batch."""
    return without_means(a, mesh, lambda block: jax.lax.pmean(block.mean((0, 1)), "x"))


@exercise.misconception(form_of=centred_together)
def centred_all_together(a, *, mesh):
    """Like `centred_together`, but with one mean over the matrices of all devices."""
    return without_means(a, mesh, lambda block: jax.lax.pmean(block.mean((0, 1)), ("x", "y")))


@exercise.misconception(fails=centre_batch_value, breaks="in each matrix the mean of each column is subtracted")
def mapped_along_x(a, *, mesh):
    """You named x as the axis that cuts the batch. x cuts the rows of each matrix. The axis that cuts the batch is y."""
    return jax.vmap(partial(centre, mesh=mesh), spmd_axis_name="x")(a)


@exercise.misconception(fails=centre_batch_value, breaks="in each matrix the mean of each column is subtracted")
def centred_by_own_rows(a, *, mesh):
    """You subtracted the mean of the device's own rows. x cuts the rows of a matrix: average over x."""
    return without_means(a, mesh, lambda block: block.mean(1, keepdims=True))


@exercise.misconception(fails=centre_batch_value, breaks="in each matrix the mean of each column is subtracted")
def centred_rows(a, *, mesh):
    """You subtracted the mean of each row. Subtract the mean of each column, which runs over the rows, I."""
    return without_means(a, mesh, lambda block: block.mean(2, keepdims=True))


@exercise.misconception(fails=centre_batch_traffic, breaks="one all-reduce over x for the B/Y examples of a device")
def rows_gathered(a, *, mesh):
    """You gathered all rows on every device. The mean needs one number for each column: average the rows that you have, then all-reduce the means."""
    return without_means(
        a, mesh, lambda block: jax.lax.all_gather(block, "x", axis=1, tiled=True).mean(1, keepdims=True)
    )


@exercise.misconception(
    fails=[centre_batch_layout, centre_batch_traffic],
    breaks=["y still cuts the batch, and x still cuts the rows of its matrices", "the batch is not gathered"],
)
def mapped_without_axis(a, *, mesh):
    """The specs of your shard_map say that the batch is whole, so the compiler gathers the batch over y. vmap adds such specs if you do not tell it which axis cuts the batch: set spmd_axis_name."""
    return jax.vmap(partial(centre, mesh=mesh))(a)


@exercise.misconception(fails=centre_batch_traffic, breaks="no other collective; a device sends at most 2·(X − 1)/X")
def mapped_and_cut_again(a, *, mesh):
    """You cut the batch only at the end. Before that the compiler gathered the batch, and every device along y computed all of it. Set spmd_axis_name to keep the batch cut."""
    out = jax.vmap(partial(centre, mesh=mesh))(a)
    return jax.lax.with_sharding_constraint(out, jax.NamedSharding(mesh, P("y", "x")))


@exercise.misconception(fails=[centre_batch_layout, centre_batch_traffic], breaks="the batch is not gathered")
def looped_over_batch(a, *, mesh):
    """You looped over the examples in Python. The loop runs one all-reduce per example and fetches every example from the devices that hold it. Map the examples with vmap."""
    return jnp.stack([centre(example, mesh=mesh) for example in a])


@exercise.misconception(
    fails=centre_batch_traffic,
    breaks=["one all-reduce over x for the B/Y examples of a device", "The grader refuses one all-reduce per example"],
)
def looped_over_block(a, *, mesh):
    """You kept the batch in place but looped over a device's examples. The loop runs B/Y small all-reduces, each with its own latency. vmap makes one all-reduce of them."""

    def local(block):
        return jnp.stack([example - jax.lax.pmean(example.mean(0), "x") for example in block])

    return jax.shard_map(local, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))(a)


@exercise.misconception(of=batch_gather_time)
def batch_gather_of_all_rows(chip, B, I, J, X, Y):
    """You gathered whole matrices. Their rows stay cut over x: V is 1/X of the array, the part of one ring along y."""
    return all_gather_time(2 * B * I * J, Y, chip)


@exercise.misconception(of=batch_gather_time)
def batch_gather_of_one_block(chip, B, I, J, X, Y):
    """You counted the block of one device. V is the result on a device: the blocks of all devices along y."""
    return all_gather_time(2 * B * I * J / X / Y, Y, chip)


@exercise.misconception(of=batch_gather_time)
def batch_gather_one_way(chip, B, I, J, X, Y):
    """You used one direction of the link. On a ring data flows both ways."""
    return 2 * all_gather_time(2 * B * I * J / X, Y, chip)


@exercise.misconception(of=looped_latency)
def looped_latency_of_whole_batch(B, X, Y):
    """You looped over the whole batch. A device loops over its own B/Y examples, while the other devices along y loop over their own examples."""
    return B * 2 * latency(X)


@exercise.misconception(of=looped_latency)
def looped_latency_of_gathers(B, X, Y):
    """You counted one pass round the ring per all-reduce. An all-reduce is a reduce-scatter and an all-gather: two passes."""
    return B / Y * latency(X)


@exercise.misconception(of=looped_latency)
def looped_latency_one_way(B, X, Y):
    """You let each phase take X - 1 hops. The model sends both ways round the ring, so the farthest device is ⌊X/2⌋ hops away."""
    return B / Y * 2 * (X - 1) * 1e-6


@exercise.misconception(of=looped_latency)
def looped_latency_over_y(B, X, Y):
    """You exchanged the axes. y cuts the batch, and the all-reduces run over x."""
    return B / X * 2 * latency(Y)


@exercise.misconception(of=looped_latency)
def looped_latency_of_one(B, X, Y):
    """Your answer is the latency of the one all-reduce that vmap needs. The loop runs one all-reduce per example."""
    return 2 * latency(X)


exercise.scenario(
    batch_gather_time,
    lambda chip, B, I, J, X, Y: Scenario(
        chip=chip, rings=(X, Y), mesh={"x": X, "y": Y}, arrays=[((B, I, J), P("y", "x"))], least=latency(Y)
    ),
)
exercise.scenario(looped_latency, lambda B, X, Y: Scenario(mesh={"y": Y}, arrays=[((B,), P("y"))]))
