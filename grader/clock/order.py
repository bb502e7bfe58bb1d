"""Order units in time: each resource serves its units in one fixed order, the shortest of five.

The orders ignore cost. In each order the end is a maximum of sums of durations, and the least of five is taken, so a
faster unit never makes a step longer.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

MAX_EDGES = 64
"""Most starts and ends of kernels to try as late starts of a collective; without a limit it would try all of them."""


@dataclass(frozen=True)
class Piece:
    """A unit to be laid out.

    Attributes:
        duration: picoseconds. resources: held for the whole duration.
        after: positions, in the program's order, of pieces that must be done first. They come before this piece.
        talks: whether the piece is a collective, which may run as late as possible.
    """

    duration: int
    resources: tuple[str, ...]
    after: frozenset[int]
    talks: bool = False


@dataclass(frozen=True)
class Laid:
    """Start times of pieces: ``early`` as soon as possible, ``start`` with collectives as late as possible."""

    order: tuple[int, ...]
    start: tuple[int, ...]
    early: tuple[int, ...]
    before: tuple[frozenset[int], ...]  # pieces that must end first, because this piece needs them or their resource
    length: int


def lay(pieces: Sequence[Piece], core: str) -> Laid:
    """Lay out the pieces in the shortest of five orders. If several are shortest, the program's own order wins.

    Args:
        core: the lane with the pieces that can overlap a collective.
    """
    early = min((_lay(pieces, order) for order in orders(pieces)), key=lambda laid: laid.length)
    return _late(pieces, early, core)


def orders(pieces: Sequence[Piece]) -> list[list[int]]:
    """Return five orders: the program's; collectives first; and three by how many collectives come after a piece.

    Of the last three, the second breaks ties by the fewest collectives needed. At the end of a loop's round no
    collective is left, and a matmul that waits for no collective must not queue behind a sum that waits for one. The
    third takes the pieces that the first collective needs, then those that the next one needs. So devices send some
    gradients while they compute others.
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
    """Return a topological order that always takes the piece of least rank among those that are ready."""
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
    """Disjoint intervals of time, to measure their overlap with another interval."""

    def __init__(self, stretches: Iterable[tuple[int, int]]) -> None:
        self.stretches = sorted((a, b) for a, b in stretches if a < b)
        self.starts = [a for a, _ in self.stretches]
        self.ends = [b for _, b in self.stretches]
        self.until = list(itertools.accumulate((b - a for a, b in self.stretches), initial=0))

    def edges(self, after: int, before: int) -> list[int]:
        """Return the starts and ends within an interval, the last ``MAX_EDGES`` of each."""
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
    """Delay collectives beside the core as far as neither their overlap nor any other start time gets worse.

    The whole step takes as long as before, and the collectives' results take up memory no sooner than needed.
    """
    start = list(laid.start)
    end = [laid.length] * len(pieces)  # latest end of each piece
    busy = Busy((s, s + p.duration) for s, p in zip(start, pieces, strict=True) if core in p.resources and not p.talks)
    for i in reversed(laid.order):
        piece = pieces[i]
        if piece.talks and core not in piece.resources and end[i] - piece.duration > start[i]:
            start[i] = _latest(start[i], end[i] - piece.duration, piece.duration, busy)
        for j in laid.before[i]:
            end[j] = min(end[j], start[i])
    return replace(laid, start=tuple(start))


def _latest(now: int, latest: int, duration: int, busy: Busy) -> int:
    """Return the latest start that keeps at least the present overlap with busy time."""
    hidden = busy.overlap(now, now + duration)
    if busy.overlap(latest, latest + duration) >= hidden:
        return latest
    edges = {*busy.edges(now, latest), *(e - duration for e in busy.edges(now + duration, latest + duration))}
    for at in sorted(edges, reverse=True):
        if busy.overlap(at, at + duration) >= hidden:
            return at
    return now
