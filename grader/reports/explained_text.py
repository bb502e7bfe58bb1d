"""Print a program's facts on a terminal. Long lines wrap, so that a narrow terminal cuts nothing off."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from grader.clock import ASYNCHRONOUS, LiveMemory, Timeline
from grader.common.drawing import each_drawn
from grader.common.intervals import Interval
from grader.common.layout import show_spec
from grader.common.observation import Collective, Fault, over
from grader.expect.clock import show_time
from grader.expect.costs import show_bytes
from grader.reports.explained import Explained, Placed
from grader.reports.paper import Paper
from grader.reports.roofline import roofline_text
from grader.reports.rounds import rounds_in, rounds_text
from grader.reports.timeline_text import print_timeline
from grader.reports.timelines import held_text, place

CHECKED = "ideal"
"""The profile that checks use."""


def print_explained(explained: Explained, console: Console, *, drawn: bool = True) -> None:
    """Print a heading and a line for every fact.

    If ``drawn``, also draw tables of permuted data, the timeline and the roofline.
    """
    paper = Paper(console)
    paper.line(paper.text(explained.title, "bold"))
    if explained.fault is not None:
        paper.line(paper.text(fault_line(explained.fault), "red"), indent=2)
        return
    for word, style, text in fact_lines(explained):
        label = Text(paper.fit(f"{word:10} "), style="bright_black")
        paper.line(label, paper.text(text, style), indent=2)
    if drawn:
        _print_rounds(explained, paper)
    if explained.timeline is not None and drawn:
        print_timeline(explained.timeline, console)
        if (roofline := explained.roofline) is not None:
            for line in roofline_text(roofline):
                paper.line(paper.text(line), indent=2)
    elif explained.untimed:
        paper.line(
            paper.text(f"the course's clock has no timeline of this program: {explained.untimed}", "yellow"), indent=2
        )


def _print_rounds(explained: Explained, paper: Paper) -> None:
    for caption, *lines in each_drawn(rounds_text, rounds_in(explained)):
        paper.line(paper.text(caption, "bold"), indent=2)
        for line in lines:
            paper.console.print(Text(paper.fit(f"  {line}")), no_wrap=True, crop=True)


def fact_lines(explained: Explained) -> Iterator[tuple[str, str, str]]:
    """Yield (label, style, text) for every fact: arguments, results, collectives, bytes, memory, arithmetic."""
    yield from [("takes", "", array_text(placed)) for placed in explained.arguments]
    yield from [("gives", "", array_text(placed)) for placed in explained.results]
    if not explained.ran:
        yield "gives", "", "the program was not run at these sizes, so the sharding of its results is unknown"
    for collective, count in explained.alike:
        yield "collective", "cyan", collective_text(collective, count)
    if not explained.collectives:
        yield "collective", "", "none: devices do not communicate"
    for axes, sent in explained.traffic.items():
        yield "sends", "", f"{bytes_text(sent)} from a device over {axes}"
    yield from memory_lines(explained)
    others = [
        ("runs", "", explained.elsewhere),
        ("measured", "cyan", explained.measured),
        ("profiles", "cyan", explained.profiles),
        ("compiled", "cyan", explained.compiled),
        ("predicted", "cyan", explained.predicted),
    ]
    yield from [fact for fact in others if fact[2]]
    yield "FLOPs", "", f"{explained.dot_flops} in matmuls, {explained.other_flops} in other operations, on a device"


def memory_lines(explained: Explained) -> Iterator[tuple[str, str, str]]:
    """Yield (label, style, text) for each memory figure: from XLA, from liveness analysis, and estimated for a TPU."""
    if explained.ran:
        yield "memory", "", f"{show_bytes(explained.memory)} of temporaries on a device (XLA's figure)"
    if explained.live is not None:
        yield "holds", "", live_text(explained.live)
    if explained.stored:
        yield (
            "stored",
            "",
            f"about {show_bytes(explained.stored)} on a TPU, which may keep operands of matmuls in bfloat16",
        )


def live_text(live: LiveMemory) -> str:
    """Return a text about the peak memory that a device needs when operations run in program order."""
    when = "on a device at the peak, if operations run in program order (liveness analysis)"
    return f"{show_bytes(live.peak)} {when}: {held_text(live)}" + (f", at {live.at}" if live.at else "")


def array_text(placed: Placed) -> str:
    """Return a text such as ``a: float32[24, 32] as P(None, 'x'), each device [24, 8]``."""
    local = " or ".join(show_shape(shape) for shape in placed.local[:4])
    return f"{placed.name}: {placed.dtype}{show_shape(placed.shape)} as {show_spec(placed.spec)}, each device {local}"


def show_shape(shape: tuple[int, ...]) -> str:
    """Return the shape as ``[24, 32]``."""
    return "[" + ", ".join(map(str, shape)) + "]"


def collective_text(c: Collective, count: Interval) -> str:
    """Return a text such as ``permute over x to the next device: a device contributes 6 B and sends 6 B: c3.py:61``."""
    times, each = ("", "") if count == 1 else (f"{count} × ", " each time")
    way = {1: " to the next device", -1: " to the previous device"}.get(c.shift or 0, "")
    if c.shift is not None and not way:
        way = f" by {c.shift:+d}"
    where = place(c.file, None if c.by_compiler else c.line) or "added by the compiler"
    sends = f"a device contributes {show_bytes(c.bytes)} and sends {bytes_text(c.sent)}"
    return f"{times}{c.kind} over {over(c.axes, c.partial, ',')}{way}: {sends}{each}: {where}"


def bytes_text(amount: Interval) -> str:
    """Return a text such as ``1.5 KiB``, ``0 B to 1.5 KiB`` or ``512 B or more``."""
    if amount.exact:
        return show_bytes(amount.most)
    return f"{show_bytes(amount.least)} " + ("or more" if math.isinf(amount.most) else f"to {show_bytes(amount.most)}")


def fault_line(fault: Fault) -> str:
    """Return the reason why there is no program to explain, with the place in the source if known."""
    at = f"{fault.file}:{fault.line}: " if fault.line else ""
    return f"{at}{fault.message}"


def profiles_text(one: Timeline, other: Timeline) -> str:
    """Return a text with both step times and the reason why they differ; '' if the step times are equal.

    A profile says which kinds of collectives can run beside the compute of a core.

    Args:
        one, other: timelines of one program on one slice, with the profile "ideal" and with the chip's own profile, in
            any order.
    """
    ideal, chip = sorted((one, other), key=lambda line: line.profile != CHECKED)
    if ideal.step == chip.step:
        return ""
    apart = f"the step takes {show_time(ideal.step)} if every collective can overlap (as checks assume)"
    return (
        f"{apart}, and {show_time(chip.step)} on {chip.profile}, where the core waits for {' and '.join(waits(chip))}"
    )


def other_profile(line: Timeline) -> str:
    """Return the chip's own profile if the timeline has the profile "ideal", else "ideal"."""
    return line.chip if line.profile == CHECKED else CHECKED


def waits(line: Timeline) -> list[str]:
    """Return the kinds of the program's collectives that cannot overlap with the core's work, in program order."""
    return [kind for kind in line.shares() if kind not in ASYNCHRONOUS[line.profile]]


def apart_text(compiled: tuple[int, int, int], clock: Timeline) -> str:
    """Explain why the step time in the TPU compiler's schedule differs from the step time of ``grader.clock``.

    The text names the part of the step (matmuls, other kernels, or waits for collectives) whose two times differ most.
    Return '' if the step times are equal.

    Args:
        compiled: picoseconds of the step, of its matmuls, and of waits for collectives, in the compiler's schedule.
    """
    step, matmuls, waiting = compiled
    parts = {
        "matmuls take": (matmuls, clock.matmuls),
        "other kernels take": (step - matmuls - waiting, clock.busy - clock.matmuls),
        "the core waits for": (waiting, clock.idle),
    }
    sign = 1 if step > clock.step else -1
    what, (theirs, ours) = max(parts.items(), key=lambda part: sign * (part[1][0] - part[1][1]))
    if step == clock.step:
        return ""
    both = f"{show_time(theirs)} by the compiler, but {show_time(ours)} by the clock"
    return f"most of the difference in step time: {what} {both}"
