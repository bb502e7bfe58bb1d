"""Made-up observations for the tests of what reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.layout import owner_slices
from grader.observation import Collective, Seen, Sharded
from grader.wire import dtype_of

MESH = {"x": 4, "y": 2}


def sharded(
    value: np.ndarray,
    spec: tuple = (),
    mesh: Mapping[str, int] = MESH,
    dtype: str = "float32",
    due: str | None = None,
    **more: Any,
) -> Sharded:
    """``value`` laid out by ``spec``, as devices would hold it; ``due``: the dtype that was asked, its own unless given."""
    whole = value.astype(dtype_of(dtype))
    slices = owner_slices(whole.shape, spec, mesh)
    shards = [whole[tuple(slice(a, b) for a, b in where)].copy() for where in slices]
    return Sharded(whole.shape, whole.dtype, dict(mesh), slices, shards, due=dtype_of(due or dtype), **more)


def collective(kind: str, *axes: str, **more: Any) -> Collective:
    return Collective(kind, axes, more.pop("bytes", 64), more.pop("sent", 64), **more)


def seen(*collectives: Collective, mesh: Mapping[str, int] = MESH, **more: Any) -> Seen:
    return Seen(mesh=mesh, collectives=list(collectives), **more)
