"""Say what wrong values look like, in the field's words. Guesses only: nothing is judged here."""

from __future__ import annotations

import numpy as np

from grader.layout import coordinates, show_device
from grader.observation import Sharded


def explain(got: Sharded, want: np.ndarray, bound: float) -> str:
    """``; every value is 4 times the expected one ...`` or nothing.

    Tells no expected value: only relations between what was given and what was asked.
    """
    for guess in (_not_finite, _scaled, _replicas_differ, _transposed, _moved):
        if told := guess(got, want, bound):
            return f"; {told}"
    return ""


def _not_finite(got: Sharded, want: np.ndarray, bound: float) -> str:
    bad = sum(int(np.count_nonzero(~np.isfinite(s.astype(np.float64)))) for s in got.shards)
    return "there are NaN or infinite values" if bad else ""


def _scaled(got: Sharded, want: np.ndarray, bound: float) -> str:
    value = got.value.astype(np.float64)
    weight = float(np.vdot(want, want))
    ratio = float(np.vdot(want, value)) / weight if weight else 0.0
    if abs(ratio - 1) < 1e-3 or not np.all(np.abs(value - ratio * want) <= bound * (abs(ratio) + 1)):
        return ""
    if ratio == 0 or abs(ratio) < 1e-6:
        return "every value is zero"
    for axis, size in got.mesh.items():
        if size > 1 and abs(ratio - size) < 1e-3 * size:
            return f"every value is {size} times too large, the size of axis {axis}: is it summed once too often?"
        if size > 1 and abs(ratio * size - 1) < 1e-3:
            return f"every value is {size} times too small, the size of axis {axis}: a mean instead of a sum?"
    return f"every value is {ratio:.4g} times the expected one"


def _replicas_differ(got: Sharded, want: np.ndarray, bound: float) -> str:
    """Devices that claim to hold the same slice but hold other values."""
    points = coordinates(got.mesh)
    first: dict[tuple, int] = {}
    for i, (where, shard) in enumerate(zip(got.slices, got.shards, strict=True)):
        j = first.setdefault(where, i)
        if j == i or np.all(np.abs(shard.astype(np.float64) - got.shards[j].astype(np.float64)) <= 2 * bound):
            continue
        axis = next((a for a in got.mesh if points[i][a] != points[j][a]), "")
        copies = [s.astype(np.float64) for w, s in zip(got.slices, got.shards, strict=True) if w == where]
        part = want[tuple(slice(a, b) for a, b in where)]
        distinct = _sum_over(got, where, axis)
        if distinct is not None and np.all(np.abs(distinct - part) <= 4 * bound * len(copies)):
            return f"each device holds only a partial sum: together, over axis {axis}, they add up to the result"
        return (
            f"devices {show_device(points[j])} and {show_device(points[i])} should hold the same values "
            f"but differ: axis {axis} was never reduced or gathered"
        )
    return ""


def _sum_over(got: Sharded, where: tuple, axis: str) -> np.ndarray | None:
    """The sum over one fibre of ``axis`` of the shards that claim this slice."""
    if not axis:
        return None
    points = coordinates(got.mesh)
    rest = {a: 0 for a in got.mesh if a != axis}
    parts = [
        s.astype(np.float64)
        for p, w, s in zip(points, got.slices, got.shards, strict=True)
        if w == where and all(p[a] == i for a, i in rest.items())
    ]
    return sum(parts[1:], parts[0]) if len(parts) == got.mesh[axis] else None


def _transposed(got: Sharded, want: np.ndarray, bound: float) -> str:
    value = got.value.astype(np.float64)
    square = value.ndim == 2 and value.shape[0] == value.shape[1]
    return "it is the transpose" if square and np.all(np.abs(value.T - want) <= bound) else ""


def _moved(got: Sharded, want: np.ndarray, bound: float) -> str:
    """A shard that is right somewhere else: order of axes, direction of a shift, off by one."""
    points = coordinates(got.mesh)
    parts = {w: want[tuple(slice(a, b) for a, b in w)] for w in dict.fromkeys(got.slices)}
    if len(parts) < 2:
        return ""
    for point, where, shard in zip(points, got.slices, got.shards, strict=True):
        value = shard.astype(np.float64)
        if np.all(np.abs(value - parts[where]) <= bound):
            continue
        for other, part in parts.items():
            if part.shape == value.shape and np.all(np.abs(value - part) <= bound):
                at = next(i for i, pair in enumerate(zip(where, other, strict=True)) if pair[0] != pair[1])
                said = "rows" if at == 0 else "columns" if at == 1 else f"dimension {at}"
                (a, b), (c, d) = other[at], where[at]
                return f"device {show_device(point)} holds {said} {a}:{b}, expected {said} {c}:{d}"
    return ""
