"""Misconceptions of A1."""

import math

from jax.sharding import PartitionSpec as P

from a1_local_shape import exercise, local_load_time, local_shape_axes, local_shape_tuples, local_shape_uneven
from grader.exercise import Scenario
from grader.hardware import hbm_time


@exercise.misconception(fails=[local_shape_axes, local_shape_tuples])
def local_shape_by_every_axis(shape, spec, mesh_shape):
    """You divided by every axis of the mesh. Only the axes in a dimension's own entry cut it. The other axes hold copies."""
    devices = math.prod(mesh_shape.values())
    local = list(shape)
    for dim, entry in enumerate(spec):
        if entry is not None and shape[dim] % devices:
            raise ValueError("uneven")
        local[dim] = shape[dim] if entry is None else shape[dim] // devices
    return tuple(local)


@exercise.misconception(fails=local_shape_uneven)
def local_shape_rounded(shape, spec, mesh_shape):
    """You rounded an uneven block. JAX requires equal blocks on all devices and refuses such a sharding."""
    local = list(shape)
    for dim, entry in enumerate(spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        local[dim] //= math.prod(mesh_shape[axis] for axis in axes)
    return tuple(local)


@exercise.misconception(of=local_load_time)
def load_cut_by_z(chip, I, J, X, Y, Z):
    """You divided by Z too. The spec does not name z, so along z every chip holds a copy of the block."""
    return hbm_time(4 * I * J / (X * Y * Z), chip)


@exercise.misconception(of=local_load_time)
def load_cut_by_x_only(chip, I, J, X, Y, Z):
    """You divided by X only. Both axes of I_XY cut the rows."""
    return hbm_time(4 * I * J / X, chip)


@exercise.misconception(of=local_load_time)
def load_two_bytes(chip, I, J, X, Y, Z):
    """You counted 2 bytes a number. The array is float32: 4 bytes."""
    return hbm_time(2 * I * J / (X * Y), chip)


exercise.scenario(
    local_load_time,
    lambda chip, I, J, X, Y, Z: Scenario(
        chip=chip, mesh={"x": X, "y": Y, "z": Z}, arrays=[((I, J), P(("x", "y")))], holds=4 * I * J / (X * Y)
    ),
)
