"""Compute late penalties from deadlines and submission times. This module reads no system clock and no file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from grader.common.result import HandIn
from grader.course.config import CourseError, LatePolicy, Module
from grader.intake.times import STATED, ZIPPED
from grader.reports.points import counted, tidy

DAY = timedelta(days=1)
EVERY = "*"  # In an extension or a submission time, this key stands for all modules.
_SPAN = re.compile(r"(?:(?P<module>[\w]+)\s*=\s*)?(?P<number>\d{1,4}(?:\.\d{1,3})?)\s*(?P<unit>[dh])")

Extension = Mapping[str, timedelta]


@dataclass(frozen=True)
class Handed:
    """A submission time, and where it comes from, such as ``submitted.csv`` or a file's date.

    Attributes:
        for_all: True if the staff's record (``submitted.csv``) gives one time for all modules.
    """

    time: datetime
    source: str
    for_all: bool = field(default=False, compare=False)


def extension_of(cell: str, where: str, modules: Sequence[str]) -> Extension:
    """Return the extra time, by module, that a cell of the roster (class list) grants.

    Args:
        cell: the text of the cell, such as ``2d``, ``36h`` or ``m1=2d; m2=12h``.
        where: the file and line (``FILE:LINE``) of the cell, for the message of a CourseError.
    """
    found: dict[str, timedelta] = {}
    for part in filter(None, (part.strip() for part in cell.split(";"))):
        read = _SPAN.fullmatch(part)
        if read is None:
            raise CourseError(
                f"{where}: {part!r} is not an extension; write 2d, 36h or {next(iter(modules), 'MODULE')}=2d, "
                "with a semicolon between extensions"
            )
        module = read["module"] or EVERY
        if module != EVERY and module not in modules:
            raise CourseError(f"{where}: extension for {module!r}, which is not a module of the course")
        if module in found:
            raise CourseError(f"{where}: two extensions for {'all modules' if module == EVERY else module}; write one")
        found[module] = timedelta(**{"days" if read["unit"] == "d" else "hours": float(read["number"])})
    return found


def is_extension(cell: str) -> bool:
    """Return whether a cell of the roster has the form of an extension, such as ``2d`` or ``m1=2d; m2=12h``."""
    parts = [part.strip() for part in cell.split(";") if part.strip()]
    return bool(parts) and all(map(_SPAN.fullmatch, parts))


def days_late(handed: datetime, deadline: datetime, policy: LatePolicy) -> int:
    """Return how many days late a submission is, counted from the end of the policy's grace time and rounded up."""
    over = handed - deadline - timedelta(minutes=policy.grace_minutes)
    return max(0, -(-over // DAY))


def penalised(
    policy: LatePolicy | None,
    modules: Sequence[Module],
    earned: Mapping[str, float],
    times: Mapping[str, Handed],
    extension: Extension | None = None,
) -> list[HandIn]:
    """Return one student's submission times with late penalties, in the course's order of modules.

    The policy may give each student free days: late days that cost nothing. Free days are whole days and are used in
    the order of the deadlines. A free day is used only if it lowers the penalty's percentage.

    Args:
        policy: the course's late policy; None for no penalties.
        earned: points by module, before any penalty.
        times: submission times by module. Modules that were not handed in are left out.
        extension: the student's extra time by module.
    """
    free = policy.free_days if policy else 0
    order = [m for m in modules if m.id in times]
    found: dict[str, HandIn] = {}
    for module in sorted(order, key=lambda m: (m.deadline is None, m.deadline.timestamp() if m.deadline else 0)):
        at = times[module.id]
        plain = HandIn(
            module=module.id, submitted=at.time.astimezone(UTC).isoformat(timespec="seconds"), source=at.source
        )
        found[module.id] = plain
        if policy is None or module.deadline is None:
            continue
        deadline = due(module.deadline, module.id, extension or {})
        days = days_late(at.time, deadline, policy)
        if days and not costs(policy, at.source):
            text = f"{span(at.time - deadline)} late according to {at.source}; a time from this source costs no points"
            found[module.id] = plain.model_copy(update={"text": text})
            continue
        spent = _fewest(policy, days, min(days, free))
        free -= spent
        if days:
            one = _penalty(policy, days - spent, earned.get(module.id, 0.0))
            text = _words(policy, at.time - deadline, days - spent, spent, earned.get(module.id, 0.0), at.source)
            found[module.id] = plain.model_copy(update={"penalty": one, "text": text})
    return [found[m.id] for m in order]


def due(deadline: datetime, module: str, extension: Extension) -> datetime:
    """Return a module's deadline plus the student's extension. A deadline without a time zone is in local time.

    An extension for the module replaces an extension for all modules.
    """
    return deadline.astimezone() + extension.get(module, extension.get(EVERY, timedelta()))


def costs(policy: LatePolicy, source: str) -> bool:
    """Return whether a late submission loses points if its time comes from this source.

    A time in the staff's record always counts. A time from the submission, such as a file's date, counts only if the
    policy says so.
    """
    return source == STATED or policy.trust == "file-dates"


def percent_of(policy: LatePolicy, days: int) -> float:
    """Return the penalty for this many late days, in percent of the module's points."""
    return min(days * policy.percent_per_day, policy.at_most_percent)


def _fewest(policy: LatePolicy, days: int, free: int) -> int:
    """Return the smallest number of free days, at most ``free``, that gives the lowest percentage."""
    left = percent_of(policy, days - free)
    return next(spent for spent in range(free + 1) if percent_of(policy, days - spent) == left)


def _penalty(policy: LatePolicy, days: int, earned: float) -> float:
    return round(min(max(earned, 0.0), max(earned, 0.0) * percent_of(policy, days) / 100), 6)


def _words(policy: LatePolicy, late: timedelta, days: int, spent: int, earned: float, source: str) -> str:
    """Return a text such as ``handed in 26 h late: 2 x 10 % of 8.5 = 1.7 points off (time from submitted.csv)``."""
    free = f"{spent} late day{'' if spent == 1 else 's'} used" if spent else ""
    cost = ""
    if days:
        capped = policy.at_most_percent < days * policy.percent_per_day
        share = f"at most {tidy(policy.at_most_percent)} %" if capped else f"{days} x {tidy(policy.percent_per_day)} %"
        cost = f"{share} of {tidy(earned)} = {counted(_penalty(policy, days, earned), 'point')} off"
    return f"handed in {span(late)} late: {', '.join(filter(None, (free, cost)))} (time from {source})"


def span(late: timedelta) -> str:
    """Return a length of time as text, rounded up to minutes, such as ``26 h`` or ``1 h 5 min``."""
    minutes = -(-late // timedelta(minutes=1))
    hours, rest = divmod(minutes, 60)
    return " ".join(filter(None, (f"{hours} h" if hours else "", f"{rest} min" if rest else ""))) or "0 min"


def later_of(now: Mapping[str, Handed], before: Sequence[HandIn], same_work: Mapping[str, bool]) -> dict[str, Handed]:
    """Return, for each module, the submission time that decides the penalty: the time of this run or of an earlier run.

    - If only one run has a time, this time decides.
    - If the submission changed, the time of this run decides.
    - If the submission did not change, a time in the staff's record (``submitted.csv``) replaces the date of a file.
      If both times are dates of files, the earlier time decides, because copying gives files new dates. If both times
      are dates in a ``.zip``, the time of the earlier run decides, because these dates have no time zone, and copying
      does not change them.
    - If both runs have a time in the staff's record, this run's time decides. If this time is for all modules, the
      earlier of both times decides, because another module may be the reason for the later time.

    Args:
        now: the times of this run, by module.
        before: the times in the student's stored report.
        same_work: for each module, True if the stored report was made from the submission that is graded now.
    """
    held = {one.module: Handed(datetime.fromisoformat(one.submitted), one.source) for one in before}
    found = dict(held)
    for module, at in now.items():
        old = held.get(module)
        if old is None or not same_work.get(module, False):
            found[module] = at
        elif at.source == STATED:
            found[module] = old if at.for_all and old.source == STATED and old.time < at.time else at
        elif old.source != STATED and not at.source == old.source == ZIPPED and at.time < old.time:
            found[module] = at
    return {module: replace(at, time=at.time.replace(microsecond=0)) for module, at in found.items()}
