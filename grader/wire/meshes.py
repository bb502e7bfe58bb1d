"""A mesh of devices, for the process that traces and for those that run."""

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
    """A mesh over the first simulated devices.

    Args:
        sizes: of its axes, in order.
        axis_types: of all axes, "auto" or "explicit" (as ``jax.make_mesh`` has them).
        traced_only: where there are not as many devices, a mesh without devices will do.
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
    """A mesh over real devices, whose axes lie along the links between them as far as they can.

    Args:
        devices: in JAX's order; the first ones that are enough are taken.
        sizes: of its axes, in order; none is more than there is.
    """
    need = devices[: math.prod(sizes.values())]
    try:
        placed = mesh_utils.create_device_mesh(tuple(sizes.values()), need, allow_split_physical_axes=True)
    except (AssertionError, NotImplementedError, ValueError):  # five of eight chips are no block of the torus
        placed = np.array(need).reshape(tuple(sizes.values()))
    return Mesh(placed, tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
