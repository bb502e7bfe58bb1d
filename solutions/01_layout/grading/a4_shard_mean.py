"""Misconceptions of A4."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from a4_shard_mean import (
    exercise,
    global_roll_bytes,
    shard_mean,
    shard_mean_alone,
    shard_mean_value,
    shard_roll_alone,
    shard_roll_diff,
    shard_roll_further,
    shard_roll_value,
)
from grader.exercise import Scenario


@exercise.misconception(of=shard_mean, fails=shard_mean_value, breaks="the mean of the block")
def mean_of_everything(a, *, mesh):
    """You returned the mean of the whole array on every device. Return the mean of each device's own block."""

    def local(block):
        return jax.lax.pmean(jnp.mean(block, keepdims=True), ("x", "y"))

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=False)(a)


@exercise.misconception(of=shard_mean, fails=shard_mean_value)
def mean_outside(a, *, mesh):
    """You returned one number, the mean of the whole array. Inside jax.shard_map, jnp.mean sees one block."""
    return jnp.mean(a)


@exercise.misconception(of=shard_mean, fails=shard_mean_value)
def mean_repeated(a, *, mesh):
    """You took the mean of the whole array and repeated it. Inside jax.shard_map, jnp.mean sees one block."""
    return jnp.full((mesh.shape["x"], mesh.shape["y"]), jnp.mean(a))


@exercise.misconception(of=shard_mean, fails=shard_mean_value, breaks="the mean of the block of device (x=i, y=j)")
def mean_over_all_elements(a, *, mesh):
    """You divided by the number of elements of the whole array. A block has only S·D / (X·Y) of them."""

    def local(block):
        return jnp.sum(block, keepdims=True) / a.size

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


@exercise.misconception(
    of=shard_mean, fails=shard_mean_alone, breaks=["`shard_mean` | no communication", "each device keeps its own mean"]
)
def means_gathered(a, *, mesh):
    """You gathered the means on every device. Each device needs only its own mean: out_specs=P('x', 'y') joins the means without communication."""

    def local(block):
        rows = jax.lax.all_gather(jnp.mean(block, keepdims=True), "x", tiled=True)
        return jax.lax.all_gather(rows, "y", axis=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P(), check_vma=False)(a)


@exercise.misconception(of=shard_mean, fails=shard_mean_value, breaks="the mean of the block")
def sum_of_the_block(a, *, mesh):
    """You returned the sum of each block. Divide it by the number of the block's elements."""

    def local(block):
        return jnp.sum(block, keepdims=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


@exercise.misconception(of=shard_mean, fails=shard_mean_value, breaks="the mean of the block of device (x=i, y=j)")
def mean_of_each_column(a, *, mesh):
    """You took a mean for each column, or for each row. Take one mean of all elements of a block, as an array of one element."""

    def local(block):
        return jnp.mean(block, 0, keepdims=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


@exercise.misconception(form_of=mean_of_each_column)
def mean_of_each_row(a, *, mesh):
    """Like `mean_of_each_column`, but with a mean for each row."""

    def local(block):
        return jnp.mean(block, 1, keepdims=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


@exercise.misconception(of=shard_roll_diff, fails=shard_roll_value, breaks="rolled by one row")
def rolled_columns(a, *, mesh, shift):
    """You rolled the columns. Roll the rows: axis=0."""

    def local(block):
        return jnp.roll(block, shift, axis=1) - block

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


@exercise.misconception(of=shard_roll_diff, fails=shard_roll_value, breaks="rolled by one row")
def rolled_everything(a, *, mesh, shift):
    """You rolled the whole array: rows left one block and entered the next. Roll inside shard_map, where jnp.roll sees one block."""
    return jnp.roll(a, shift, axis=0) - a


@exercise.misconception(
    of=shard_roll_diff, fails=shard_roll_value, breaks="every block rolled by one row, minus the block"
)
def rolled_flat(a, *, mesh, shift):
    """You rolled the flattened block. Without axis=0, jnp.roll moves elements, not rows."""

    def local(block):
        return jnp.roll(block, shift) - block

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


@exercise.misconception(of=shard_roll_diff, fails=shard_roll_further, breaks="rolled by three rows")
def rolled_by_one(a, *, mesh, shift):
    """You rolled by one row, whatever `shift` is. Roll by `shift` rows."""
    return shard_roll_diff(a, mesh=mesh, shift=1)


@exercise.misconception(of=shard_roll_diff, fails=shard_roll_value, breaks="The order is *rolled block minus block*")
def rolled_and_subtracted_backwards(a, *, mesh, shift):
    """You subtracted the rolled block from the block. Subtract the block from the rolled block."""
    return -shard_roll_diff(a, mesh=mesh, shift=shift)


@exercise.misconception(of=shard_roll_diff, fails=shard_roll_value, breaks="every block rolled by one row")
def rolled_up(a, *, mesh, shift):
    """You rolled up. Roll down: row i moves to row i + shift, as jnp.roll does with a positive shift."""
    return shard_roll_diff(a, mesh=mesh, shift=-shift)


@exercise.misconception(of=shard_roll_diff, fails=shard_roll_value, breaks="every block rolled by one row")
def shifted_with_zeros(a, *, mesh, shift):
    """You put zeros into the first rows. In a roll the last rows of the block move to the front."""

    def local(block):
        return jnp.roll(block, shift, axis=0).at[:shift].set(0) - block

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)


@exercise.misconception(
    of=shard_roll_diff,
    fails=shard_roll_alone,
    breaks=["`shard_roll_diff` | no communication", "the result is sharded"],
)
def rolled_and_gathered(a, *, mesh, shift):
    """You gathered the blocks on every device. Each device needs only its own block: out_specs=P('x', 'y') joins the blocks without communication."""

    def local(block):
        rows = jax.lax.all_gather(jnp.roll(block, shift, axis=0) - block, "x", tiled=True)
        return jax.lax.all_gather(rows, "y", axis=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P(), check_vma=False)(a)


@exercise.misconception(of=global_roll_bytes)
def roll_whole_rows(S, D, X, Y, shift):
    """You counted all D columns of a row. A device holds only D / Y columns."""
    return 4 * shift * D


@exercise.misconception(of=global_roll_bytes)
def roll_whole_block(S, D, X, Y, shift):
    """You counted the whole block. A device sends only the `shift` rows that leave its block."""
    return 4 * S / X * D / Y


@exercise.misconception(of=global_roll_bytes)
def roll_of_all_devices(S, D, X, Y, shift):
    """You counted what all devices send together. The question asks for one device."""
    return 4 * shift * D * X


@exercise.misconception(of=global_roll_bytes)
def roll_two_bytes(S, D, X, Y, shift):
    """You counted 2 bytes a number. A float32 takes 4 bytes."""
    return 2 * shift * D / Y


@exercise.misconception(of=global_roll_bytes)
def roll_one_row(S, D, X, Y, shift):
    """You counted one row. `shift` rows leave each block."""
    return 4 * D / Y


@exercise.misconception(of=global_roll_bytes)
def roll_elements(S, D, X, Y, shift):
    """You counted numbers, not bytes. A float32 takes 4 bytes."""
    return shift * D / Y


exercise.scenario(
    global_roll_bytes, lambda S, D, X, Y, shift: Scenario(mesh={"x": X, "y": Y}, arrays=[((S, D), P("x", "y"))])
)
