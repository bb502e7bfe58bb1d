"""A mesh of simulated devices, for the process that traces and for the one that runs."""

from __future__ import annotations

import math
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType


def make_mesh(sizes: dict[str, int], *, traced_only: bool = False) -> Any:
    """A mesh with Auto axes over the first simulated devices (``jax.make_mesh`` defaults to Explicit).

    ``traced_only``: where there are not as many, one without devices will do.
    """
    need = math.prod(sizes.values())
    devices = jax.devices()
    if len(devices) < need and traced_only:
        return AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    if len(devices) < need:
        raise RuntimeError(f"the mesh {sizes} needs {need} devices, there are {len(devices)}")
    auto = (AxisType.Auto,) * len(sizes)
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=auto, devices=devices[:need])
