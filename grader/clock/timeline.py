"""The clock's result: when each operation of a program runs on one device, and totals over the program.

All times are whole picoseconds from the start of the step. All bytes and FLOPs are per device.
"""

from __future__ import annotations

from dataclasses import dataclass

COMPUTE = "compute"
"""The lane of a device's one core. All other lanes are links: "x+" and "x-" are the two directions of mesh axis x."""


@dataclass(frozen=True)
class Span:
    """One run of a kernel on the core, or of a collective on a link. A collective over several links has several spans.

    Attributes:
        lane: ``COMPUTE`` for the core, or a link, such as "x+".
        what: the name to show: "dot_general", "add + multiply", "all_gather over x".
        kind: a collective's kind (grader.wire.operations.KINDS), "matmul" (matmuls), or "kernel" (all other work of
            the core).
        start, end: picoseconds.
        number: the number of the kernel or collective, equal in all rounds of a loop and on all links.
        line, file: the place in the learner's source, if known.
        bytes: for a collective, the size of its input on this device; for a kernel, the bytes that it reads and writes.
        flops: FLOPs of a matmul; 0 for all other spans.
        rounds: ``(round, total)`` for each loop around the span, outermost first, counted from 1. A loop has spans only
            for its first, second and last rounds.
    """

    lane: str
    what: str
    kind: str
    start: int
    end: int
    number: int
    line: int | None = None
    file: str | None = None
    bytes: int = 0
    flops: int = 0
    rounds: tuple[tuple[int, int], ...] = ()

    @property
    def duration(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Loop:
    """A loop with ``rounds`` rounds of ``each`` picoseconds, which runs from ``start`` to ``end``."""

    start: int
    end: int
    rounds: int
    each: int
    line: int | None = None
    file: str | None = None
    inside: tuple[tuple[int, int], ...] = ()  # (round, number of rounds) for each outer loop, as in Span.rounds


@dataclass(frozen=True)
class CollectiveTime:
    """The time of one collective of the program, over all its runs.

    Attributes:
        number: ``Span.number`` of the collective's spans.
        bytes: size of the collective's input on this device.
        runs: number of runs in all rounds of loops.
        each: picoseconds of one run.
        overlapped: picoseconds, over all runs, that overlap with kernels.
        exposed: picoseconds, over all runs, that overlap with no kernel.
        after: the last unit (kernel, collective or loop) that the collective waits for, such as "dot_general, line 14";
            "" if there is none, or if a compiler made the schedule.
        before: the first unit that waits for the collective; "" as in ``after``.
    """

    number: int
    kind: str
    axes: tuple[str, ...]
    bytes: int
    runs: int
    each: int
    overlapped: int
    exposed: int
    after: str = ""
    before: str = ""
    line: int | None = None
    file: str | None = None


@dataclass(frozen=True)
class LiveMemory:
    """Bytes of live values on one device: all arguments, and each result from its unit's start to the last use.

    Attributes:
        peak: the largest number of bytes at any time.
        arguments, results, temporaries: the bytes at the peak, by kind of value.
        at: the operation that runs at the peak, such as "dot_general, line 14"; "" if the peak is before the first
            operation.
        line, file: source of the operation in ``at``, if known.
        time: picoseconds at the peak; -1 if only the order of the units was known, not their times.
    """

    peak: int
    arguments: int
    results: int
    temporaries: int
    at: str = ""
    line: int | None = None
    file: str | None = None
    time: int = -1


@dataclass(frozen=True)
class Share:
    """Overlapped and exposed time, in picoseconds, of all collectives of one kind."""

    overlapped: int
    exposed: int

    @property
    def total(self) -> int:
        return self.overlapped + self.exposed

    @property
    def part(self) -> float:
        """The overlapped part of the collectives' time, 0 to 1; 1 if the collectives take no time."""
        return self.overlapped / self.total if self.total else 1.0


@dataclass(frozen=True)
class Timeline:
    """The timeline of one step (run) of a program on one device. All devices have equal timelines.

    Attributes:
        chip: the chip's name in the hardware table.
        shape: chips along each axis of the slice, such as (2, 4).
        axes: for every mesh axis of more than one device, the indices (0, 1, ...) of the slice's axes that the mesh
            axis covers.
        profile: the rule that decides which collectives overlap with compute ("ideal": all of them). If a compiler made
            the schedule: the versions of JAX and of the compiler.
        step: picoseconds from the start of the first unit to the end of the last unit.
        busy: picoseconds for which the core runs kernels. The rest of the step is ``idle``.
        matmuls: picoseconds for which the core runs matmuls.
        spans: the runs of kernels and collectives, sorted by start, then lane. A loop has spans only for its first,
            second and last rounds.
        loops: the loops, with their numbers of rounds.
        collectives: the times of the program's collectives, in program order.
        critical: the numbers of the kernels and collectives on the critical path, in order. Each number occurs once,
            even if its kernel or collective is in a loop.
        flops: FLOPs of all matmuls. A matmul in a loop counts once for each round. The count does not depend on the
            precision, although some precisions need several passes of the matrix unit.
        memory: the peak of live memory if the units run as in this timeline.
    """

    chip: str
    shape: tuple[int, ...]
    axes: dict[str, tuple[int, ...]]
    profile: str
    step: int
    busy: int
    spans: tuple[Span, ...]
    loops: tuple[Loop, ...]
    collectives: tuple[CollectiveTime, ...]
    critical: tuple[int, ...]
    flops: int
    memory: LiveMemory
    matmuls: int

    @property
    def idle(self) -> int:
        return self.step - self.busy

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes: compute first, then the used links of each mesh axis."""
        used = {span.lane for span in self.spans}
        links = [f"{axis}{sign}" for axis in self.axes for sign in "+-"]
        return tuple(lane for lane in (COMPUTE, *links) if lane == COMPUTE or lane in used)

    def shares(self) -> dict[str, Share]:
        """Return the overlapped and exposed time of each kind of collective, in the order of first occurrence."""
        found: dict[str, Share] = {}
        for c in self.collectives:
            before = found.get(c.kind, Share(0, 0))
            found[c.kind] = Share(before.overlapped + c.overlapped, before.exposed + c.exposed)
        return found

    def talking(self, kind: str) -> int:
        """Return the picoseconds for which the collectives of a kind occupy their busiest link."""
        links = {(span.number, span.lane) for span in self.spans if span.kind == kind and span.lane != COMPUTE}
        takes = {c.number: c.runs * c.each for c in self.collectives}
        busy: dict[str, int] = {}
        for number, lane in links:
            busy[lane] = busy.get(lane, 0) + takes[number]
        return max(busy.values(), default=0)

    def gained(self, kind: str, work: int) -> float:
        """Return the time that the step saves by overlap, as a share (0 to 1) of the time that overlap could save.

        Without overlap, a step takes ``work`` plus the time for which collectives of this ``kind`` occupy their busiest
        link. With full overlap, it takes the longer of the two. Slower kernels and exposed collectives of other kinds
        lower the share.

        ``work``: the shortest possible time, in picoseconds, of everything but the collectives of this ``kind``.
        """
        talks = self.talking(kind)
        could = min(work, talks)
        return min(1.0, max(0.0, (work + talks - self.step) / could)) if could else 0.0

    def beside(self, kind: str) -> int:
        """Return the picoseconds of all work that the collectives of a kind can overlap with.

        This work is all kernels, and all collectives of other kinds.
        """
        return self.busy + sum(share.total for other, share in self.shares().items() if other != kind)

    def overlaps(self, kind: str) -> bool:
        """Return True if a collective of this kind runs beside a kernel, or beside a collective of another kind."""
        ends = {True: 0, False: 0}
        for span in self.spans:
            mine = span.kind == kind
            if span.start < ends[not mine] and span.duration:
                return True
            ends[mine] = max(ends[mine], span.end)
        return False

    def on_path(self, span: Span) -> bool:
        return span.number in self.critical
