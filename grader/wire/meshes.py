"""Make meshes of devices, in the process that traces learner code and in the processes that run programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import AbstractMesh, AxisType, Mesh

AXIS_TYPES = {"auto": AxisType.Auto, "explicit": AxisType.Explicit}


def make_mesh(sizes: dict[str, int], axis_types: str = "auto", *, traced_only: bool = False) -> Any:
    """Return a mesh of simulated devices: the first devices in JAX's order.

    Args:
        sizes: axis sizes, in order.
        axis_types: type of all axes, "auto" or "explicit" (as in ``jax.make_mesh``).
        traced_only: if there are too few devices, True returns a mesh without devices, and False raises a RuntimeError.
    """
    types = (AXIS_TYPES[axis_types],) * len(sizes)
    need = math.prod(sizes.values())
    devices = jax.devices()
    if len(devices) < need and traced_only:
        return AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=types)
    if len(devices) < need:
        raise RuntimeError(f"the mesh {sizes} needs {need} devices, there are {len(devices)}")
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=types, devices=devices[:need])


def mesh_on(devices: Sequence[Any], sizes: dict[str, int]) -> Mesh:
    """Return a mesh over real devices, with its axes along the links between devices if possible.

    Args:
        devices: the real devices in JAX's order. The mesh uses only the first devices, as many as it needs.
        sizes: axis sizes, in order; their product is at most the number of devices.
    """
    need = devices[: math.prod(sizes.values())]
    try:
        placed = mesh_utils.create_device_mesh(tuple(sizes.values()), need, allow_split_physical_axes=True)
    except (AssertionError, NotImplementedError, ValueError):  # JAX cannot arrange, for example, five of eight chips
        placed = np.array(need).reshape(tuple(sizes.values()))
    return Mesh(placed, tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
