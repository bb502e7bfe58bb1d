"""Describe wrong values in terms of sharding, to suggest the cause of a check's failure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from grader.common.layout import Slices, coordinates, show_device
from grader.common.observation import Sharded
from grader.wire.frames import wide

ROUNDED = 2**-5
"""Largest error of values that are rounded to bfloat16, as a fraction of the largest value."""


def explain(got: Sharded, want: np.ndarray, bound: float) -> str:
    """Describe wrong values, for example as ``; every value is 4 times the expected one``.

    Return '' if no description fits. The text reveals no expected value, only relations between the actual and the
    expected values.

    Args:
        want: the expected values, as float64 or complex128, in the result's shape.
        bound: the largest absolute difference between values that count as equal.
    """
    with np.errstate(all="ignore"):
        for guess in GUESSES:
            if explanation := guess(got, want, bound):
                return f"; {explanation}"
    return ""


def _not_finite(got: Sharded, want: np.ndarray, bound: float) -> str:
    return "there are NaN or infinite values" if not all(np.isfinite(wide(s)).all() for s in got.shards) else ""


def _zero(got: Sharded, want: np.ndarray, bound: float) -> str:
    return "every value is zero" if not any(wide(s).any() for s in got.shards) else ""


def _scaled(got: Sharded, want: np.ndarray, bound: float) -> str:
    """Detect a constant factor between actual and expected values, for example because a mean replaced a sum."""
    weight = float(np.vdot(want, want).real)
    ratio = np.vdot(want, wide(got.value)) / weight if weight else 0.0
    if abs(ratio.imag) > 1e-3 * abs(ratio) or abs(ratio) < 1e-6 or abs(ratio - 1) < 1e-3:
        return ""
    ratio = float(ratio.real)
    scaled = (_close(shard, ratio * part, bound * (abs(ratio) + 1)) for shard, part in _parts(got, want))
    if not all(scaled):
        return ""
    for size, sets in _axes_by_size(got).items():
        named = f"{size} times {{}}, and {size} is the size of {_either([_axes(axes) for axes in sets])}"
        if abs(ratio - size) < 1e-3 * size:
            return f"every value is {named.format('too large')}: is there one sum too many?"
        if abs(ratio * size - 1) < 1e-3:
            return f"every value is {named.format('too small')}: did you take a mean instead of a sum?"
    return f"every value is {ratio:.4g} times the expected one" if want.size > 1 else ""


def _conjugate(got: Sharded, want: np.ndarray, bound: float) -> str:
    """Detect an imaginary part with the wrong sign on every device."""
    if want.dtype.kind != "c" or not all(_close(shard, part.conj(), bound) for shard, part in _parts(got, want)):
        return ""
    return "the result is the complex conjugate of the expected one"


def _rounded(got: Sharded, want: np.ndarray, bound: float) -> str:
    """Detect float32 values that are rounded to bfloat16."""
    coarse = ROUNDED * float(np.max(np.abs(want), initial=0.0))
    if got.dtype.name != "float32" or not all(_close(shard, part, coarse) for shard, part in _parts(got, want)):
        return ""
    if not all((shard.astype(ml_dtypes.bfloat16).astype(shard.dtype) == shard).all() for shard in got.shards):
        return ""
    return "every value has the precision of bfloat16: is there a conversion to bfloat16?"


def _axes_by_size(got: Sharded) -> dict[int, list[tuple[str, ...]]]:
    """Return all sets of mesh axes, by the product of the axes' sizes. Axes of size 1 are left out."""
    real = [a for a, n in got.mesh.items() if n > 1]
    found: dict[int, list[tuple[str, ...]]] = {}
    for count in range(1, len(real) + 1):
        for axes in itertools.combinations(real, count):
            found.setdefault(math.prod(got.mesh[a] for a in axes), []).append(axes)
    return found


def _axes(axes: tuple[str, ...]) -> str:
    return f"axis {axes[0]}" if len(axes) == 1 else f"the axes {' and '.join(axes)} together"


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"either {', '.join(names[:-1])} or {names[-1]}"


# -- devices that should hold equal values -----------------------------------------------------


def _replicas_differ(got: Sharded, want: np.ndarray, bound: float) -> str:
    """Detect devices that should hold copies of one slice but hold different values."""
    first: dict[Slices, int] = {}
    for i, (where, shard) in enumerate(zip(got.slices, got.shards, strict=True)):
        j = first.setdefault(where, i)
        if j != i and not _close(shard, wide(got.shards[j]), 2 * bound):
            return _of_replicas(got, want, j, i, bound)
    return ""


def _of_replicas(got: Sharded, want: np.ndarray, j: int, i: int, bound: float) -> str:
    """Describe the devices ``j`` and ``i``, which should hold copies of one slice but hold different values."""
    points, part = coordinates(got.mesh), want[_index(got.slices[i])]
    axes = tuple(a for a in got.mesh if points[i][a] != points[j][a])
    right = [k for k in (j, i) if _close(got.shards[k], part, bound)]
    if len(right) == 1:
        good, bad = (j, i) if right == [j] else (i, j)
        held = _misplaced(got, bad, part, bound) or "other values"
        return (
            f"device {show_device(points[good])} holds the right values, but device {show_device(points[bad])}, "
            f"which should hold the same values, holds {held}"
        )
    if len(axes) == 1 and _adds_up(got, want, axes[0], 4 * bound):
        return f"each device holds only a partial sum: the sum of the devices' values over axis {axes[0]} is the result"
    for k in (j, i):
        if held := _misplaced(got, k, part, bound):
            return f"device {show_device(points[k])} holds {held}"
    return (
        f"devices {show_device(points[j])} and {show_device(points[i])} should hold the same values but differ: "
        f"their values depend on the device's place along {_axes(axes)}"
    )


def _adds_up(got: Sharded, want: np.ndarray, axis: str, bound: float) -> bool:
    """Return whether shards of devices along ``axis`` add up to the values that each of these devices should hold."""
    rows: dict[tuple[int, ...], list[int]] = {}
    for device, point in enumerate(coordinates(got.mesh)):
        rows.setdefault(tuple(i for a, i in point.items() if a != axis), []).append(device)
    return all(
        all(got.slices[k] == got.slices[row[0]] for k in row)
        and _close(
            np.sum([wide(got.shards[k]) for k in row], axis=0), want[_index(got.slices[row[0]])], bound * len(row)
        )
        for row in rows.values()
    )


def _misplaced(got: Sharded, device: int, part: np.ndarray, bound: float) -> str:
    """Describe a shard of zeros, or a shard with chunks that are zero or in the wrong order; '' for other shards."""
    shard, where = wide(got.shards[device]), got.slices[device]
    if not shard.any():
        return "only zeros"
    for dim, axis in itertools.product(range(shard.ndim), got.mesh):
        count = got.mesh[axis]
        if count > 1 and shard.shape[dim] % count == 0:
            chunks, due = np.split(shard, count, dim), np.split(part, count, dim)
            size, start = shard.shape[dim] // count, where[dim][0]
            places = [_range(dim, shard.ndim, start + k * size, start + (k + 1) * size) for k in range(count)]
            if found := _misplaced_chunks(chunks, due, places, bound):
                return found
    return ""


def _misplaced_chunks(chunks: list[np.ndarray], due: list[np.ndarray], places: list[str], bound: float) -> str:
    found = [[k for k, other in enumerate(due) if _close(chunk, other, bound)] for chunk in chunks]
    wrong = [k for k, at in enumerate(found) if k not in at]
    if wrong and sorted(found) == [[k] for k in range(len(chunks))]:
        held, belongs = places[found[wrong[0]][0]], places[wrong[0]]
        return f"the right chunks in the wrong order, such as {held} where {belongs} belong"
    if wrong and not any(chunks[k].any() for k in wrong):
        return f"zeros where {' and '.join(places[k] for k in wrong)} belong"
    return ""


# -- data in the wrong place -------------------------------------------------------------------


def _transposed(got: Sharded, want: np.ndarray, bound: float) -> str:
    value = wide(got.value)
    square = value.ndim == 2 and value.shape[0] == value.shape[1]
    return "the result is the transpose of the expected one" if square and _close(value.T, want, bound) else ""


def _moved(got: Sharded, want: np.ndarray, bound: float) -> str:
    """Detect a device that holds another device's shard, for example because axes are in the wrong order."""
    parts = {where: want[_index(where)] for where in dict.fromkeys(got.slices)}
    for point, where, shard in zip(coordinates(got.mesh), got.slices, got.shards, strict=True):
        if _close(shard, parts[where], bound) or not wide(shard).any():
            continue
        fits = [w for w, part in parts.items() if part.shape == shard.shape and _close(shard, part, bound)]
        if len(fits) == 1:
            held, due = _ranges(fits[0], where)
            due = due if parts[where].any() else "zeros"
            return f"device {show_device(point)} holds {held} of the expected result, where {due} belong"
    return ""


def _reordered(got: Sharded, want: np.ndarray, bound: float) -> str:
    """Detect a shard with its own chunks in the wrong order, or with zeros in place of some chunks."""
    for device, (point, (shard, part)) in enumerate(zip(coordinates(got.mesh), _parts(got, want), strict=True)):
        if not _close(shard, part, bound):
            held = _misplaced(got, device, part, bound)
            return f"device {show_device(point)} holds {held}" if held else ""
    return ""


def _ranges(held: Slices, due: Slices) -> tuple[str, str]:
    """Describe two parts of an array, such as "rows 16:32", without the dimensions in which they are equal."""
    dims = [d for d, pair in enumerate(zip(held, due, strict=True)) if pair[0] != pair[1]]
    ranges = [" and ".join(_range(d, len(where), *where[d]) for d in dims) for where in (held, due)]
    return ranges[0], ranges[1]


def _range(dim: int, ndim: int, start: int, stop: int) -> str:
    if dim > 1:
        return f"{start}:{stop} of dimension {dim}"
    return f"{'elements' if ndim == 1 else ('rows', 'columns')[dim]} {start}:{stop}"


# -- comparing ---------------------------------------------------------------------------------


def _parts(got: Sharded, want: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return for each device the shard that it holds and the values that it should hold."""
    return ((shard, want[_index(where)]) for where, shard in zip(got.slices, got.shards, strict=True))


def _index(where: Slices) -> tuple[slice, ...]:
    return tuple(slice(a, b) for a, b in where)


def _close(held: np.ndarray, due: np.ndarray, bound: float) -> bool:
    return bool(np.all(np.abs(wide(held) - due) <= bound))


GUESSES = (
    _not_finite, _zero, _scaled, _conjugate, _replicas_differ, _transposed, _moved, _reordered, _rounded,
)  # fmt: skip
