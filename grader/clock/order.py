"""Choose when the units of a program start: try five orders of the units, and keep the order with the shortest step.

A unit is a kernel, a collective, a loop or a barrier. A step is one run of the program.

The five orders do not depend on durations. In a fixed order, the step's length is the longest path through the units,
so a faster unit never makes the step longer.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

MAX_EDGES = 64
"""Largest number of kernel starts, and of kernel ends, that are tried as the late start or end of a collective."""


@dataclass(frozen=True)
class Piece:
    """A unit (kernel, collective, loop or barrier) that needs a start time.

    Attributes:
        duration: picoseconds.
        resources: the core and the links that the piece occupies for the whole duration.
        after: the pieces that must end before this piece starts, as positions in the program's order.
        talks: True for a collective.
    """

    duration: int
    resources: tuple[str, ...]
    after: frozenset[int]
    talks: bool = False


@dataclass(frozen=True)
class Laid:
    """The pieces' start times, in picoseconds.

    In ``early``, each piece starts as early as possible. In ``start``, asynchronous collectives start late.
    """

    order: tuple[int, ...]
    start: tuple[int, ...]
    early: tuple[int, ...]
    before: tuple[frozenset[int], ...]  # for each piece, the pieces that must end before the piece starts
    length: int


def lay(pieces: Sequence[Piece], core: str) -> Laid:
    """Try five orders of the pieces, and return the start times for the order with the shortest step.

    If several orders are equally short, the first order in ``orders`` wins. Asynchronous collectives start late.

    ``core``: the name of the resource that runs kernels.
    """
    early = min((_lay(pieces, order) for order in orders(pieces)), key=lambda laid: laid.length)
    return _late(pieces, early, core)


def orders(pieces: Sequence[Piece]) -> list[list[int]]:
    """Return five orders of the pieces; each piece comes after the pieces that it needs.

    1. Program order.
    2. First the collectives.
    3. First the piece with the longest chain of collectives after it. In a chain, each collective needs the previous
       collective.
    4. As order 3, but if chains are equally long, first the piece with the shortest chain of collectives before it. For
       example, at the end of a loop's round, a matmul runs before a sum that waits for a collective.
    5. First the pieces that the first collective needs, then the pieces that the second collective needs, and so on. In
       this order, devices can send some gradients while they compute other gradients.
    """
    count = len(pieces)
    to_come, behind, needed_by = [0] * count, [0] * count, [count] * count
    for i, piece in enumerate(pieces):
        behind[i] = max((behind[j] + pieces[j].talks for j in piece.after), default=0)
    for i in reversed(range(count)):
        to_come[i] += pieces[i].talks
        if pieces[i].talks:
            needed_by[i] = i
        for j in pieces[i].after:
            to_come[j] = max(to_come[j], to_come[i])
            needed_by[j] = min(needed_by[j], needed_by[i])
    first = [(0 if pieces[i].talks else 1, i) for i in range(count)]
    most = [(-to_come[i], i) for i in range(count)]
    freest = [(-to_come[i], behind[i], i) for i in range(count)]
    soonest = [(needed_by[i], i) for i in range(count)]
    return [list(range(count)), *(_by(pieces, rank) for rank in (first, most, freest, soonest))]


def _by(pieces: Sequence[Piece], rank: Sequence[tuple[int, ...]]) -> list[int]:
    """Return a topological order of the pieces, by lowest rank if several pieces can come next."""
    waits = [len(p.after) for p in pieces]
    then: list[list[int]] = [[] for _ in pieces]
    for i, piece in enumerate(pieces):
        for j in piece.after:
            then[j].append(i)
    ready = [rank[i] for i, n in enumerate(waits) if not n]
    heapq.heapify(ready)
    found = []
    while ready:
        i = heapq.heappop(ready)[-1]
        found.append(i)
        for j in then[i]:
            waits[j] -= 1
            if not waits[j]:
                heapq.heappush(ready, rank[j])
    return found


def _lay(pieces: Sequence[Piece], order: Sequence[int]) -> Laid:
    start, before = [0] * len(pieces), [frozenset[int]()] * len(pieces)
    last: dict[str, int] = {}
    for i in order:
        piece = pieces[i]
        first = piece.after | {last[r] for r in piece.resources if r in last}
        before[i] = first
        start[i] = max((start[j] + pieces[j].duration for j in first), default=0)
        last |= dict.fromkeys(piece.resources, i)
    length = max((s + p.duration for s, p in zip(start, pieces, strict=True)), default=0)
    return Laid(tuple(order), tuple(start), tuple(start), tuple(before), length)


class Busy:
    """Disjoint intervals of time, for measuring their overlap with another interval."""

    def __init__(self, stretches: Iterable[tuple[int, int]]) -> None:
        self.stretches = sorted((a, b) for a, b in stretches if a < b)
        self.starts = [a for a, _ in self.stretches]
        self.ends = [b for _, b in self.stretches]
        self.until = list(itertools.accumulate((b - a for a, b in self.stretches), initial=0))

    def edges(self, after: int, before: int) -> list[int]:
        """Return the intervals' starts and ends between two times, at most the last ``MAX_EDGES`` of each kind."""
        found = []
        for edges in (self.starts, self.ends):
            first, end = bisect.bisect_right(edges, after), bisect.bisect_left(edges, before)
            found += edges[max(first, end - MAX_EDGES) : end]
        return found

    def before(self, time: int) -> int:
        """Return the total length of the intervals before a time."""
        n = bisect.bisect_left(self.starts, time)
        return self.until[n] - (max(0, self.stretches[n - 1][1] - time) if n else 0)

    def overlap(self, start: int, end: int) -> int:
        return self.before(end) - self.before(start)


def _late(pieces: Sequence[Piece], laid: Laid, core: str) -> Laid:
    """Start asynchronous collectives as late as possible, without reducing overlap and without delaying other pieces.

    After a late start, a collective's result occupies memory for a shorter time.
    """
    start = list(laid.start)
    end = [laid.length] * len(pieces)  # the latest time at which each piece may end
    busy = Busy((s, s + p.duration) for s, p in zip(start, pieces, strict=True) if core in p.resources and not p.talks)
    for i in reversed(laid.order):
        piece = pieces[i]
        if piece.talks and core not in piece.resources and end[i] - piece.duration > start[i]:
            start[i] = _latest(start[i], end[i] - piece.duration, piece.duration, busy)
        for j in laid.before[i]:
            end[j] = min(end[j], start[i])
    return replace(laid, start=tuple(start))


def _latest(now: int, latest: int, duration: int, busy: Busy) -> int:
    """Return the latest start at which a collective overlaps with ``busy`` at least as long as at the start ``now``.

    Only some starts are tried: ``now``, ``latest``, and times between them at which the collective starts or ends
    together with a busy interval.
    """
    overlapped = busy.overlap(now, now + duration)
    if busy.overlap(latest, latest + duration) >= overlapped:
        return latest
    edges = {*busy.edges(now, latest), *(e - duration for e in busy.edges(now + duration, latest + duration))}
    for at in sorted(edges, reverse=True):
        if busy.overlap(at, at + duration) >= overlapped:
            return at
    return now
