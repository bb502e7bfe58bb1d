"""A program's step times with the clock's two profiles, and the reason why the two step times differ."""

from __future__ import annotations

from grader.clock import ASYNCHRONOUS, Timeline
from grader.expect.clock import show_time

CHECKED = "ideal"
"""The profile that checks use."""


def profiles_text(one: Timeline, other: Timeline) -> str:
    """Return both step times and the reason why they differ; '' if they are equal.

    The profiles differ only in the kinds of collectives that run beside the core.

    Args:
        one, other: the timelines of one program on one slice: with the profile ``CHECKED`` and with the chip's own
            profile, in any order.
    """
    ideal, chip = sorted((one, other), key=lambda line: line.profile != CHECKED)
    if ideal.step == chip.step:
        return ""
    apart = f"{show_time(ideal.step)} if every collective can overlap (ideal, as in checks)"
    return f"{apart}, {show_time(chip.step)} on {chip.profile}, where the core waits for {' and '.join(waits(chip))}"


def other_profile(line: Timeline) -> str:
    """Return the profile to compare with: the chip's own for a timeline with ``CHECKED``, else ``CHECKED``."""
    return line.chip if line.profile == CHECKED else CHECKED


def waits(line: Timeline) -> list[str]:
    """Return the kinds of collectives in the program that do not run beside the core, in program order."""
    return [kind for kind in line.shares() if kind not in ASYNCHRONOUS[line.profile]]


def apart_text(compiled: tuple[int, int, int], clock: Timeline) -> str:
    """Return the part of a step in which compiler and clock differ most; '' if both have equal step times.

    Args:
        compiled: picoseconds by the TPU compiler's schedule: the step, its matmuls, and waiting for collectives.
    """
    step, matmuls, waiting = compiled
    parts = {
        "matmuls take": (matmuls, clock.products),
        "other kernels take": (step - matmuls - waiting, clock.busy - clock.products),
        "the core waits for": (waiting, clock.idle),
    }
    sign = 1 if step > clock.step else -1
    what, (theirs, ours) = max(parts.items(), key=lambda part: sign * (part[1][0] - part[1][1]))
    if step == clock.step:
        return ""
    return f"most of the difference: {what} {show_time(theirs)}, {show_time(ours)} by the clock"
