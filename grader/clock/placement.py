"""Place a mesh on a slice of chips: choose whole axes of the torus for each mesh axis, and find the resulting rings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from grader.hardware import HOP_TIME, Chip, slice_problem, wraps
from grader.hardware.chips import tpu
from grader.hardware.cores import CORES, core_row

PS = 1e12  # picoseconds per second


def picoseconds(seconds: float) -> int:
    return round(seconds * PS)


@dataclass(frozen=True)
class Slice:
    """Chips that form one torus or grid.

    Attributes:
        chip: the chip's row in the hardware table. If a chip has several devices, this is the row of one device.
        shape: the number of chips along each axis.
        cores: devices per chip. Several devices of a chip form one more axis of the grid.
    """

    chip: Chip
    shape: tuple[int, ...]
    cores: int = 1

    @classmethod
    def of(cls, text: str) -> Slice:
        """Return the slice that a text such as ``v5e:2x4`` names. Raises ValueError (one line) if none exists."""
        name, colon, sizes = text.partition(":")
        chip = tpu(name)
        parts = sizes.split("x")
        if not colon or not all(p.isascii() and p.isdecimal() and 0 < int(p) < 1 << 20 for p in parts):
            raise ValueError(f'{text!r} is not a slice; write a chip and the sizes of its axes, such as "v5e:2x4"')
        shape = tuple(map(int, parts))
        if problem := slice_problem(chip, shape=shape):
            raise ValueError(problem)
        return cls(chip, shape)

    def __str__(self) -> str:
        return f"{self.chip.name}:{'x'.join(map(str, self.shape))}"

    @property
    def count(self) -> int:
        return math.prod(self.sides)

    @property
    def sides(self) -> tuple[int, ...]:
        return self.shape if self.cores == 1 else (*self.shape, self.cores)

    def wraps(self, side: int) -> bool:
        return side < len(self.shape) and wraps(self.chip, self.shape[side], self.shape)

    def by_device(self) -> Slice:
        """Return the slice as a grid of JAX devices. On some chips, each of the two cores is a JAX device."""
        core = CORES.get(self.chip.name)
        if core is None or core.devices == self.cores:
            return self
        return Slice(core_row(self.chip), self.shape, core.devices)

    def links(self, sides: Sequence[int]) -> Chip:
        """Return the row of the hardware table for the slowest links along these axes (``sides``) of the slice."""
        if self.cores > 1 and set(sides) == {len(self.shape)}:
            return replace(self.chip, ici=CORES[self.chip.name].between)
        return self.chip


@dataclass(frozen=True)
class Side:
    """One axis of a slice: its number of devices, whether it is a ring, and its links' row in the hardware table."""

    size: int
    ring: bool
    chip: Chip

    @property
    def rate(self) -> float:
        """Bytes/s that one device receives along this axis: over two links on a ring, over one link at a line's end."""
        return self.chip.ici * (2 if self.ring else 1)


@dataclass(frozen=True)
class Way:
    """A mesh axis and the links that join its devices into a ring or a line.

    If the mesh axis covers several axes of the slice, its devices follow a cycle that visits every chip once. Such a
    cycle exists in any grid of two or more axes with an even number of chips.
    """

    size: int
    ring: bool
    torus: tuple[Side, ...]  # the axes of the slice that carry this mesh axis
    chip: Chip  # the chip whose row in the hardware table describes the links between the devices


@dataclass(frozen=True)
class Placement:
    """The placement of a mesh's devices on the chips of a slice.

    Attributes:
        axes: for each mesh axis of more than one device, the indices (0, 1, ...) of the slice's axes that the mesh axis
            covers. If a chip has several devices, the devices of a chip form the slice's last axis.
        hop: seconds of latency of one hop (one link of a route).
    """

    slice: Slice
    mesh: dict[str, int]
    axes: dict[str, tuple[int, ...]]
    hop: float = HOP_TIME

    @cached_property
    def ways(self) -> dict[str, Way]:
        return {axis: self._way(places) for axis, places in self.axes.items()}

    def _way(self, places: tuple[int, ...]) -> Way:
        on = self.slice
        torus = tuple(Side(on.sides[i], on.wraps(i), on.links([i])) for i in places)
        ring = len(torus) > 1 or all(side.ring for side in torus)
        return Way(math.prod(side.size for side in torus), ring, torus, on.links(places))

    def links(self, axes: Sequence[str]) -> Chip:
        """Return the hardware table's row of the slowest links that these mesh axes use."""
        return min((self.ways[axis].chip for axis in axes), key=lambda row: row.ici, default=self.slice.chip)

    @cached_property
    def chips(self) -> list[tuple[int, ...]]:
        """The coordinates in the slice of each device's chip, in mesh order.

        If a chip has several devices, the last coordinate is the device's index within the chip.
        """
        ordered = {axis: _cycle([self.slice.sides[i] for i in places]) for axis, places in self.axes.items()}
        found = []
        for point in itertools.product(*(range(n) for n in self.mesh.values())):
            at = [0] * len(self.slice.sides)
            for n, axis in zip(point, self.mesh, strict=True):
                for i, where in zip(self.axes.get(axis, ()), ordered.get(axis, [()])[n], strict=True):
                    at[i] = where
            found.append(tuple(at))
        return found


def _cycle(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Return every point of a grid once, each point next to the previous point.

    If the grid has two or more dimensions, and one of their sizes is even, the last point is next to the first point.
    """
    *rest, last = shape
    line = [(n,) for n in range(last)]
    if not rest:
        return line
    path = _path(rest)
    if last % 2 == 0:
        return [there + here for here, there in _around(line, path)]
    if len(path) % 2 == 0:
        return [there + here for there, here in _around(path, line)]
    return _path(shape)


Points = list[tuple[int, ...]]


def _around(even: Points, other: Points) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return a cycle through the grid of all pairs (point of ``even``, point of ``other``).

    The cycle visits the pairs with ``other[0]``, then returns in a zigzag through all other pairs. ``even`` has an even
    number of points.
    """
    found = [(point, other[0]) for point in even]
    for k, point in enumerate(reversed(even)):
        found += [(point, there) for there in (other[1:] if k % 2 == 0 else other[:0:-1])]
    return found


def _path(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Return every point of a grid once, each point next to the previous point."""
    found: list[tuple[int, ...]] = [()]
    for n in shape:
        found = [(*at, i) for k, at in enumerate(found) for i in (range(n) if k % 2 == 0 else reversed(range(n)))]
    return found


def placed(on: str | Slice, mesh: Mapping[str, int], axes: Mapping[str, Sequence[int]] | None = None) -> Placement:
    """Place a mesh on a slice: each mesh axis on one or more whole axes of the slice.

    Args:
        on: the slice, or its text "v5e:2x4".
        mesh: axis sizes. Their product is the number of chips of the slice, or of devices if a chip has two.
        axes: for each mesh axis, the indices (0, 1, ...) of the slice's axes that the mesh axis covers. If None,
            ``placed`` tries choices until the whole mesh fits. For each mesh axis, it prefers few axes, and axes with
            small indices.

    Raises ValueError (one line) if the mesh does not fit on whole axes of the slice, or not on the given ``axes``.
    """
    chips = Slice.of(on) if isinstance(on, str) else on
    real = {axis: size for axis, size in mesh.items() if size > 1}
    if math.prod(real.values()) == chips.by_device().count:
        chips = chips.by_device()
    free = [i for i, n in enumerate(chips.sides) if n > 1]
    shown = "(" + ", ".join(f"{axis}={size}" for axis, size in mesh.items()) + ")"
    if (count := math.prod(real.values())) != chips.count:
        devices = "device" if count == 1 else "devices"
        raise ValueError(f"the mesh {shown} has {count} {devices}, but {chips} has {chips.count}")
    if axes is not None:
        chosen = {axis: tuple(axes.get(axis, ())) for axis in real}
        if not _fits(chosen, real, chips, free):
            raise ValueError(
                f"the mesh {shown} does not fit on {chips} with axes={dict(axes)!r}; give other axes, or leave axes out"
            )
        return Placement(chips, dict(mesh), chosen)
    for chosen in _choices(list(real.items()), chips, free):
        return Placement(chips, dict(mesh), chosen)
    raise ValueError(
        f"the mesh {shown} does not fit on {chips}: each mesh axis must fill one or more whole axes of the slice"
    )


def _fits(chosen: Mapping[str, tuple[int, ...]], mesh: Mapping[str, int], chips: Slice, free: Sequence[int]) -> bool:
    used = [i for places in chosen.values() for i in places]
    return sorted(used) == sorted(free) and all(
        math.prod(chips.sides[i] for i in places) == mesh[axis] for axis, places in chosen.items()
    )


def _choices(left: list[tuple[str, int]], chips: Slice, free: Sequence[int]) -> Iterator[dict[str, tuple[int, ...]]]:
    if not left:
        yield {}
        return
    (axis, size), *rest = left
    for count in range(1, len(free) + 1):
        for places in itertools.combinations(free, count):
            if math.prod(chips.sides[i] for i in places) == size:
                remaining = [i for i in free if i not in places]
                for others in _choices(rest, chips, remaining):
                    yield {axis: places} | others
