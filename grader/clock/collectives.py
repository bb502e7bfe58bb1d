"""Times of collectives on a slice, and the links that they use.

Bandwidth and hops each give a lower bound on the time; the larger one is the time. Rings, lines and equal axes use the
"exact" formulas of ``grader.hardware.times``. A permute is routed, pair by pair.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator

from grader.clock.placement import Placement, Way, picoseconds
from grader.hardware import all_gather_time, all_reduce_time, all_to_all_time, hops, reduce_scatter_time
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
"""Kinds of collectives that run beside the core, by profile, as observed in programs that the TPU compiler made."""


class Untimed(Exception):
    """A program that the clock cannot lay out; the message is one line for its author."""

    def __init__(self, message: str, file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.file, self.line = message, file, line


def moves(about: Communication) -> bool:
    """Return True if anything is sent to another device."""
    if about.kind == "permute":
        return any(a != b for a, b in about.groups)
    return any(len(group) > 1 for group in about.groups)


def duration(about: Communication, place: Placement) -> tuple[int, tuple[str, ...]]:
    """Return picoseconds of one run, and its links: "x+" is the direction of mesh axis x to the next device.

    Raises:
        Untimed: a group holds only some of the devices along the axes that the groups cross.
    """
    if about.kind == "permute":
        return _permute(about, place)
    members = math.prod(place.mesh[axis] for axis in about.axes)
    if any(len(group) != members for group in about.groups):
        axes = " and ".join(about.axes)
        raise Untimed(
            f"the groups of this {about.kind} are only some of the devices along {axes}, so it has no time here"
        )
    lanes = tuple(f"{axis}{sign}" for axis in about.axes for sign in "+-")
    torus = [axis for name in about.axes for axis in place.ways[name].torus]
    if about.kind in ("all_to_all", "ragged_all_to_all"):
        return _all_to_all(about, members, torus, place), lanes
    ways = list(_ways(torus, members))
    return min(_over(about, members, topology, axes, far, place) for topology, axes, far in ways), lanes


def _ways(torus: list[tuple[int, bool]], members: int) -> Iterator[tuple[str, int, int]]:
    """Yield how a group can be served: the topology, the number of axes at once, the hops of the longest route."""
    if len(torus) == 1:
        topology = "ring" if torus[0][1] else "line"
        yield topology, 1, hops(members, topology)
        return
    yield "ring", 1, hops(members, "ring")  # along a cycle through all chips
    if len(set(torus)) == 1:  # equal axes: the array in as many parts, each with another order of the axes
        topology = "ring" if torus[0][1] else "line"
        yield topology, len(torus), hops([n for n, _ in torus], topology)


def _over(about: Communication, members: int, topology: str, axes: int, far: int, place: Placement) -> int:
    chip, size, how = place.links(about.axes), about.bytes, {"topology": topology, "model": "exact", "axes": axes}
    if about.kind == "all_gather":
        seconds, times = all_gather_time(size * members, members, chip, **how), 1
    elif about.kind == "reduce_scatter":
        seconds, times = reduce_scatter_time(size, members, chip, **how), 1
    elif about.kind == "all_reduce":
        seconds, times = all_reduce_time(size, members, chip, **how), 2
    else:  # a broadcast: half of the array goes round each way
        seconds, times = size / (chip.ici * axes * (2 if topology == "ring" else 1)), 1
    return max(picoseconds(seconds), picoseconds(times * far * place.hop))


def _all_to_all(about: Communication, members: int, torus: list[tuple[int, bool]], place: Placement) -> int:
    """Return the time if every chunk goes along the first axis, then the next. It is the busiest axis's time.

    An axis of n devices out of N carries an all-to-all of its n devices of n/N of the array.
    """
    chip, size, busiest, far = place.links(about.axes), about.bytes * members, 0.0, 0
    for n, ring in torus:
        topology = "ring" if ring else "line"
        busiest = max(busiest, all_to_all_time(size * n / members, n, chip, topology=topology, model="exact"))
        far += hops(n, topology)
    return max(picoseconds(busiest), picoseconds(far * place.hop))


def _permute(about: Communication, place: Placement) -> tuple[int, tuple[str, ...]]:
    """Route each pair's message the shorter way, axis by axis; exactly halfway round goes forwards."""
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
