"""Who needs a person, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel

from grader.common.result import ExerciseReport, Report, Result
from grader.common.text import A_LINK, PASSED_OVER, a_few
from grader.reports.points import counted
from grader.reports.untrusted import clean

ENDED = "XLA ended the process twice"
Kind = Literal[
    "not graded", "pending", "by hand", "suspicious", "look", "not found", "handed in again", "late", "class"
]


class Attention(BaseModel, frozen=True, extra="forbid"):
    """A student whom a person must look after, and why."""

    student: str
    reason: str
    kind: Kind = "look"


class BrokenResult(BaseModel, frozen=True, extra="forbid"):
    """A result a person must look at: the grader failed, or the answer is in words."""

    student: str
    exercise: str
    name: str
    label: str
    points: float
    reason: str


def who_needs_a_person(
    reports: list[Report],
    not_graded: Mapping[str, str],
    extensions: Collection[str],
    suspicions: Iterable[Mapping[str, Any]] = (),
) -> list[Attention]:
    """Who was not graded, whose points are pending, whose words are to be read, whose answers are right for others, over
    whose programs XLA ended, whose work may not have been found, and who handed in several versions; in this order.
    """
    missing = {r.student: reason for r in reports if (reason := _not_found(r, extensions))}
    found: dict[Kind, list[tuple[str, str]]] = {
        "not graded": [(student, f"not graded: {reason}") for student, reason in sorted(not_graded.items())],
        "pending": [(r.student, _whats_pending(r)) for r in reports if r.pending > 0],
        "by hand": [(r.student, _to_be_read(r)) for r in reports if r.pending > 0],
        "suspicious": [(s["student"], _fits_others(s)) for s in suspicions],
        "look": [(r.student, ended_xla(r)) for r in reports],
        "not found": list(missing.items()),
        "handed in again": [(r.student, _several(r)) for r in reports if r.student not in missing],
    }
    return [
        Attention(student=clean(student, 100), reason=clean(reason, 600), kind=kind)
        for kind, items in found.items()
        for student, reason in items
        if reason
    ]


def _fits_others(suspicion: Mapping[str, Any]) -> str:
    others = a_few([str(s) for s in suspicion["fits"]])
    return f"the answer to {suspicion['question']} is wrong, and right for the numbers of {others}"


def _several(report: Report) -> str:
    """Where several files could have been graded, which one was."""
    return a_few([note for note in report.notes if PASSED_OVER in note], 3)


def ended_xla(report: Report) -> str:
    """The exercises whose programs XLA itself could not stand, which honest work can meet with; '' for none."""
    names = dict.fromkeys(e.exercise for e in report.exercises for r in e.results if ENDED in r.reason)
    return f"{ENDED} over {', '.join(names)}: look whether it is honest work" if names else ""


def _whats_pending(report: Report) -> str:
    broken = [(e, r) for e, r in _waiting(report) if r.status == "broken"]
    names = ", ".join(dict.fromkeys(exercise.exercise for exercise, _ in broken))
    points = counted(round(sum(r.points for _, r in broken), 6), "point")
    return f"{points} pending in {names}: {broken[0][1].reason}" if broken else ""


def _to_be_read(report: Report) -> str:
    """The answers in words whose points nobody has given yet."""
    found = [(e, r) for e, r in _waiting(report) if r.status == "waiting"]
    points = counted(round(sum(r.points for _, r in found), 6), "point")
    return f"{points} to be given by hand: {a_few([f'{e.exercise}/{r.name}' for e, r in found])}" if found else ""


def _waiting(report: Report) -> list[tuple[ExerciseReport, Result]]:
    """What waits for a person."""
    return [(e, r) for e in report.exercises if e.by_hand is None for r in e.results if r.waits]


def _not_found(report: Report, extensions: Collection[str]) -> str:
    """What was handed in and could not be used, where something is missing; and links, which nobody means well by."""
    required = [e for e in report.exercises if e.exercise not in extensions]
    missing = [e.exercise for e in required if not e.handed_in]
    notes = report.notes if missing else [note for note in report.notes if A_LINK in note]
    if report.exercises and not any(e.handed_in for e in report.exercises):
        return "; ".join(["nothing was found that can be graded", *notes[:3]])
    lacking = [f"nothing was found for {a_few(missing)}"] if missing else []
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
        if result.waits and not result.unjudged and exercise.by_hand is None
    ]
