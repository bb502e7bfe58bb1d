"""Made-up observations, for tests of code that reads observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from grader.common.intervals import UNKNOWN, Interval
from grader.common.layout import owner_slices
from grader.common.observation import Collective, Fault, Observation, Outcome, Seen, Sharded
from grader.expect import Failure
from grader.judging.seen import Finding
from grader.wire.frames import dtype_of

MESH = {"x": 4, "y": 2}


def sharded(
    value: np.ndarray,
    spec: tuple = (),
    mesh: Mapping[str, int] = MESH,
    dtype: str = "float32",
    due: str | None = None,
    **more: Any,
) -> Sharded:
    """Return ``value`` laid out by ``spec``. ``due``: the required dtype; by default ``dtype``."""
    whole = value.astype(dtype_of(dtype))
    slices = owner_slices(whole.shape, spec, mesh)
    shards = [whole[tuple(slice(a, b) for a, b in where)].copy() for where in slices]
    return Sharded(whole.shape, whole.dtype, dict(mesh), slices, shards, due=dtype_of(due or dtype), **more)


def collective(kind: str, *axes: str, **more: Any) -> Collective:
    """Return a collective. ``count`` and ``sent`` are numbers, or None for an unknown number."""
    count, sent = (UNKNOWN if n is None else Interval.of(n) for n in (more.pop("count", 1), more.pop("sent", 64)))
    return Collective(kind, axes, more.pop("bytes", 64), sent, count, **more)


def finding(of: Observation | Sequence[Outcome] | Fault) -> Finding:
    match of:
        case Observation():
            return Finding(of)
        case Fault():
            return Finding(fault=of)
    return Finding(outcomes=of)


def held(found: Finding) -> Any:
    """Return the only attribute of a finding that is set: an observation, a list of outcomes, or a fault."""
    return found.observation or found.fault or list(found.outcomes)


def seen(*collectives: Collective, mesh: Mapping[str, int] = MESH, **more: Any) -> Seen:
    """Return a ``Seen``. ``flops`` and ``dot_flops`` may be numbers."""
    spent = {name: Interval.of(more.pop(name, 0)) for name in ("flops", "dot_flops")}
    return Seen(mesh=mesh, collectives=list(collectives), **spent, **more)


def reason(check: object, *args: object, **kwargs: object) -> str:
    """Call a check, assert that it fails, and return the reason of the failure."""
    with pytest.raises(Failure) as failure:
        check(*args, **kwargs)  # type: ignore[operator]
    return failure.value.reason
