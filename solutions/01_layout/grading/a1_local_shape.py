"""Misconceptions of A1."""

import math

from jax.sharding import PartitionSpec as P

from a1_local_shape import (
    exercise,
    local_load_time,
    local_shape,
    local_shape_axes,
    local_shape_tuples,
    local_shape_uneven,
)
from grader.exercise import Scenario
from grader.hardware import hbm_time


@exercise.misconception(
    fails=[local_shape_axes, local_shape_tuples], breaks="an axis cuts only the dimension whose entry names it"
)
def local_shape_by_every_axis(shape, spec, mesh_shape):
    """You divided by every axis of the mesh. Only the axes in the entry of a dimension cut this dimension. Along the other axes devices hold copies."""
    devices = math.prod(mesh_shape.values())
    local = list(shape)
    for dim, entry in enumerate(spec):
        if entry is not None and shape[dim] % devices:
            raise ValueError("uneven")
        local[dim] = shape[dim] if entry is None else shape[dim] // devices
    return tuple(local)


@exercise.misconception(fails=local_shape_tuples, breaks="every axis of a tuple cuts the tuple's dimension")
def local_shape_by_first_of_tuple(shape, spec, mesh_shape):
    """You divided by the first axis of a tuple only. Every axis of the tuple cuts the dimension."""
    firsts = [entry if entry is None or isinstance(entry, str) else entry[0] for entry in spec]
    return local_shape(shape, firsts, mesh_shape)


@exercise.misconception(
    fails=[local_shape_axes, local_shape_tuples], breaks="The spec may have fewer entries than the array has dimensions"
)
def local_shape_of_entries(shape, spec, mesh_shape):
    """Your block has as many dimensions as the spec has entries. Dimensions without an entry stay whole."""
    return local_shape(shape, spec, mesh_shape)[: len(spec)]


@exercise.misconception(fails=local_shape_axes, breaks="The sizes of the block are ints")
def local_shape_in_floats(shape, spec, mesh_shape):
    """You divided with /, which gives floats. Use //: the sizes of a block are ints."""
    return tuple(float(size) for size in local_shape(shape, spec, mesh_shape))


@exercise.misconception(fails=local_shape_axes, breaks="Axes may have any names")
def local_shape_by_letters(shape, spec, mesh_shape):
    """You went through the letters of an axis name. An entry that is a str names one axis: make it a tuple first."""
    return local_shape(shape, [entry and tuple(entry) for entry in spec], mesh_shape)


@exercise.misconception(fails=local_shape_uneven, breaks="`ValueError` when a dimension does not divide evenly")
def local_shape_rounded(shape, spec, mesh_shape):
    """You rounded the size of an uneven block. JAX requires equal blocks on all devices and refuses such a sharding."""
    local = list(shape)
    for dim, entry in enumerate(spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        local[dim] //= math.prod(mesh_shape[axis] for axis in axes)
    return tuple(local)


@exercise.misconception(form_of=local_shape_rounded, breaks="`ValueError` when a dimension does not divide evenly")
def local_shape_rounded_up(shape, spec, mesh_shape):
    """Like `local_shape_rounded`, but this program rounds up."""
    local = list(shape)
    for dim, entry in enumerate(spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        local[dim] = -(-local[dim] // math.prod(mesh_shape[axis] for axis in axes))
    return tuple(local)


@exercise.misconception(
    fails=[local_shape_tuples, local_shape_uneven], breaks="every axis of a tuple cuts the tuple's dimension"
)
def local_shape_by_sum(shape, spec, mesh_shape):
    """You added the sizes of a tuple's axes. Each axis cuts the parts of the axis before it: multiply the sizes."""
    local = list(shape)
    for dim, entry in enumerate(spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        parts = sum(mesh_shape[axis] for axis in axes) or 1
        if shape[dim] % parts:
            raise ValueError("uneven")
        local[dim] = shape[dim] // parts
    return tuple(local)


@exercise.misconception(
    fails=[local_shape_axes, local_shape_tuples], breaks="an axis cuts only the dimension whose entry names it"
)
def local_shape_by_position(shape, spec, mesh_shape):
    """You divided by the axes in the order of the mesh. An entry of the spec names the axes that cut its dimension."""
    local = list(shape)
    for dim, (entry, size) in enumerate(zip(spec, mesh_shape.values(), strict=False)):
        if entry is not None and shape[dim] % size:
            raise ValueError("uneven")
        local[dim] = shape[dim] if entry is None else shape[dim] // size
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
