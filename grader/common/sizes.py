"""Sizes of dimensions that depend on the mesh: axis sizes, products of axis sizes, and multiples of such products."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


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
