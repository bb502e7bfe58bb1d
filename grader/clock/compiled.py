"""Replay a compiled program: compute when each instruction runs if the core keeps the compiler's order.

The compiler gives the order of instructions, their dependencies, and the cycles of each kernel. It gives no times of
collectives, so ``clock.collectives`` computes how long a collective occupies its links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from grader.clock.collectives import Untimed, duration
from grader.clock.order import Busy
from grader.clock.placement import PS, Placement, picoseconds, placed
from grader.clock.timeline import COMPUTE, CollectiveTime, LiveMemory, Loop, Span, Timeline
from grader.hardware.cores import core_of
from grader.wire.schedule import Instruction, Schedule


def replayed(schedule: Schedule, on: str | Placement, *, apart: bool = False) -> Timeline:
    """Return a schedule as a timeline on a slice.

    Args:
        apart: True to run each matmul before the core waits for data that the program adds to the matmul's result. The
            compiler may fuse the matmul with the addition, and then the matmul waits for the data.

    Raises:
        ValueError: no axes of the slice have the sizes of the mesh's axes, or the clock rate of the slice's chip is
            unknown.
        Untimed: a loop's number of rounds is unknown, or a collective's group lacks some devices along a mesh axis.
    """
    place = on if isinstance(on, Placement) else placed(on, schedule.mesh)
    core = core_of(place.slice.chip)
    body = _Replay(place, core.hz).body(_apart(schedule.instructions) if apart else schedule.instructions)
    found = _Drawn()
    found.body(body, 0, ())
    spans = sorted(found.spans, key=lambda s: (s.start, s.lane != COMPUTE, s.lane, s.number))
    memory = LiveMemory(schedule.held, schedule.arguments, schedule.results - schedule.aliased, schedule.temporaries)
    return Timeline(
        place.slice.chip.name, place.slice.shape, place.axes, schedule.by, body.length, body.busy, tuple(spans),
        tuple(found.loops), tuple(_collectives(body, 1)), tuple(_critical(body)), body.flops, memory, body.matmuls,
    )  # fmt: skip


def _apart(instructions: Sequence[Instruction]) -> list[Instruction]:
    """Move each matmul before the wait for data that the program adds to the matmul's result.

    Return the instructions in the new order.
    """
    found: list[Instruction] = []
    for one in instructions:
        late = [i for i in found if one.op == "matmul" and i.op == "done" and i.number in one.joined]
        found = [i for i in found if i not in late]
        found += [replace(one, bodies=tuple(tuple(_apart(body)) for body in one.bodies)), *late]
    return found


@dataclass
class _Sent:
    """One run of a collective. ``beside`` is True if the core can run kernels during the collective."""

    of: Instruction
    start: int
    end: int
    lanes: tuple[str, ...]
    beside: bool
    waited: int = 0  # picoseconds that the core waited for the collective


@dataclass
class _Replayed:
    """Times of a program or of one round of a loop, in picoseconds."""

    length: int = 0
    busy: int = 0
    matmuls: int = 0
    flops: int = 0
    # for each kernel: its serial number, its start, its end, and its instruction
    ran: list[tuple[int, int, int, Instruction]] = field(default_factory=list)
    sent: list[_Sent] = field(default_factory=list)
    # for each inner body: its start, its number of rounds, the instruction that runs it, and the body
    inner: list[tuple[int, int, Instruction, _Replayed]] = field(default_factory=list)


class _Replay:
    def __init__(self, place: Placement, hz: float) -> None:
        self.place, self.hz = place, hz
        # The serial numbers of kernels start here, so that they differ from the numbers of collectives.
        self.kernels = 1_000_000

    def body(self, instructions: Sequence[Instruction]) -> _Replayed:
        found, now = _Replayed(), 0
        free: dict[str, int] = {}  # the time at which each link has finished its transfers
        under_way: dict[int, _Sent] = {}
        for one in instructions:
            if one.op in ("kernel", "matmul"):
                takes = self.kernel(one)
                self.kernels += 1
                found.ran.append((self.kernels, now, now + takes, one))
                now, found.busy = now + takes, found.busy + takes
                found.matmuls += takes if one.op == "matmul" else 0
                found.flops += one.flops
            elif one.op in ("start", "collective"):
                sent = self.sent(one, now, free)
                found.sent.append(sent)
                under_way[one.number] = sent
                if one.op == "collective":
                    sent.waited, now = sent.end - now, sent.end
            elif one.op == "done":
                sent = under_way[one.number]
                sent.waited, now = max(0, sent.end - now), max(now, sent.end)
            else:
                now = self.block(one, now, found)
        found.length = max([now, *(sent.end for sent in found.sent)])
        return found

    def kernel(self, one: Instruction) -> int:
        if one.bytes and not one.cycles:
            return picoseconds(one.bytes / self.place.slice.chip.hbm_bw)
        return round(one.cycles * PS / self.hz)

    def sent(self, one: Instruction, now: int, free: dict[str, int]) -> _Sent:
        """Start a collective when all its links are free. Links serve collectives in the instructions' order."""
        assert one.communication is not None
        try:
            takes, lanes = duration(one.communication, self.place)
        except Untimed as error:
            raise Untimed(error.message, one.file, one.line) from None
        start = max([now, *(free.get(lane, 0) for lane in lanes)])
        free.update(dict.fromkeys(lanes, start + takes))
        return _Sent(one, start, start + takes, lanes, one.op == "start")

    def block(self, one: Instruction, now: int, found: _Replayed) -> int:
        """Add a loop, or a conditional's longest branch, to ``found``. Return the time at which it ends."""
        rounds = 1
        if one.op == "loop":
            if one.rounds is None:
                raise Untimed("the compiled program does not show how often this loop runs", one.file, one.line)
            rounds = one.rounds
        bodies = [self.body(body) for body in one.bodies]
        if not bodies or not rounds:
            return now
        longest = max(bodies, key=lambda b: b.length)
        found.inner.append((now, rounds, one, longest))
        found.busy += rounds * longest.busy
        found.matmuls += rounds * longest.matmuls
        found.flops += rounds * longest.flops
        return now + rounds * longest.length


class _Drawn:
    """Collects a timeline's loops and spans. A loop has spans only for its first, second and last rounds."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.loops: list[Loop] = []

    def body(self, body: _Replayed, at: int, rounds: tuple[tuple[int, int], ...]) -> None:
        for number, start, end, one in body.ran:
            if end > start:
                about = (number, one.line, one.file, one.bytes, one.flops, rounds)
                self.spans.append(Span(COMPUTE, one.what, one.op, at + start, at + end, *about))
        for sent in body.sent:
            about = sent.of.communication
            assert about is not None
            what = f"{about.kind} over {' and '.join(about.axes)}"
            for lane in sent.lanes if sent.beside else (COMPUTE, *sent.lanes):
                self.spans.append(
                    Span(
                        lane, what, about.kind, at + sent.start, at + sent.end, sent.of.number, sent.of.line,
                        sent.of.file, about.bytes, 0, rounds,
                    )
                )  # fmt: skip
        for start, count, one, inner in body.inner:
            self.block(at + start, count, one, inner, rounds)

    def block(
        self, start: int, count: int, one: Instruction, inner: _Replayed, rounds: tuple[tuple[int, int], ...]
    ) -> None:
        if one.op != "loop":
            self.body(inner, start, rounds)
            return
        each = inner.length
        self.loops.append(Loop(start, start + count * each, count, each, one.line, one.file, rounds))
        for n in sorted({1, 2, count} & set(range(1, count + 1))):
            self.body(inner, start + (n - 1) * each, (*rounds, (n, count)))


def _collectives(body: _Replayed, times: int) -> list[CollectiveTime]:
    found = []
    kernels = Busy([(start, end) for _, start, end, _ in body.ran] + [
        (start, start + rounds * inner.length) for start, rounds, _, inner in body.inner
    ])  # fmt: skip
    for sent in body.sent:
        about = sent.of.communication
        assert about is not None
        each = sent.end - sent.start
        overlapped = kernels.overlap(sent.start, sent.end) if sent.beside else 0
        sizes = times, each, times * overlapped, times * (each - overlapped)
        place = sent.of.line, sent.of.file
        found.append(CollectiveTime(sent.of.number, about.kind, about.axes, about.bytes, *sizes, "", "", *place))
    for _, rounds, _, inner in body.inner:
        found += _collectives(inner, times * rounds)
    return found


def _critical(body: _Replayed) -> list[int]:
    """Return the critical path: the numbers of all kernels, and of those collectives that the core waits for."""
    found = [(start, number) for number, start, _, _ in body.ran]
    found += [(sent.start, sent.of.number) for sent in body.sent if sent.waited]
    numbers = [number for _, number in sorted(found)]
    for _, _, _, inner in body.inner:
        numbers += _critical(inner)
    return numbers
