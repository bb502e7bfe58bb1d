"""Who needs a person, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import BaseModel

from grader.common.result import Report
from grader.common.text import A_LINK
from grader.reports.points import counted
from grader.reports.untrusted import clean

ENDED = "XLA ended the process twice"


class Attention(BaseModel, frozen=True, extra="forbid"):
    """A student whom a person must look after, and why."""

    student: str
    reason: str


class BrokenResult(BaseModel, frozen=True, extra="forbid"):
    """A result a person must look at, because the grader failed."""

    student: str
    exercise: str
    name: str
    label: str
    points: float
    reason: str


def who_needs_a_person(
    reports: list[Report], not_graded: Mapping[str, str], extensions: Collection[str]
) -> list[Attention]:
    """Who was not graded, whose points are pending, over whose programs XLA ended, and whose work may not have been found."""
    found = [(student, f"not graded: {reason}") for student, reason in sorted(not_graded.items())]
    found += [(r.student, _whats_pending(r)) for r in reports if r.pending > 0]
    found += [(r.student, reason) for r in reports if (reason := ended_xla(r))]
    found += [(r.student, reason) for r in reports if (reason := _not_found(r, extensions))]
    return [Attention(student=clean(student, 100), reason=clean(reason, 600)) for student, reason in found]


def ended_xla(report: Report) -> str:
    """The exercises whose programs XLA itself could not stand, which honest work can meet with; '' for none."""
    names = dict.fromkeys(e.exercise for e in report.exercises for r in e.results if ENDED in r.reason)
    return f"{ENDED} over {', '.join(names)}: look whether it is honest work" if names else ""


def _whats_pending(report: Report) -> str:
    broken = [(e.exercise, r.reason) for e in report.exercises for r in e.results if r.status == "broken"]
    names = ", ".join(dict.fromkeys(exercise for exercise, _ in broken))
    return f"{counted(report.pending, 'point')} pending in {names}: {broken[0][1]}" if broken else ""


def _not_found(report: Report, extensions: Collection[str]) -> str:
    """What was handed in and could not be used, where something is missing; and links, which nobody means well by."""
    required = [e for e in report.exercises if e.exercise not in extensions]
    missing = [e.exercise for e in required if not e.handed_in]
    notes = report.notes if missing else [note for note in report.notes if A_LINK in note]
    if report.exercises and not any(e.handed_in for e in report.exercises):
        return "; ".join(["nothing was found that can be graded", *notes[:3]])
    lacking = [f"nothing was found for {', '.join(missing)}"] if missing else []
    return "; ".join([*lacking, *notes[:3]]) if notes else ""


def broken_results(reports: list[Report]) -> list[BrokenResult]:
    """All of a class."""
    return [
        BrokenResult(
            student=report.student,
            exercise=exercise.exercise,
            name=result.name,
            label=result.label,
            points=result.points,
            reason=result.reason,
        )
        for report in reports
        for exercise in report.exercises
        for result in exercise.results
        if result.status == "broken"
    ]
