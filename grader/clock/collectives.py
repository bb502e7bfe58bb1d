"""Times of collectives on a slice, and the links that they use.

The bandwidth of links and the latency of hops each give a lower bound on a collective's time. The clock takes the
larger bound as the time. On one ring or line, the bound by bandwidth equals the "exact" model of
``grader.hardware.times``. For an all-gather, reduce-scatter or all-reduce, the bound also equals this model on several
axes of equal size, if all axes are rings or all axes are lines.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from grader.clock.placement import Placement, Side, Way, picoseconds
from grader.hardware import all_to_all_time, hops
from grader.wire.operations import Communication

ASYNCHRONOUS: dict[str, frozenset[str]] = {
    "ideal": frozenset(
        {"permute", "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "ragged_all_to_all", "broadcast"}
    ),
    "v3": frozenset(),
    "v4p": frozenset({"permute"}),
    "v5p": frozenset({"permute"}),
    "v6e": frozenset({"permute"}),
    "v5e": frozenset({"permute", "all_gather"}),
    "7x": frozenset({"permute", "all_gather", "reduce_scatter", "all_reduce"}),
}
"""For each profile, the kinds of collectives that overlap with compute.

The profile of a chip has the kinds that overlap in programs of the TPU compiler.
"""


class Untimed(Exception):
    """The clock cannot compute the times of a program. The message is one line for the program's author."""

    def __init__(self, message: str, file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.file, self.line = message, file, line


def moves(about: Communication) -> bool:
    """Return True if the collective sends data to another device."""
    if about.kind == "permute":
        return any(a != b for a, b in about.groups)
    return any(len(group) > 1 for group in about.groups)


def duration(about: Communication, place: Placement) -> tuple[int, tuple[str, ...]]:
    """Return (picoseconds of one run of a collective, links that the collective uses).

    The link "x+" leads to the next device on mesh axis x, and "x-" to the previous device.

    Raises Untimed if a group lacks some of the devices along the mesh axes over which the collective communicates.
    """
    if about.kind == "permute":
        return _permute(about, place)
    members = math.prod(place.mesh[axis] for axis in about.axes)
    if any(len(group) != members for group in about.groups):
        axes = " and ".join(about.axes)
        raise Untimed(
            f"the groups of this {about.kind} have only some of the devices along {axes}, so the clock cannot time it"
        )
    lanes = tuple(f"{axis}{sign}" for axis in about.axes for sign in "+-")
    torus = [side for name in about.axes for side in place.ways[name].torus]
    far = sum(hops(side.size, "ring" if side.ring else "line") for side in torus)
    seconds, times = _seconds(about, torus), 2 if about.kind == "all_reduce" else 1
    return max(picoseconds(times * seconds), picoseconds(times * far * place.hop)), lanes


def _seconds(about: Communication, torus: Sequence[Side]) -> float:
    """Return a collective's seconds if only the links' bandwidth counts; for an all-reduce, half of these seconds."""
    members = math.prod(side.size for side in torus)
    if about.kind in ("all_to_all", "ragged_all_to_all"):
        return all_to_all_seconds(about.bytes * members, torus)
    if about.kind == "broadcast":
        return max(about.bytes / capacity for _, capacity in _corners(torus))
    return gather_seconds(about.bytes * (members if about.kind == "all_gather" else 1), torus)


def gather_seconds(array: float, torus: Sequence[Side]) -> float:
    """Return a lower bound on the seconds of an all-gather or reduce-scatter of an array over a grid.

    In an all-gather, every corner of the grid (a block of devices, see ``_corners``) must receive all data that the
    corner does not hold. The slowest corner gives the bound. A reduce-scatter moves as much data in the opposite
    direction. ``tests/network.py`` simulates a method that reaches this bound: it splits the array into parts, and
    moves each part along the axes in a different order.

    ``array``: bytes of the whole array. ``torus``: the axes of the grid.
    """
    return max(array * (1 - 1 / n) / capacity for n, capacity in _corners(torus))


def _corners(torus: Sequence[Side]) -> Iterator[tuple[int, float]]:
    """Yield (n, rate) for each corner of the grid.

    A corner is a block with 1/n of the grid's devices. Along some axes, it has all positions. Along each other axis, it
    has only one position: if the axis is a line, the end of the line. The block's devices together receive at most
    ``rate`` bytes/s from other devices.
    """
    total = math.prod(side.size for side in torus)
    for count in range(1, len(torus) + 1):
        for cut in itertools.combinations(torus, count):
            n = math.prod(side.size for side in cut)
            yield n, total // n * sum(side.rate for side in cut)


def all_to_all_seconds(array: float, torus: Sequence[Side]) -> float:
    """Return the seconds of an all-to-all in which every chunk of data moves along one axis after another.

    Different chunks use different axes at the same time, so the slowest axis gives the result. In a grid of N devices,
    a row of n devices along an axis has n/N of the array's bytes. The devices exchange these bytes only within the row.

    ``array``: bytes of the whole array. ``torus``: the axes of the grid.
    """
    total = math.prod(side.size for side in torus)
    return max(
        all_to_all_time(
            array * side.size / total, side.size, side.chip, topology="ring" if side.ring else "line", model="exact"
        )
        for side in torus
    )


def _permute(about: Communication, place: Placement) -> tuple[int, tuple[str, ...]]:
    """Return (picoseconds of a permute, links that the permute uses).

    Each message takes the shorter way around each axis, one axis after another. If both ways around a ring are equally
    long, the message goes forwards.
    """
    points = list(itertools.product(*(range(n) for n in place.mesh.values())))
    load: Counter[tuple[str, tuple[int, ...]]] = Counter()
    far = 0
    for source, target in about.groups:
        links = list(_route(points[source], points[target], place))
        load.update(links)
        far = max(far, len(links))
    seconds = max((n * about.bytes / place.links([lane[:-1]]).ici for (lane, _), n in load.items()), default=0)
    used = {lane for lane, _ in load}
    lanes = tuple(f"{axis}{sign}" for axis in place.axes for sign in "+-" if f"{axis}{sign}" in used)
    return max(picoseconds(seconds), picoseconds(far * place.hop)), lanes


def _route(source: tuple[int, ...], target: tuple[int, ...], place: Placement) -> Iterator[tuple[str, tuple[int, ...]]]:
    at = list(source)
    for k, axis in enumerate(place.mesh):
        way = place.ways.get(axis)
        while way is not None and at[k] != target[k]:
            forward = _forward(at[k], target[k], way)
            yield f"{axis}{'+' if forward else '-'}", tuple(at)
            at[k] = (at[k] + (1 if forward else -1)) % way.size


def _forward(at: int, target: int, way: Way) -> bool:
    return 2 * ((target - at) % way.size) <= way.size if way.ring else target > at
