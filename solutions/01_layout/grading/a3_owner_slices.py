"""Misconceptions of A3."""

import math

import numpy as np
from jax.sharding import PartitionSpec as P

from a3_owner_slices import (
    exercise,
    first_row,
    owner_axes,
    owner_copies,
    owner_order,
    owner_slices,
    owner_tuples,
    reorder_bytes,
)
from grader.exercise import Scenario


@exercise.misconception(
    fails=owner_order, breaks="a tuple that lists axes in a different order gives a different layout"
)
def owner_in_mesh_order(shape, spec, mesh_shape):
    """You used the mesh's order of axes. P(('y', 'x')) lists y first, so y changes slowest. You returned the blocks of P(('x', 'y')), and many devices hold different blocks."""
    in_order = [e if e is None or isinstance(e, str) else tuple(a for a in mesh_shape if a in e) for e in spec]
    return owner_slices(shape, in_order, mesh_shape)


@exercise.misconception(
    fails=owner_tuples,
    breaks=["a tuple that lists axes in the order of the mesh", "the coordinate of the first axis changes slowest"],
)
def owner_minor_first(shape, spec, mesh_shape):
    """You let the first axis of a tuple change fastest. The first axis is the major axis and changes slowest: neighbours along it hold blocks that are far apart."""
    backwards = [e if e is None or isinstance(e, str) else e[::-1] for e in spec]
    return owner_slices(shape, backwards, mesh_shape)


@exercise.misconception(fails=[owner_axes, owner_tuples], breaks="Devices are numbered row by row")
def owner_columns_first(shape, spec, mesh_shape):
    """You numbered the devices so that the first axis of the mesh changes fastest. In JAX the last axis changes fastest, as in NumPy."""
    right = owner_slices(shape, spec, mesh_shape)
    by_column = np.arange(len(right)).reshape(list(mesh_shape.values())).ravel("F").tolist()
    return {device: right[by_column[device]] for device in right}


@exercise.misconception(fails=[owner_axes, owner_order], breaks="one axis per dimension")
def owner_dealt_round(shape, spec, mesh_shape):
    """You assigned the blocks by device number. A device's coordinates on the axes of the entry determine its block."""
    whole = [slice(0, size) for size in shape]
    owned = {device: list(whole) for device in range(math.prod(mesh_shape.values()))}
    for dim, entry in enumerate(spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        parts = math.prod(mesh_shape[axis] for axis in axes)
        for device, slices in owned.items():
            step, block = shape[dim] // parts, device % parts
            slices[dim] = slice(block * step, (block + 1) * step)
    return {device: tuple(slices) for device, slices in owned.items()}


@exercise.misconception(fails=[owner_axes, owner_tuples], breaks="one axis per dimension")
def owner_stop_included(shape, spec, mesh_shape):
    """Your slices end at the last row of a block. The stop of a slice is the row after the last one."""
    return {
        device: tuple(slice(s.start, s.stop - 1) for s in slices)
        for device, slices in owner_slices(shape, spec, mesh_shape).items()
    }


@exercise.misconception(fails=owner_copies, breaks=["copies along the axes", "a start and a stop, also"])
def owner_without_numbers(shape, spec, mesh_shape):
    """You returned slice(None) for a dimension that no axis cuts. Return slice(0, size): the task asks for both bounds."""
    cut = [slice(0, size) for size in shape]
    return {
        device: tuple(slice(None) if s == whole else s for s, whole in zip(slices, cut, strict=True))
        for device, slices in owner_slices(shape, spec, mesh_shape).items()
    }


@exercise.misconception(fails=owner_copies, breaks="one for each dimension")
def owner_of_the_entries_alone(shape, spec, mesh_shape):
    """Your tuples have a slice for each entry of the spec. The spec may have fewer entries than the array has dimensions: return a slice for every dimension."""
    return {device: slices[: len(spec)] for device, slices in owner_slices(shape, spec, mesh_shape).items()}


@exercise.misconception(of=first_row)
def first_row_x_major(I, X, Y, device):
    """Your answer is the row for P(("x", "y")). Here y comes first in the tuple, so y changes slowest."""
    return device * I / (X * Y)


@exercise.misconception(of=first_row)
def first_row_as_block(I, X, Y, device):
    """You gave the number of the block. For its first row, multiply this number by the rows of a block, I / (X · Y)."""
    return device % Y * X + device // Y


@exercise.misconception(of=first_row)
def first_row_of_group(I, X, Y, device):
    """You found the first row that the devices with this y hold together. x divides these rows further: add the offset of this device's x."""
    return device % Y * I / Y


@exercise.misconception(of=reorder_bytes)
def reorder_everything(I, J, X, Y):
    """You let every device send its block. A device with x·Y + y = y·X + x keeps its block. The first and the last device are examples."""
    return 4 * I * J


@exercise.misconception(of=reorder_bytes)
def reorder_one_stays(I, J, X, Y):
    """You let only one device keep its block. At least two devices keep their block: the first and the last."""
    return 4 * I * J * (1 - 1 / (X * Y))


@exercise.misconception(of=reorder_bytes)
def reorder_of_one_device(I, J, X, Y):
    """You counted what one device sends. The question asks for all devices together."""
    return 4 * I * J / (X * Y)


@exercise.misconception(of=reorder_bytes)
def reorder_elements(I, J, X, Y):
    """You counted numbers, not bytes. A float32 takes 4 bytes."""
    return I * J * (1 - (1 + math.gcd(X - 1, Y - 1)) / (X * Y))


exercise.scenario(
    first_row,
    lambda I, X, Y, device: Scenario(mesh={"x": X, "y": Y}, arrays=[((I,), P(("y", "x")))], most=I - I / (X * Y)),
)
exercise.scenario(reorder_bytes, lambda I, J, X, Y: Scenario(mesh={"x": X, "y": Y}, arrays=[((I, J), P(("x", "y")))]))
