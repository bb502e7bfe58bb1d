"""Check a program's timeline, as the clock (a model of time on a chip, see docs/clock.md) calculates it."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cachetools import LRUCache, cached

from grader.clock import ASYNCHRONOUS, CollectiveTime, Timeline, Untimed, timeline
from grader.common.budget import BudgetUse
from grader.common.observation import Seen, Timing
from grader.expect.costs import as_different_texts, limit_other_flops
from grader.expect.failure import Failure, place, prefix
from grader.expect.mattering import flops_that_matter, idle_note
from grader.expect.order import can_overlap
from grader.wire.operations import KINDS, Operations


def _timeline_key(operations: Operations, on: str, axes: Mapping[str, Sequence[int]] | None, profile: str) -> tuple:
    return id(operations), on, axes and tuple((axis, tuple(where)) for axis, where in axes.items()), profile


# The cached value holds the program, so no other program gets this program's ``id``, which is part of the key.
@cached(LRUCache(16), key=_timeline_key, lock=threading.Lock())  # several threads judge submissions at the same time
def _timed(
    operations: Operations, on: str, axes: Mapping[str, Sequence[int]] | None, profile: str
) -> tuple[Operations, Timeline | Untimed]:
    """Return a program, and its timeline or the reason why it has none. Raises the ValueErrors of ``timeline``."""
    try:
        return operations, timeline(operations, on, axes=axes, profile=profile)
    except Untimed as error:
        return operations, error


def laid_out(
    operations: Operations | None,
    timing: Timing | None,
    *,
    on: str | None = None,
    axes: Mapping[str, Sequence[int]] | None = None,
    profile: str | None = None,
) -> Timeline:
    """Return a program's timeline on the slice ``on``; if ``on`` is None, on the slice of the program's timing call.

    Args:
        operations: the program; None if it has too many operations.
        timing: the slice, axes and profile of the program's timing call; None without a timing call.
        axes, profile: as in ``grader.clock.timeline``. By default, the profile is that of ``timing``, else "ideal".

    Raises:
        Failure: the program is too large, or has parts that only a compiler can interpret.
        ValueError: no slice is named, or no axes of the slice have the sizes of the mesh's axes.
    """
    if on is None and timing is None:
        raise ValueError('name the slice, as in on="v5e:2x4": only exercise.timing says on which chips a program runs')
    if on is None and timing is not None:
        on, axes = timing.on, axes or timing.axes
    if operations is None:
        raise Failure("the program has too many operations for a timeline; use lax.fori_loop or lax.scan")
    profile = profile or (timing.profile if timing else "ideal")
    _, found = _timed(operations, on or "", axes, profile)
    if isinstance(found, Untimed):
        raise _untimed(found)
    return found


def _untimed(error: Untimed) -> Failure:
    return Failure(f"{prefix(error.file, error.line)}{error.message}", where=place(error.file, error.line))


def expect_overlap(seen: Seen, kind: str, *, work: float, at_least: float = 0.9, on: str | None = None) -> None:
    """Check that overlap saves at least the fraction ``at_least`` of the time that it could save in a step (one run).

    Overlap means here that compute and collectives of the kind ``kind`` run at the same time. Without overlap, a step
    takes the time ``work`` plus the time for which the collectives occupy their busiest link. With full overlap, a step
    takes only the longer of these two times. A program's saving is the time without overlap, minus the step's time.
    The check also fails if no other work runs beside the collectives, or if the program's other work takes less time
    than overlap must save.

    Use ``expect_flops`` to check that the program does all its matmuls. Additional collectives that overlap increase
    the saving, so limit them with ``expect_collectives`` or ``expect_traffic``.

    The step's time comes from the clock's timeline. With ``--backend tpu:v5e:2x4``, a TPU's compiler orders the
    operations. The step's time is then the time of the kernels on the clock, plus the time for which the core is idle
    in the compiler's order. The compiler's order is not used if ``on`` is given, or if the slice's chips never overlap
    collectives of ``kind`` with compute. If the timing call has ``profile="ideal"``, the clock lets all collectives
    overlap with compute.

    Args:
        kind: a kind of collective, such as "permute".
        at_least: the required share of the largest possible saving, more than 0 and at most 1.
        work: seconds that any right program needs for kernels, and for collectives of other kinds that cannot overlap.
        on: a slice, "v5e:2x4"; by default the slice of the timing call.
    """
    if kind not in KINDS or not 0 < at_least <= 1 or not work > 0:
        kinds = ", ".join(KINDS)
        raise ValueError(
            f"expect_overlap: the kind {kind!r} must be one of {kinds}; at_least must be above 0 and at most 1; "
            "work must be above 0"
        )
    line, by = _timeline(seen, kind, on)
    share = line.shares().get(kind)
    if share is None or not share.total:
        raise Failure(f"the program has no {kind} that takes time{by}", expected=kind)
    needed = round(work * 1e12)
    _expect_possible(line, kind, round(at_least * min(needed, line.talking(kind))))
    overlaps = line.overlaps(kind)
    # If nothing overlaps, a step is shorter only because work is missing. Then overlap saves nothing.
    found = line.gained(kind, needed) if overlaps else 0.0
    if found >= at_least:
        return
    part, due = as_different_texts(_percent, found, at_least, 0)
    why, where = _longest_exposed(line, kind, waits=not by)
    none = not overlaps and seen.operations is not None and not can_overlap(seen.operations, kind)
    raise Failure(
        f"{'nothing can overlap: ' if none else ''}{why}. {_gain(line, kind, needed, by)}, "
        f"so the program's overlap saves {part} of the time that full overlap would save. The check requires {due}",
        expected=round(at_least, 4), actual=round(found, 4), where=where,
    )  # fmt: skip


def _longest_exposed(line: Timeline, kind: str, *, waits: bool) -> tuple[str, str]:
    """Describe the collective of this kind with the longest exposed time, and name its place.

    ``waits``: see ``_exposed``.
    """
    worst = max((c for c in line.collectives if c.kind == kind), key=lambda c: (c.exposed, -c.number))
    if worst.exposed:
        return _exposed(worst, waits=waits), place(worst.file, worst.line)
    return f"each {kind} fully overlaps with compute, but {_core(line)}", ""


def _expect_possible(line: Timeline, kind: str, saving: int) -> None:
    """Raise Failure if overlap cannot save ``saving`` picoseconds in this program, in any order of its operations.

    If a program's kernels take hardly any time, the step is short, but no work could run beside the collectives.
    """
    beside = line.beside(kind)
    if beside < saving:
        much = "nothing" if 100 * beside < saving else "too little"
        raise Failure(
            f"{much} can overlap: kernels and collectives other than {kind}s take {show_time(beside)}; "
            f"the check requires that overlap saves {show_time(saving)}",
            expected=saving / 1e12,
            actual=beside / 1e12,
        )


def _core(line: Timeline) -> str:
    return f"kernels take {show_time(line.busy)}, the core is idle for {show_time(line.idle)}"


def _timeline(seen: Seen, kind: str, on: str | None) -> tuple[Timeline, str]:
    """Return the timeline, and text that names the compiler whose operation order is used ('' for the clock's order).

    The times of the compiler's kernels are not used, because they include copies of arrays that the compiler added.

    Raises Failure if the program cannot have a timeline.
    """
    line = seen.clock(on=on)
    if on is not None or seen.chip is None or kind not in ASYNCHRONOUS.get(line.chip, ()):
        return line, ""
    try:
        chip = seen.chip()
    except Untimed as error:
        raise _untimed(error) from None
    return replace(chip, step=line.busy + chip.idle, busy=line.busy), f" in the compiler's order ({chip.profile})"


def _gain(line: Timeline, kind: str, work: int, by: str) -> str:
    talks = line.talking(kind)
    return (
        f"Compute takes {show_time(work)}, and {kind}s take {show_time(talks)}: {show_time(work + talks)} without "
        f"overlap, {show_time(max(work, talks))} with full overlap. The step takes {show_time(line.step)}{by}"
    )


def expect_step_time(seen: Seen, *, at_most: float, on: str | None = None) -> None:
    """Check that a step takes at most ``at_most`` seconds on the slice ``on``; by default the timing call's slice."""
    line = seen.clock(on=on)
    seen.spent.append(BudgetUse("expect_step_time", line.step / 1e12, at_most))
    if seen.measuring or line.step <= at_most * 1e12:
        return
    worst = max(line.collectives, key=lambda c: (c.exposed, -c.number), default=None)
    exposed = f"; {_exposed(worst)}" if worst and worst.exposed else ""
    step, budget = as_different_texts(show_time, line.step, round(at_most * 1e12), 5)
    where = f"{line.chip}:{'x'.join(map(str, line.shape))}"
    raise Failure(
        f"the step takes {step} on {where}, the budget is {budget}: {_core(line)}{exposed}",
        expected=at_most,
        actual=line.step / 1e12,
        where=place(worst.file, worst.line) if worst and worst.exposed else "",
    )


def expect_bubble(seen: Seen, *, useful: float, at_most: float) -> None:
    """Check that at most the fraction ``at_most`` of all matmul FLOPs is a pipeline's bubble.

    In an SPMD program, every device computes in every tick (round) of a pipeline. So the bubble is not idle time, but
    FLOPs whose results are discarded: all matmul FLOPs minus ``useful``. A program with fewer matmul FLOPs than
    ``useful`` fails the check. The budget for all other arithmetic is equal to the budget for matmuls.

    Args:
        useful: FLOPs of all matmuls if one device computes the whole program.
        at_most: 0 to 1; for GPipe with P stages and M microbatches, (P - 1)/(M + P - 1).
    """
    devices = math.prod(seen.mesh.values())
    if not seen.dot_flops.known:
        raise Failure(
            "the FLOPs of this program cannot be read: a loop has an unknown number of rounds, "
            "or a matmul is outside shard_map"
        )
    spent = seen.dot_flops.most * devices
    if spent < useful * (1 - 1e-9):
        raise Failure(
            f"{devices} devices spend {spent:.4g} FLOPs on matmuls, but {useful:.4g} are needed; "
            "is part of the work missing?",
            expected=useful,
            actual=spent,
        )
    done = flops_that_matter(seen).most * devices
    if done < useful * (1 - 1e-9):
        raise Failure(
            f"{devices} devices spend {done:.4g} FLOPs on matmuls that results depend on, "
            f"but {useful:.4g} are needed{idle_note(seen)}",
            expected=useful,
            actual=done,
        )
    if at_most < 1:
        limit_other_flops(seen, useful / (1 - at_most) / devices)
    wasted = 1 - useful / spent if spent else 0.0
    seen.spent.append(BudgetUse("expect_bubble", wasted, at_most))
    if seen.measuring or wasted <= at_most + 1e-9:
        return
    thrown, most = as_different_texts(_percent, wasted, at_most)
    raise Failure(
        f"{thrown} of the matmul FLOPs are discarded, the budget is {most}. {devices} devices spend "
        f"{spent:.4g} FLOPs on matmuls, but only {useful:.4g} are needed. "
        "Look for a stage that computes in more ticks than it needs",
        expected=at_most,
        actual=round(wasted, 6),
    )


def _percent(part: float, digits: int) -> str:
    return f"{part:.{digits}%}"


def _exposed(c: CollectiveTime, *, waits: bool = True) -> str:
    """Describe a collective's exposed time, in which it overlaps with no kernel.

    ``waits``: True to name an operation that the collective waits for, and an operation that waits for the collective.
    """
    times = f", {c.runs} times" if c.runs > 1 else ""
    each = c.exposed // c.runs if c.runs else 0
    after = f"this {c.kind} waits for {c.after}" if c.after else f"this {c.kind} waits for nothing"
    before = f"{c.before} waits for this {c.kind}" if c.before else f"the end of the step waits for this {c.kind}"
    between = f": {after}, and {before}" if waits else ""
    what = f"{prefix(c.file, c.line)}{c.kind} over {' and '.join(c.axes)}"
    return (
        f"{what} takes {show_time(c.each)}{times}, and {show_time(each)} of this time are exposed, "
        f"without compute beside it{between}"
    )


def show_time(picoseconds: float, digits: int = 5) -> str:
    """Return text such as ``298.97 us``, in the largest unit that fits, with at most ``digits`` significant digits."""
    for unit, size in (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3)):
        if picoseconds >= size:
            return f"{picoseconds / size:.{digits}g} {unit}"
    return f"{picoseconds} ps"
