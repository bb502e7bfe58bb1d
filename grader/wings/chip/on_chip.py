"""Facts about a program that the TPU compiler scheduled: overlap, times, memory, and differences from the clock.

The clock is ``grader.clock``, the course's own model of a program's time on a slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from grader.clock import Share, Timeline
from grader.common.layout import show_sizes
from grader.common.observation import Collective, Fault
from grader.expect.clock import show_time
from grader.expect.costs import show_bytes
from grader.hardware import Chip
from grader.reports import points
from grader.reports.paper import Paper
from grader.reports.timeline_text import legend, print_lanes
from grader.reports.timelines import place
from grader.wire.schedule import Schedule

OVERLAPPED = 0.9  # A collective counts as overlapped if at least this fraction of its time overlaps with compute.
FACTOR = 10  # If one time is more than FACTOR times another time, their difference is not shown as a percentage.
# If the compiler's figure and the clock's figure differ by more than these fractions, the difference is reported. The
# figures are the time of a step, the overlapped part of the communication, and the memory.
STEP_APART, PART_APART, MEMORY_APART = 0.15, 0.10, 0.25


@dataclass(frozen=True)
class OnChip:
    """One task on one mesh, compiled for a slice.

    Attributes:
        on: the slice, such as "v5e:2x4".
        schedule: the compiler's schedule.
        timeline: the schedule with times.
        unreplayed: the reason why there is no ``timeline``.
        clock: the timeline that ``grader.clock`` computes for the slice.
        untimed: the reason why there is no ``clock``.
        profiles: a text that compares the clock's step times with two profiles (see ``chips``); empty if the times are
            equal.
        source: the collectives of the program before its compilation.
        fault: the reason why the program was not compiled, else None.
    """

    exercise: str
    task: str
    mesh: Mapping[str, int]
    dims: Mapping[str, int]
    on: str
    chip: Chip
    schedule: Schedule | None = None
    timeline: Timeline | None = None
    unreplayed: str = ""
    clock: Timeline | None = None
    untimed: str = ""
    profiles: str = ""
    source: tuple[Collective, ...] = ()
    fault: Fault | None = None

    @property
    def title(self) -> str:
        """The title, such as ``ag_matmul on x=1, y=8 with B=8192, compiled for v5e:2x4``."""
        sized = f" with {show_sizes(self.dims)}" if self.dims else ""
        return f"{self.task} on {show_sizes(self.mesh)}{sized}, compiled for {self.on}"

    @property
    def lines(self) -> dict[str, Timeline]:
        """The available timelines, by title: "the compiler's schedule" and "the clock's"."""
        found = {"the compiler's schedule": self.timeline, "the clock's": self.clock}
        return {name: line for name, line in found.items() if line is not None}


@dataclass(frozen=True)
class Counted:
    """Collectives of one kind, such as all-gathers.

    Attributes:
        runs: how often the collectives run.
        overlapped: how many of these runs overlap with compute.
        share: overlapped and exposed time of the runs, in picoseconds.
    """

    kind: str
    runs: int
    overlapped: int
    share: Share


def counted(line: Timeline) -> list[Counted]:
    """Return the counts for each kind of collective in a timeline, in the order in which the kinds first occur."""
    found = []
    for kind, share in line.shares().items():
        of = [c for c in line.collectives if c.kind == kind]
        overlapped = sum(c.runs for c in of if c.overlapped >= OVERLAPPED * (c.overlapped + c.exposed))
        found.append(Counted(kind, sum(c.runs for c in of), overlapped, share))
    return found


def overlap_text(one: Counted) -> str:
    """Return a text about one kind of collective: how much of its time overlaps, and how many of its runs."""
    share = one.share
    part = f"{show_time(share.overlapped)} ({share.part:.0%}) of the {show_time(share.total)}"
    overlapped = f"{part} of {points.counted(one.runs, one.kind)} overlap with compute"
    long = f"{one.overlapped} of these {one.runs} collectives overlap for at least {OVERLAPPED:.0%} of their time"
    return f"{overlapped}; {long}"


def facts(about: OnChip) -> Iterator[tuple[str, str]]:
    line, schedule = about.timeline, about.schedule
    if schedule is None:
        return
    if line is not None:
        for one in counted(line):
            yield "overlap", overlap_text(one)
        if joined := sum(bool(i.joined) for i in schedule.walk()):
            what = "a matmul waits" if joined == 1 else f"{joined} matmuls wait"
            yield (
                "joined",
                f"{what} for a collective that only a sum needs in the source program, "
                "because one kernel computes both the matmul and the sum",
            )
        if not line.collectives:
            yield "overlap", "none: the program has no collectives"
        other = line.busy - line.matmuls
        rest = f"other kernels {show_time(other)}, waiting {show_time(line.idle)}"
        yield "core", f"{show_time(line.matmuls)} of {show_time(line.step)} are matmuls; {rest}"
    elif about.unreplayed:
        yield "time", f"none: {about.unreplayed}"
    there = about.chip.hbm
    parts = f"{show_bytes(schedule.arguments)} arguments, {show_bytes(schedule.results)} results"
    parts += f", {show_bytes(schedule.temporaries)} temporaries"
    parts += f", {show_bytes(schedule.aliased)} shared by arguments and results" if schedule.aliased else ""
    yield "memory", f"{show_bytes(schedule.held)} of {there / 1e9:.0f} GB ({schedule.held / there:.1%}): {parts}"
    yield "by", schedule.by
    if about.profiles:
        yield "clock", about.profiles


def differences(about: OnChip) -> list[str]:
    """Return lines of text about large differences between the compiler's schedule and the clock's timeline."""
    return [*_kinds_apart(about), *_times_apart(about), *_memory_apart(about)]


def _kinds_apart(about: OnChip) -> Iterator[str]:
    """Yield a line of text if the number of collectives of a kind differs between the schedule and the clock."""
    line, clock = about.timeline, about.clock
    if line is None or clock is None:
        return
    made, written = (
        {kind: sum(c.runs for c in t.collectives if c.kind == kind) for kind in t.shares()} for t in (line, clock)
    )
    if made != written:
        yield f"the program has {_listed(written)}; the compiler turned them into {_listed(made)}"


def _listed(runs: Mapping[str, int]) -> str:
    return " and ".join(points.counted(n, kind) for kind, n in runs.items()) or "no collectives"


def _times_apart(about: OnChip) -> Iterator[str]:
    line, clock = about.timeline, about.clock
    if line is None or clock is None:
        return
    if _apart(line.step, clock.step) > STEP_APART:
        yield f"the step takes {_both(line.step, clock.step)}"
        parts = {
            "matmuls": (line.matmuls, clock.matmuls),
            "other kernels": (line.busy - line.matmuls, clock.busy - clock.matmuls),
            "wait for collectives": (line.idle, clock.idle),
        }
        for what, (compiled, ours) in parts.items():
            if abs(compiled - ours) > STEP_APART / 3 * clock.step:
                yield f"  its {what}: {_both(compiled, ours)}"
    shares = clock.shares()
    for kind, share in line.shares().items():
        other = shares.get(kind)
        if other is not None and abs(share.part - other.part) > PART_APART:
            parts = f"{share.part:.0%} in the compiler's order, {other.part:.0%} in the order of the grader's clock"
            yield f"overlapped part of {kind}: {parts}"


def _memory_apart(about: OnChip) -> Iterator[str]:
    clock, schedule = about.clock, about.schedule
    if clock is None or schedule is None:
        return
    if abs(schedule.held - clock.memory.peak) > MEMORY_APART * max(clock.memory.peak, 1):
        compiled, ours = show_bytes(schedule.held), show_bytes(clock.memory.peak)
        yield f"memory: {compiled} by the compiler, {ours} by the course's clock"


def _apart(compiled: int, ours: int) -> float:
    return abs(compiled - ours) / max(ours, 1)


def _both(compiled: int, ours: int) -> str:
    by = f" ({(compiled - ours) / ours:+.0%})" if ours and compiled <= FACTOR * ours else ""
    return f"{show_time(compiled)} by the TPU compiler's cycles, {show_time(ours)} by the course's clock{by}"


def exposed_lines(line: Timeline) -> list[str]:
    """Return a line of text for each line of code with exposed (not overlapped) collectives."""
    worst = sorted(
        (c for c in line.collectives if c.exposed > (1 - OVERLAPPED) * (c.overlapped + c.exposed)),
        key=lambda c: (-c.exposed, c.number),
    )
    found: dict[tuple, list[int]] = {}
    for c in worst:
        found.setdefault((c.kind, c.axes, c.file, c.line), []).append(c.exposed)
    return [
        f"{kind} over {' and '.join(axes)} is exposed for {show_time(sum(times))}"
        + (f": {where}" if (where := place(file, at)) else "")
        for (kind, axes, file, at), times in found.items()
    ]


def as_data(about: OnChip) -> dict[str, Any]:
    """Return the facts about a compiled program as JSON data. Times are in picoseconds, memory in bytes."""
    found: dict[str, Any] = {
        "exercise": about.exercise, "task": about.task, "mesh": dict(about.mesh), "dims": dict(about.dims),
        "on": about.on, "fault": None if about.fault is None else about.fault.message,
        "differences": differences(about),
    }  # fmt: skip
    if about.schedule is not None:
        s = about.schedule
        found["memory"] = {"arguments": s.arguments, "results": s.results, "temporaries": s.temporaries, "held": s.held}
        found |= {"by": s.by, "program": s.program}
    for name, line in (("compiler", about.timeline), ("clock", about.clock)):
        if line is not None:
            kinds = {
                c.kind: {"runs": c.runs, "overlapped_runs": c.overlapped, "overlapped": c.share.overlapped,
                         "exposed": c.share.exposed}
                for c in counted(line)
            }  # fmt: skip
            found[name] = {"step": line.step, "busy": line.busy, "matmuls": line.matmuls, "collectives": kinds}
    return found


# -- on a terminal -----------------------------------------------------------------------------


def print_on_chip(about: OnChip, console: Console, *, drawn: bool = True) -> None:
    """Print a heading, a line for every fact, the available timelines if ``drawn``, and their differences."""
    paper = Paper(console)
    paper.line(paper.text(about.title, "bold"))
    if about.fault is not None:
        paper.line(paper.text(about.fault.message, "red"), indent=2)
        return
    for word, text in facts(about):
        paper.line(Text(paper.fit(f"{word:9} "), style="bright_black"), paper.text(text), indent=2)
    if about.timeline is not None:
        for text in exposed_lines(about.timeline):
            paper.line(Text(paper.fit("exposed   "), style="bright_black"), paper.text(text, "yellow"), indent=2)
    lines = about.lines
    if drawn and lines:
        print_lanes(lines, console)
        paper.line(paper.text(legend(lines.values())), indent=2)
    if about.untimed:
        paper.line(
            paper.text(f"the course's clock has no timeline of this program: {about.untimed}", "yellow"), indent=2
        )
    apart = differences(about)
    word = "differs" if apart else "agrees"
    for text in apart or (["the compiler's and the clock's figures do not differ"] if len(lines) == 2 else []):
        paper.line(Text(paper.fit(f"{word:9} "), style="bright_black"), paper.text(text), indent=2)
