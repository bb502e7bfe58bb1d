"""What goes wrong in B1."""

import jax

from b1_collectives import (
    all_gather_body,
    all_gather_other_dim,
    all_gather_value,
    all_reduce_body,
    all_reduce_value,
    all_to_all_body,
    all_to_all_on_ring,
    all_to_all_traffic,
    all_to_all_value,
    exercise,
    reduce_scatter_body,
    reduce_scatter_value,
)
from grader.hardware import all_to_all_time


@exercise.misconception(of=all_gather_body, fails=[all_gather_value, all_gather_other_dim])
def gathered_untiled(a, *, dim):
    """You stacked the shards along a new dimension. tiled=True joins them along the one that was cut."""
    return jax.lax.all_gather(a, "x", axis=dim)


@exercise.misconception(of=all_gather_body, fails=all_gather_other_dim)
def gathered_rows_only(a, *, dim):
    """You joined along dimension 0, whatever `dim` says."""
    return jax.lax.all_gather(a, "x", tiled=True)


@exercise.misconception(of=all_reduce_body, fails=all_reduce_value)
def averaged(a):
    """You took the mean. The partial sums of a matmul have to be added."""
    return jax.lax.pmean(a, "x")


@exercise.misconception(of=reduce_scatter_body, fails=reduce_scatter_value)
def scattered_rows(a):
    """You kept rows: scatter_dimension is 0 unless you set it. The result is A[I, J_X]: dimension 1."""
    return jax.lax.psum_scatter(a, "x", tiled=True)


@exercise.misconception(of=all_to_all_body, fails=all_to_all_value)
def traded_backwards(a):
    """You swapped split_axis and concat_axis. Split the dimension that shall be cut, join the one that was."""
    return jax.lax.all_to_all(a, "x", split_axis=0, concat_axis=1, tiled=True)


@exercise.misconception(of=all_to_all_body, fails=all_to_all_traffic)
def gathered_then_sliced(a):
    """You gathered everything and kept 1/X of it. An all-to-all sends only what each device keeps."""
    a = jax.lax.all_gather(a, "x", tiled=True)
    width = a.shape[1] // jax.lax.axis_size("x")
    return jax.lax.dynamic_slice_in_dim(a, jax.lax.axis_index("x") * width, width, axis=1)


@exercise.misconception(of=all_to_all_on_ring)
def all_to_all_as_all_gather(chip, I, J, X):
    """That is the all-gather. In an all-to-all a chunk travels only to the one device that wants it: a quarter of the traffic."""
    return 4 * all_to_all_time(2 * I * J, X, chip)


@exercise.misconception(of=all_to_all_on_ring)
def all_to_all_one_way(chip, I, J, X):
    """You used one direction of the link; on a ring data flows both ways."""
    return 2 * all_to_all_time(2 * I * J, X, chip)
