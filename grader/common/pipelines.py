"""Find a program's pipelines: chains of permutes that pass data of different micro-batches from device to device.

One round of permutes is a tick. An entry is the part of an argument at one index of its first dimension, such as a
micro-batch. For each device and tick, ``pipelines`` finds three facts about the sent data: the entries that it depends
on, the devices that it came from, and whether a result of the program depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from grader.common.marks import MarkWalk, Sent, UnknownError, joined
from grader.wire.operations import Operations

MOST_DEVICES = 16
Span = tuple[int, int]


@dataclass(frozen=True)
class Work:
    """The data that one device sends in a tick (a round of permutes).

    Attributes:
        entries: for each argument of the pipeline, the entries that the data depends on, as spans [start, stop); None
            if they are not known exactly.
        sources: the senders of the previous tick whose data this data depends on; empty if not known exactly.
        used: whether a result of the program depends on the data.
    """

    entries: tuple[tuple[Span, ...] | None, ...]
    sources: tuple[int, ...]
    used: bool


@dataclass(frozen=True)
class Pipeline:
    """A pipeline of ticks: in each tick, permutes send data that depends on data of the previous tick.

    Attributes:
        arguments: names of the program's arguments from which the data in the pipeline is computed.
        axes: the mesh axes that the data moves along.
        lines: the line of each tick's permutes in the learner's source.
        ticks: for each tick, the data that each device sends. If results of the program depend on the data of the last
            permutes, one more tick has the data that each device receives from them.
    """

    arguments: tuple[str, ...]
    axes: tuple[str, ...]
    lines: tuple[int | None, ...]
    ticks: tuple[tuple[Work, ...], ...]


def pipelines(program: Operations, names: Sequence[str]) -> list[Pipeline]:
    """Return the pipelines of two or more ticks, in program order, without repeats.

    A chain of permutes is a pipeline if two pieces of its data depend on disjoint sets of entries of one argument, and
    results of the program depend on both pieces. The list is empty if the program is too long for the analysis, or has
    a part that the analysis cannot track.

    Args:
        names: names of the program's arguments.
    """
    if (devices := math.prod(program.mesh.values())) > MOST_DEVICES:
        return []
    walk = MarkWalk(program, devices)
    if not walk.sends:
        return []
    try:
        results = walk.results()
        used = joined(part for held in results for marks in held.marks for part in marks)
        found = [_Lane(walk, lane, used).pipeline(names) for lane in _lanes(walk) if len(lane) > 1]
    except UnknownError:
        return []
    return list({(p.arguments, p.ticks): p for p in found if p is not None}.values())


def _lanes(walk: MarkWalk) -> list[list[Sent]]:
    """Return chains of values that permutes send.

    In a chain, each value depends on the previous value on at least one path through the program.
    """
    found: list[list[Sent]] = []
    latest: list[int] = []  # for each chain, the marks of the chain's last value
    for sent in (sent for sent in walk.sent if sent.permutes):
        marks, own = joined(sent.marks), joined(walk.bits(sent.number))
        at = next((at for at, before in enumerate(latest) if marks & before), len(found))
        if at == len(found):
            found.append([])
            latest.append(own)
        found[at].append(sent)
        latest[at] = own
    return found


def _sources(walk: MarkWalk, before: Sent, sent: Sent) -> list[tuple[int, ...]]:
    """Return, for each device, the devices from which its part of ``sent`` comes; () if they are not known exactly.

    The part depends on these devices' parts of ``before``.
    """
    bits = walk.bits(before.number)
    return [tuple(d for d, bit in enumerate(bits) if walk.exact_sources(m) and m & bit) for m in sent.marks]


@dataclass(frozen=True)
class _Lane:
    """A chain of values that permutes send, one after another. ``used``: the marks of all results of the program."""

    walk: MarkWalk
    sent: list[Sent]
    used: int

    def pipeline(self, names: Sequence[str]) -> Pipeline | None:
        """Return the chain as a pipeline; None if it is not a pipeline (see the function ``pipelines``)."""
        useful = [[bool(self.used & bit) for bit in self.walk.bits(sent.number)] for sent in self.sent]
        arguments, entries = [], []
        for number, name in enumerate(names):
            sets = [[self.entries(marks, number) for marks in sent.marks] for sent in self.sent]
            if self.differ(sets, useful):
                arguments.append(name)
                entries.append([[None if one is None else _spans(one) for one in row] for row in sets])
        if not arguments:
            return None
        ticks = self.ticks(entries, useful)
        lines = tuple(sent.permutes[0].line for sent in self.sent)
        return Pipeline(tuple(arguments), self.axes(), lines, (*ticks, *self.arrived(ticks[-1])))

    def entries(self, marks: int, argument: int) -> int | None:
        """Return, as bits, the entries of an argument that ``marks`` contains; None if they are not known exactly."""
        self.walk.counted(1)
        entries, exact = self.walk.entries_in(marks, argument)
        return entries if exact else None

    def differ(self, sets: Sequence[Sequence[int | None]], useful: Sequence[Sequence[bool]]) -> bool:
        """Return whether two pieces of the sent data depend on known, disjoint sets of entries.

        Only pieces on which a result depends count.

        ``sets`` has, for each tick and device, the entries that the sent data depends on (as bits; None if unknown).
        ``useful`` has, for each tick and device, whether a result depends on the data.
        """
        pairs = zip(sets, useful, strict=True)
        found = {one for row, of in pairs for one, use in zip(row, of, strict=True) if use and one}
        self.walk.counted(len(found) ** 2 // 2)
        return any(not one & other for one, other in combinations(found, 2))

    def axes(self) -> tuple[str, ...]:
        moved = [op.communication for sent in self.sent for op in sent.permutes]
        return tuple(dict.fromkeys(axis for one in moved if one is not None for axis in one.axes))

    def ticks(self, entries: Sequence[Any], useful: Sequence[Sequence[bool]]) -> list[tuple[Work, ...]]:
        """Return, for each tick, the data that each device sends, as ``Work``."""
        sources = [[()] * self.walk.devices, *(_sources(self.walk, *pair) for pair in pairwise(self.sent))]
        return [
            tuple(map(Work, zip(*(of[tick] for of in entries), strict=True), sources[tick], useful[tick]))
            for tick in range(len(self.sent))
        ]

    def arrived(self, last: Sequence[Work]) -> list[tuple[Work, ...]]:
        """Return one more tick: the data that each device receives in the last tick; [] if no result depends on it."""
        sent = self.sent[-1]
        used = [bool(self.used & bit) for bit in self.walk.bits(sent.number, arrived=True)]
        moved = [op.communication for op in sent.permutes]
        pairs = sorted({pair for one in moved if one is not None for pair in one.groups})
        senders = [tuple(source for source, target in pairs if target == d) for d in range(len(last))]
        empty = (((),) * len(last[0].entries),)
        works = [
            Work(tuple(map(_together, zip(*empty, *(last[s].entries for s in of), strict=True))), of, use and bool(of))
            for of, use in zip(senders, used, strict=True)
        ]
        return [tuple(works)] if any(work.used for work in works) else []


def _together(parts: Sequence[tuple[Span, ...] | None]) -> tuple[Span, ...] | None:
    """Return spans (ranges [start, stop)) of the entries in any of the parts; None if a part is not known exactly."""
    known = [part for part in parts if part is not None]
    entries = joined(1 << n for part in known for span in part for n in range(*span))
    return _spans(entries) if len(known) == len(parts) else None


def _spans(entries: int) -> tuple[Span, ...]:
    """Return the spans [start, stop) of consecutive entries in a set of entries, given as bits."""
    after = entries << 1
    return tuple(zip(_numbers(entries & ~after), _numbers(after & ~entries), strict=True))


def _numbers(bits: int) -> list[int]:
    return [n for n in range(bits.bit_length()) if bits >> n & 1]
