"""The clock's result: when each operation of a program runs on one device, and totals.

All times are whole picoseconds from the start of the step; all bytes and FLOPs are one device's.
"""

from __future__ import annotations

from dataclasses import dataclass

COMPUTE = "compute"
"""The lane of a device's one core; other lanes are links: "x+" and "x-" are the two directions of mesh axis x."""


@dataclass(frozen=True)
class Span:
    """One run on one lane. A collective over several links has a span on each of them, all with one ``number``.

    Attributes:
        lane: ``COMPUTE`` or a link, "x+".
        what: as shown: "dot_general", "add + multiply", "all_gather over x".
        kind: a collective's kind (grader.wire.operations.KINDS), "product" (matmuls), or "kernel" (all other work of
            the core).
        start, end: picoseconds.
        number: of the kernel or collective; the same in each round of a loop.
        line, file: in the learner's source, if known.
        bytes: a collective's input on this device; a kernel's reads and writes.
        flops: of matmuls.
        rounds: position in the loops around it, outermost first: ``(round, total)``, from 1 on. Of a loop rounds 1, 2
            and the last are drawn; see ``Timeline.loops`` for the others.
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
    """A loop: ``rounds`` times ``each`` picoseconds, from ``start`` to ``end``; nothing else runs in that time."""

    start: int
    end: int
    rounds: int
    each: int
    line: int | None = None
    file: str | None = None
    inside: tuple[tuple[int, int], ...] = ()  # for each loop around it, the round; as in a span


@dataclass(frozen=True)
class CollectiveTime:
    """The time of one collective of the program, all its runs together.

    Attributes:
        number: as in its spans. kind, axes, bytes, line, file: as in the program.
        runs: number of runs, with the loops around it multiplied out.
        each: picoseconds of one run.
        hidden, exposed: picoseconds overlapped with kernels, and not, over all runs; together ``runs * each``.
        after: the last to end of all that it waits for ("dot_general, line 14"); "" if it waits for nothing.
        before: the first to start of all that wait for it; "" if there is none.
    """

    number: int
    kind: str
    axes: tuple[str, ...]
    bytes: int
    runs: int
    each: int
    hidden: int
    exposed: int
    after: str = ""
    before: str = ""
    line: int | None = None
    file: str | None = None


@dataclass(frozen=True)
class LiveMemory:
    """Bytes on one device by liveness: arguments stay, a result lives from its start to its last use.

    Attributes:
        peak: the maximum. arguments, results, temporaries: its parts.
        at: what runs at the peak, "dot_general, line 14"; "" before anything runs.
        line, file: source of that operation, if known.
        time: picoseconds of the peak; -1 without a clock, in the program's order.
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
    """Overlapped and exposed picoseconds of all collectives of one kind."""

    hidden: int
    exposed: int

    @property
    def total(self) -> int:
        return self.hidden + self.exposed

    @property
    def part(self) -> float:
        """The overlapped part, 0 to 1; 1 if they take no time."""
        return self.hidden / self.total if self.total else 1.0


@dataclass(frozen=True)
class Timeline:
    """One step of a program on one device, which represents all devices.

    Attributes:
        chip: the row of the hardware table. shape: chips along each axis of the slice, (2, 4).
        axes: for every mesh axis of more than one device, the slice's axes under it, by position; profile: the
            collectives that run beside the core ("ideal": all of them).
        step: picoseconds from the start of the first unit to the end of the last.
        busy: picoseconds that the core runs kernels; ``idle``: the rest of the step. products: picoseconds that the
            core runs matmuls.
        spans: by start, then lane; of loops rounds 1, 2 and the last.
        loops: the loops with spans left out.
        collectives: in program order.
        critical: the units that set the step's length, in order: numbers of spans with rounds of loops left out; see
            ``on_path``.
        flops: of matmuls, loops multiplied out, one pass each.
        memory: by liveness in this order.
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
    products: int

    @property
    def idle(self) -> int:
        return self.step - self.busy

    @property
    def lanes(self) -> tuple[str, ...]:
        """Compute first, then the links of each mesh axis that are used."""
        used = {span.lane for span in self.spans}
        links = [f"{axis}{sign}" for axis in self.axes for sign in "+-"]
        return tuple(lane for lane in (COMPUTE, *links) if lane == COMPUTE or lane in used)

    def shares(self) -> dict[str, Share]:
        """Return overlapped and exposed time by kind of collective, in the order in which kinds occur."""
        found: dict[str, Share] = {}
        for c in self.collectives:
            before = found.get(c.kind, Share(0, 0))
            found[c.kind] = Share(before.hidden + c.hidden, before.exposed + c.exposed)
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
        """Return the part of the possible gain, 0 to 1, that the step gets by overlapping collectives with work.

        A step without overlap takes the time of the work plus that of the busiest link. The best step takes the longer
        of the two. Only the step's length matters, so work that the author does not name lengthens it, even if
        collectives overlap with it. So do exposed collectives of other kinds.

        Args:
            work: picoseconds of everything else that every right program needs.
        """
        talks = self.talking(kind)
        could = min(work, talks)
        return min(1.0, max(0.0, (work + talks - self.step) / could)) if could else 0.0

    def on_path(self, span: Span) -> bool:
        """Return True if a span is on the critical path."""
        return span.number in self.critical
