"""Build a timeline from a program: schedule the operations, then list each run of a kernel or collective as a span."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grader.clock.collectives import ASYNCHRONOUS
from grader.clock.kernels import GIVEN, Unit
from grader.clock.laying import LaidBody, Laying
from grader.clock.memory import title
from grader.clock.placement import Placement, Slice, placed
from grader.clock.timeline import COMPUTE, CollectiveTime, Loop, Span, Timeline
from grader.hardware.chips import unknown
from grader.wire.operations import Operations

SHOWN_NAMES = 3
PLAIN = GIVEN | {"convert", "broadcast_in_dim", "reshape", "shard", "unshard"}


def timeline(
    program: Operations,
    on: str | Slice | Placement,
    *,
    axes: Mapping[str, Sequence[int]] | None = None,
    profile: str = "ideal",
) -> Timeline:
    """Return the schedule of a program's operations on a TPU slice.

    Args:
        on: a slice, such as "v5e:2x4", or an existing placement.
        axes: the slice's axes that each mesh axis covers; if None, ``placed`` chooses the axes.
        profile: the rule that decides which kinds of collectives overlap with compute. "ideal": all kinds. A chip's
            name, such as "v5e": the kinds that overlap on this chip.

    Raises:
        ValueError: the slice or the profile does not exist, or no axes of the slice have the sizes of the mesh's axes.
        Untimed: the clock cannot time a part of the program. An example is a matmul outside ``shard_map``, because only
            the compiler decides which part of it each device computes.
    """
    if profile not in ASYNCHRONOUS:
        raise ValueError(unknown("profile", profile, list(ASYNCHRONOUS)))
    place = on if isinstance(on, Placement) else placed(on, program.mesh, axes)
    laid = Laying(program, place, profile).body(program.main, outermost=True)
    found = _Found()
    found.body(laid, 0, ())
    spans = sorted(found.spans, key=lambda s: (s.start, s.lane != COMPUTE, s.lane, s.number))
    return Timeline(
        place.slice.chip.name, place.slice.shape, place.axes, profile, laid.length, laid.busy, tuple(spans),
        tuple(found.loops), tuple(_collectives(laid, 1)), tuple(_critical(laid)), laid.flops, laid.memory,
        laid.matmuls,
    )  # fmt: skip


class _Found:
    """Collects a timeline's loops and spans. A loop has spans only for its first, second and last rounds."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.loops: list[Loop] = []

    def body(self, body: LaidBody, at: int, rounds: tuple[tuple[int, int], ...]) -> None:
        for i, unit in enumerate(body.fused.units):
            start = at + body.laid.start[i]
            if i in body.blocks:
                self.block(body, i, start, rounds)
            elif body.pieces[i].duration:
                for lane in body.pieces[i].resources:
                    self.spans.append(_span(body, i, unit, lane, start, rounds))

    def block(self, body: LaidBody, i: int, start: int, rounds: tuple[tuple[int, int], ...]) -> None:
        block, op = body.blocks[i], body.fused.units[i].root
        each, count = block.body.length, block.rounds
        if not block.is_loop:
            self.body(block.body, start, rounds)
            return
        self.loops.append(Loop(start, start + count * each, count, each, op.line, op.file, rounds))
        for n in sorted({1, 2, count} & set(range(1, count + 1))):
            self.body(block.body, start + (n - 1) * each, (*rounds, (n, count)))


def _span(body: LaidBody, i: int, unit: Unit, lane: str, start: int, rounds: tuple[tuple[int, int], ...]) -> Span:
    op = unit.root
    about = op.communication
    kind = about.kind if about else unit.kind
    end = start + body.pieces[i].duration
    return Span(
        lane, what(body, i), kind, start, end, body.numbers[i], op.line, op.file, unit.bytes, unit.flops, rounds
    )


def what(body: LaidBody, i: int) -> str:
    """Return unit ``i``'s name: a collective and its axes, or a kernel's main operation and at most two others."""
    unit = body.fused.units[i]
    if unit.root.communication is not None:
        return f"{unit.root.communication.kind} over {' and '.join(unit.root.communication.axes)}"
    inside = (body.fused.ops[j] for j in unit.inside if any(map(body.fused.size, body.fused.ops[j].results)))
    names = dict.fromkeys([unit.root.name, *(op.name for op in inside)])
    chosen = [name for n, name in enumerate(names) if not n or name not in PLAIN]
    return " + ".join(chosen[:SHOWN_NAMES]) + (" + ..." if len(chosen) > SHOWN_NAMES else "")


def _collectives(body: LaidBody, times: int) -> list[CollectiveTime]:
    found, after, before = [], _waits_for(body), _waited_for_by(body)
    for i, unit in enumerate(body.fused.units):
        if i in body.blocks:
            found += _collectives(body.blocks[i].body, times * body.blocks[i].rounds)
        about, op = unit.root.communication, unit.root
        if about is None:
            continue
        start, each = body.laid.start[i], body.pieces[i].duration
        beside = COMPUTE not in body.pieces[i].resources
        overlapped = body.kernels.overlap(start, start + each) if beside else 0
        sizes = times, each, times * overlapped, times * (each - overlapped)
        around = after[i], before[i]
        found.append(
            CollectiveTime(body.numbers[i], about.kind, about.axes, about.bytes, *sizes, *around, op.line, op.file)
        )
    return found


def _waits_for(body: LaidBody) -> list[str]:
    """Return, for each unit, the title of the last unit (kernel, collective or loop) that it waits for."""
    last: list[int | None] = []
    for unit in body.fused.units:
        near = (j if body.pieces[j].duration else last[j] for j in unit.after)
        found = {j for j in near if j is not None}
        last.append(max(found, key=lambda j: (body.laid.start[j] + body.pieces[j].duration, -j), default=None))
    return ["" if j is None else title(body.fused.units[j]) for j in last]


def _waited_for_by(body: LaidBody) -> list[str]:
    """Return, for each unit, the title of the first unit (kernel, collective or loop) that waits for it."""
    first: list[int | None] = [None] * len(body.pieces)
    for i in reversed(range(len(first))):
        near = (j if body.pieces[j].duration else first[j] for j in body.then[i])
        found = {j for j in near if j is not None}
        first[i] = min(found, key=lambda j: (body.laid.start[j], j), default=None)
    return ["" if j is None else title(body.fused.units[j]) for j in first]


def _critical(body: LaidBody) -> list[int]:
    """Return the numbers of the kernels and collectives on the critical path, in order of time."""
    ends = [s + p.duration for s, p in zip(body.laid.early, body.pieces, strict=True)]
    at = next((i for i, end in enumerate(ends) if end == body.length), None)
    found: list[int] = []
    while at is not None:
        if at in body.blocks:
            found += reversed(_critical(body.blocks[at].body))
        elif body.pieces[at].duration:
            found.append(body.numbers[at])
        now = at
        before = [j for j in body.laid.before[now] if ends[j] == body.laid.early[now]]
        needed = [j for j in before if j in body.fused.units[now].after]
        at = min(needed or before, default=None) if body.laid.early[now] else None
    return found[::-1]
