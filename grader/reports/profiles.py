"""A program's step times with two profiles of ``grader.clock``, and why they differ.

A profile says which kinds of collectives can run beside the compute of a core.
"""

from __future__ import annotations

from grader.clock import ASYNCHRONOUS, Timeline
from grader.expect.clock import show_time

CHECKED = "ideal"
"""The profile that checks use."""


def profiles_text(one: Timeline, other: Timeline) -> str:
    """Return a text with both step times and the reason why they differ; '' if the step times are equal.

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
