"""A mesh of simulated devices, for the process that traces and for the one that runs."""

from __future__ import annotations

import math
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType

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
