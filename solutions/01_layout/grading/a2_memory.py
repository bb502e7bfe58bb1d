"""Misconceptions of A2."""

import math

import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from a2_memory import (
    exercise,
    memory,
    memory_copies,
    memory_dtypes,
    memory_spread,
    named_axes,
    placed_and_unplaced,
    weights_in_all,
)
from grader.exercise import Scenario


@exercise.misconception(
    fails=memory_copies, breaks="an axis that the spec does not name makes copies, and the total counts every copy"
)
def memory_one_copy(shape, dtype, spec, mesh_shape):
    """Your total counts one copy of the array. Devices along an axis that the spec does not name hold copies: count each copy."""
    whole = math.prod(shape) * jnp.dtype(dtype).itemsize
    return whole // math.prod(mesh_shape[axis] for axis in named_axes(spec)), whole


@exercise.misconception(fails=memory_copies, breaks="total = per device · devices")
def memory_shared_by_all(shape, dtype, spec, mesh_shape):
    """You divided by the number of all devices. Only the axes that the spec names cut the array."""
    whole = math.prod(shape) * jnp.dtype(dtype).itemsize
    return whole // math.prod(mesh_shape.values()), whole


@exercise.misconception(
    fails=[memory_spread, memory_dtypes, memory_copies], breaks="a float32 array that every axis of the mesh cuts"
)
def memory_cut_by_rows_only(shape, dtype, spec, mesh_shape):
    """You divided by the axes of the first entry only. Every entry of the spec cuts its dimension."""
    return memory(shape, dtype, spec[:1], mesh_shape)


@exercise.misconception(fails=memory_dtypes, breaks="other dtypes take fewer bytes")
def memory_four_bytes(shape, dtype, spec, mesh_shape):
    """You counted 4 bytes for every dtype. A bfloat16 has 2 bytes, an int8 has 1 byte."""
    per_device = 4 * math.prod(shape) // math.prod(mesh_shape[axis] for axis in named_axes(spec))
    return per_device, per_device * math.prod(mesh_shape.values())


@exercise.misconception(
    fails=[memory_spread, memory_dtypes, memory_copies], breaks="bfloat16: 2 bytes for each element, int8: 1 byte"
)
def memory_in_bits(shape, dtype, spec, mesh_shape):
    """You counted bits. A byte has 8 bits."""
    per_device, total = memory(shape, dtype, spec, mesh_shape)
    return 8 * per_device, 8 * total


@exercise.misconception(
    fails=[memory_spread, memory_dtypes, memory_copies], breaks="a float32 array that every axis of the mesh cuts"
)
def memory_by_first_of_tuple(shape, dtype, spec, mesh_shape):
    """You divided by the first axis of a tuple only. Every axis of the tuple cuts the dimension."""
    return memory(shape, dtype, [e if e is None or isinstance(e, str) else e[0] for e in spec], mesh_shape)


@exercise.misconception(of=weights_in_all)
def weights_one_copy(I, J, X, Y, Z):
    """You counted one copy. The spec does not name y and z, so the mesh holds Y·Z copies."""
    return 2 * I * J


@exercise.misconception(of=weights_in_all)
def weights_elements(I, J, X, Y, Z):
    """You counted numbers, not bytes. A bfloat16 takes 2 bytes."""
    return I * J * Y * Z


@exercise.misconception(of=weights_in_all)
def weights_on_every_chip(I, J, X, Y, Z):
    """You counted a whole copy on every chip. x cuts the rows, so a chip holds 1/X of the rows."""
    return 2 * I * J * X * Y * Z


@exercise.misconception(of=weights_in_all)
def weights_copied_by_x(I, J, X, Y, Z):
    """You counted X copies. The spec names x, so x cuts the array. The axes that the spec does not name make copies."""
    return 2 * I * J * X


@exercise.misconception(of=weights_in_all)
def weights_copied_along_z(I, J, X, Y, Z):
    """You counted the copies along z only. The spec does not name y either, so chips along y hold copies too."""
    return 2 * I * J * Z


exercise.scenario(
    weights_in_all,
    lambda I, J, X, Y, Z: Scenario(mesh={"x": X, "y": Y, "z": Z}, arrays=[((I, J), P("x"))]),
)


@exercise.misconception(of=placed_and_unplaced)
def unplaced_on_every_chip(I, J, X, Y):
    """You counted `a` as replicated. JAX keeps an array without a sharding on one chip. Only `P()` on a mesh copies it to every chip."""
    return 2 * I * J * 2 * X * Y


@exercise.misconception(of=placed_and_unplaced)
def replicated_once(I, J, X, Y):
    """You counted `b` once. `P()` names no axis, so every chip of the mesh holds all of `b`."""
    return 2 * I * J * 2


@exercise.misconception(of=placed_and_unplaced)
def placed_only(I, J, X, Y):
    """You left out `a`. One chip holds it, so add one copy."""
    return 2 * I * J * X * Y


@exercise.misconception(of=placed_and_unplaced)
def placed_in_float32(I, J, X, Y):
    """You counted 4 bytes a number. A bfloat16 takes 2 bytes."""
    return 4 * I * J * (1 + X * Y)


@exercise.misconception(of=placed_and_unplaced)
def placed_in_numbers(I, J, X, Y):
    """You counted numbers, not bytes. A bfloat16 takes 2 bytes."""
    return I * J * (1 + X * Y)


exercise.scenario(placed_and_unplaced, lambda I, J, X, Y: Scenario(mesh={"x": X, "y": Y}, arrays=[((I, J), P())]))
