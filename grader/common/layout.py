"""Arithmetic of PartitionSpecs in plain Python: which slice of an array each device holds.

A spec is any iterable with one entry per array dimension: ``None``, an axis name, or a tuple of axis names (major axis
first). Trailing dimensions may be left out, as in JAX. A mesh is an ordered mapping from axis name to size. Devices are
numbered in row-major order of their coordinates, as in ``jax.make_mesh`` on simulated devices. A dimension's size may
depend on the mesh (``AxisSize``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Mesh = Mapping[str, int]
Slices = tuple[tuple[int, int], ...]


def entries(spec: Iterable, ndim: int) -> tuple[tuple[str, ...], ...]:
    """Return one tuple of axis names for each of the ``ndim`` dimensions; () for a dimension that is not sharded.

    Raises ValueError if the spec is longer than ``ndim``.
    """
    named = tuple(() if e is None else (e,) if isinstance(e, str) else tuple(e) for e in spec)
    if len(named) > ndim:
        raise ValueError(f"the spec has more entries ({len(named)}) than the array has dimensions ({ndim})")
    return named + ((),) * (ndim - len(named))


def coordinates(mesh: Mesh) -> list[dict[str, int]]:
    """Return the coordinates of every device, in device order."""
    return [dict(zip(mesh, point, strict=True)) for point in itertools.product(*(range(n) for n in mesh.values()))]


def owner_slices(shape: tuple[int, ...], spec: Iterable, mesh: Mesh) -> list[Slices]:
    """Return for each device the half-open range ``(start, stop)`` that the device holds along every dimension.

    Raises ValueError if a dimension's size is not divisible by the product of the sizes of the axes that shard it.
    """
    names = entries(spec, len(shape))
    for size, axes in zip(shape, names, strict=True):
        parts = math.prod(mesh[a] for a in axes)
        if size % parts:
            raise ValueError(f"a dimension of {size} cannot be cut into {parts} equal parts")
    return [
        tuple(_range(size, axes, point, mesh) for size, axes in zip(shape, names, strict=True))
        for point in coordinates(mesh)
    ]


def _range(size: int, axes: tuple[str, ...], point: Mapping[str, int], mesh: Mesh) -> tuple[int, int]:
    index, parts = 0, 1
    for axis in axes:  # the first axis of a tuple is the major axis
        index = index * mesh[axis] + point[axis]
        parts *= mesh[axis]
    step = size // parts
    return index * step, (index + 1) * step


def spec_of(slices: list[Slices], shape: tuple[int, ...], mesh: Mesh) -> tuple | None:
    """Return the shortest spec with which each device holds its range in ``slices``; None if there is no such spec.

    The spec names no axis of size 1, because such an axis shards nothing.
    """
    axes = [a for a, n in mesh.items() if n > 1]
    chosen: list[tuple[str, ...]] = []
    for dim, size in enumerate(shape):
        wanted = [device[dim] for device in slices]
        found = _axes_of(wanted, size, axes, mesh)
        if found is None:
            return None
        chosen.append(found)
    while chosen and not chosen[-1]:
        chosen.pop()
    return tuple(None if not a else a[0] if len(a) == 1 else a for a in chosen)


def _axes_of(wanted: list, size: int, axes: list[str], mesh: Mesh) -> tuple[str, ...] | None:
    points = coordinates(mesh)
    for count in range(len(axes) + 1):
        for order in itertools.permutations(axes, count):
            if size % math.prod(mesh[a] for a in order):
                continue
            if [_range(size, order, p, mesh) for p in points] == wanted:
                return order
    return None


def show_spec(spec: Iterable | None) -> str:
    """Return the spec as a learner writes it: ``P('x', None)``."""
    if spec is None:
        return "no PartitionSpec"
    axes = sorted(getattr(spec, "unreduced", ()))
    shown = [repr(e) for e in (getattr(spec, "partitions", ()) if axes else spec)]
    if axes:
        shown.append("unreduced={" + ", ".join(map(repr, axes)) + "}")
    return "P(" + ", ".join(shown) + ")"


def show_device(point: Mapping[str, int]) -> str:
    """Return a device's coordinates, or a mesh's sizes, as text: ``(x=1, y=0)``."""
    return f"({show_sizes(point)})"


def show_sizes(sizes: Mapping[str, int]) -> str:
    """Return the sizes as ``x=4, y=2``."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


# -- sizes that depend on the mesh -------------------------------------------------------------------


@dataclass(frozen=True)
class AxisSize:
    """A multiple of the product of some axes' sizes: ``4 * axis("x") * axis("y")`` is ``AxisSize(("x", "y"), 4)``."""

    axes: tuple[str, ...]
    times: int = 1

    def __mul__(self, other: object) -> AxisSize:
        if isinstance(other, AxisSize):
            return AxisSize(tuple(sorted(self.axes + other.axes)), self.times * other.times)
        if isinstance(other, int) and not isinstance(other, bool):
            return AxisSize(self.axes, self.times * other)
        return NotImplemented

    __rmul__ = __mul__

    def __str__(self) -> str:
        factors = [] if self.times == 1 else [str(self.times)]
        return " * ".join([*factors, *(f"axis({axis!r})" for axis in self.axes)])

    def on(self, mesh: Mapping[str, int]) -> int:
        """Return the size on this mesh. Raises KeyError for an axis that the mesh lacks."""
        return self.times * math.prod(mesh[axis] for axis in self.axes)


Size = int | AxisSize


def sizes_on(mesh: Mapping[str, int], dims: Mapping[str, Size]) -> dict[str, int]:
    """Return the size of every dimension on this mesh. Raises KeyError for an axis that the mesh lacks."""
    return {name: size.on(mesh) if isinstance(size, AxisSize) else size for name, size in dims.items()}
