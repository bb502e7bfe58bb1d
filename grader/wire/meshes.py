"""A mesh of simulated devices, for the process that traces and for the one that runs."""

from __future__ import annotations

import math
from typing import Any

import jax
from jax.sharding import AxisType

AXIS_TYPES = {"auto": AxisType.Auto, "explicit": AxisType.Explicit}


def make_mesh(sizes: dict[str, int], axis_types: str = "auto") -> Any:
    """A mesh over the first simulated devices. ``axis_types``: of all axes, "auto" or "explicit" (as ``jax.make_mesh`` has it)."""
    need = math.prod(sizes.values())
    devices = jax.devices()
    if len(devices) < need:
        raise RuntimeError(f"the mesh {sizes} needs {need} devices, there are {len(devices)}")
    types = (AXIS_TYPES[axis_types],) * len(sizes)
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=types, devices=devices[:need])
