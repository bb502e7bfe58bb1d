"""A class's results, and the students and results that need review, with the reasons."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from pydantic import BaseModel

from grader.common.result import ExerciseReport, Report, Result, sum_of_points
from grader.common.text import A_DOCUMENT, A_LINK, IS_EMPTY, PASSED_OVER, a_few
from grader.reports.moved import MovedByRules
from grader.reports.points import counted
from grader.reports.rates import (
    AssignmentRate,
    AssignmentRates,
    CheckRate,
    CheckRates,
    ExerciseRate,
    ExerciseRates,
    MisconceptionCount,
    MisconceptionCounts,
)
from grader.reports.untrusted import clean
from grader.reports.wording import class_percent_of

LONGEST = 5000
"""The greatest length of a reason, in characters. A longer reason, caused by extremely long file names, is cut."""
MOST_NOTES = 3
SEVERAL = "several students"
"""Shown in place of a student's name if a reason concerns several students."""
UNGRADED = "not graded: "
"""The beginning of the reason of a submission that was not graded."""
ENDED = "XLA ended the process twice"
Kind = Literal[
    "not graded", "pending", "by hand", "suspicious", "look", "not found", "handed in again", "late", "class"
]
"""The kinds of reasons for review, in the order in which the class page lists them."""


class Attention(BaseModel, frozen=True, extra="forbid"):
    """A student whose case needs review, and the reason. ``student`` is "" if the reason concerns several students."""

    student: str
    reason: str
    kind: Kind = "look"


class BrokenResult(BaseModel, frozen=True, extra="forbid"):
    """A result that needs review: the grader failed, or the answer is in words."""

    student: str
    exercise: str
    name: str
    label: str
    points: float
    reason: str


def _reasons(report: Report) -> Iterator[tuple[Kind, str]]:
    """Yield the reasons for review that a report shows. A reason may be empty."""
    if report.pending > 0:
        yield "pending", _whats_pending(report)
        yield "by hand", _to_be_read(report)
    yield "look", ended_xla(report)
    yield "not found", _not_found(report)
    yield "handed in again", _several(report)


def name_of(student: str) -> str:
    """Return a student's name as reports show it: a name that is too long or unprintable is cleaned."""
    visible = student.replace("\u200c", "").replace("\u200d", "").isprintable()
    return student if visible and len(student) <= 100 else clean(student, 100)


def _fits_others(suspicion: Mapping[str, Any]) -> str:
    others = a_few([str(s) for s in suspicion["fits"]])
    return f"the answer to {suspicion['question']} is wrong, but would be right for the numbers of {others}"


def _several(report: Report) -> str:
    """Return the notes on files that were not graded because another file of the student was graded."""
    return a_few([note for note in report.notes if PASSED_OVER in note], 3)


def ended_xla(report: Report) -> str:
    """Return a reason for review that names the exercises in which XLA or a function crashed; '' if there are none.

    XLA ended the worker process twice on a program of such an exercise. This can be an attack, but honest code can
    crash XLA, too. On hidden inputs, a function that ended its process counts too, because the result hides the crash.
    """
    crashed: dict[str, dict[str, None]] = {}
    for exercise in report.exercises:
        # A function that crashes on inputs that are not hidden gets no hidden inputs, and its results say so.
        shown = {one.task for one in exercise.evidence if one.ended and not one.secret}
        hidden = [one.ended for one in exercise.evidence if one.ended and one.secret and one.task not in shown]
        if any(ENDED in text for text in (*hidden, *(result.reason for result in exercise.results))):
            crashed.setdefault(ENDED, {})[exercise.exercise] = None
        elif hidden:
            crashed.setdefault("the process of a function ended twice on hidden inputs", {})[exercise.exercise] = None
    found = [f"{what} during {', '.join(names)}" for what, names in crashed.items()]
    return f"{' and '.join(found)}: check whether the code is honest" if found else ""


def _whats_pending(report: Report) -> str:
    broken = [(e, r) for e, r in _waiting(report) if r.status == "broken"]
    names = ", ".join(dict.fromkeys(exercise.exercise for exercise, _ in broken))
    points = counted(sum_of_points(r.points for _, r in broken), "point")
    return f"{points} pending in {names}: {broken[0][1].reason}" if broken else ""


def _to_be_read(report: Report) -> str:
    """Return a reason for review that lists the written answers without points; '' if there are none."""
    found = [(e, r) for e, r in _waiting(report) if r.status == "waiting"]
    points = counted(sum_of_points(r.points for _, r in found), "point")
    return f"needs grading, {points}: {a_few([f'{e.exercise}/{r.name}' for e, r in found])}" if found else ""


def _waiting(report: Report) -> list[tuple[ExerciseReport, Result]]:
    return [(e, r) for e in report.exercises for r in e.waiting]


def _not_found(report: Report) -> str:
    """Return a reason for review, or '' if there is none.

    A report needs review in each of these cases:

    - An exercise that is no extension was not handed in, but the submission has an unread file. The grader could not
      read this file, or the file belongs to no exercise. The file may hold the missing exercise. If other files were
      graded, a document counts only if its name contains a missing exercise or module: many students add notes.
    - A file is a symbolic link, which the grader does not follow.
    """
    missing = [e.exercise for e in report.exercises if not e.extension and not e.handed_in]
    if report.exercises and not any(e.handed_in for e in report.exercises):
        lacking, unread = ["no file can be graded"], report.unread
    elif missing:
        lacking, unread = [f"nothing was handed in for {a_few(missing)}"], _beside_graded(report, missing)
    else:
        lacking, unread = [], [note for note in report.unread if A_LINK in note]
    return "" if all(note.endswith(IS_EMPTY) for note in unread) else "; ".join([*lacking, *_first(unread)])


def _beside_graded(report: Report, missing: Sequence[str]) -> list[str]:
    """Return the notes on unread files that may hold the exercises ``missing``, although other files were graded."""
    begun = {e.module for e in report.exercises if e.handed_in}
    wanted = [*missing, *{e.module for e in report.exercises} - begun]
    return [note for note in report.unread if A_DOCUMENT not in note or any(name in note for name in wanted)]


def _first(notes: list[str]) -> list[str]:
    left = len(notes) - MOST_NOTES
    return [*notes[:MOST_NOTES], *([f"and {counted(left, 'more note')} in the report"] if left > 0 else [])]


def broken_results(report: Report) -> list[BrokenResult]:
    return [
        BrokenResult(
            student=report.student,
            exercise=exercise.exercise,
            name=result.name,
            label=result.label,
            points=result.points,
            reason=result.reason,
        )
        for exercise in report.exercises
        for result in exercise.waiting
        if not result.unjudged
    ]


class Summary(BaseModel, frozen=True, extra="forbid"):
    """A class's results, and the cases that need review (``attention``).

    Attributes:
        warnings: texts about the whole class, such as many changed scores, or faults of the course.
        submissions: the number of students who handed in something that can be graded.
        mean, median, minimum, maximum: percentages of the points without bonus; None if no student has a percentage.
        absent: the number of students who handed in nothing that can be graded. These students have no report, or a
            report without an exercise that was handed in. ``submissions`` and the percentages exclude these students.
    """

    attention: list[Attention]
    warnings: list[str]
    assignments: list[AssignmentRate]
    submissions: int
    mean: float | None
    median: float | None
    minimum: float | None
    maximum: float | None
    exercises: list[ExerciseRate]
    checks: list[CheckRate]
    misconceptions: list[MisconceptionCount]
    broken: list[BrokenResult]
    absent: int = 0

    @property
    def hardest(self) -> list[CheckRate]:
        """The checks and questions that at least one student failed, sorted from most to fewest failures."""
        return sorted((c for c in self.checks if c.failed), key=lambda c: (-c.failed, c.rate or 0))

    @property
    def kinds(self) -> dict[str, str]:
        """Student -> the kinds of review that the student's case needs. The key "" is for several students."""
        found: dict[str, dict[str, None]] = {}
        for item in self.attention:
            found.setdefault(item.student, {})[item.kind] = None
        return {student: ", ".join(of) for student, of in found.items()}


class Counts:
    """Collect the numbers for a class's summary, one report at a time, in the order of the students."""

    def __init__(self) -> None:
        self._reasons: list[tuple[Kind, str, str]] = []  # (kind, student, reason)
        self._assignments = AssignmentRates()
        self._exercises = ExerciseRates()
        self._checks = CheckRates()
        self._misconceptions = MisconceptionCounts()
        self._moved = MovedByRules()
        self._broken: list[BrokenResult] = []
        self._percents = array("d")
        self._submissions = self._absent = 0

    def add(self, report: Report) -> None:
        self._reasons.extend((kind, report.student, reason) for kind, reason in _reasons(report) if reason)
        for part in (self._assignments, self._exercises, self._checks, self._misconceptions, self._moved):
            part.add(report)
        self._broken += broken_results(report)
        if (percent := class_percent_of(report)) is not None:
            self._percents.append(percent)
        self._submissions += report.handed_in
        self._absent += not report.handed_in

    def summary(
        self,
        *,
        not_graded: Mapping[str, str] | None = None,
        warnings: Iterable[str] = (),
        suspicions: Iterable[Mapping[str, Any]] = (),
        also: Iterable[tuple[str, str]] = (),
        absent: int = 0,
    ) -> Summary:
        """Return the summary of the counted reports.

        Args:
            not_graded: student -> the reason why the submission was not graded.
            warnings: faults of the course.
            suspicions: records (as in ``integrity.json``) of wrong answers that would be right with another student's
                numbers.
            also: (student, reason) for further cases that need review. The student is "" if the reason concerns several
                students.
            absent: the number of students on the roster without a report.
        """
        percents, order = self._percents, get_args(Kind)
        found: list[tuple[Kind, str, str]] = [
            *(("not graded", student, f"{UNGRADED}{reason}") for student, reason in sorted((not_graded or {}).items())),
            *(("suspicious", one["student"], _fits_others(one)) for one in suspicions),
            *(("class", student, reason) for student, reason in also),
            *self._reasons,
        ]
        return Summary(
            attention=[
                Attention(student=name_of(student), reason=clean(reason, LONGEST), kind=kind)
                for kind, student, reason in sorted(found, key=lambda one: order.index(one[0]))
            ],
            warnings=[*self._moved.warnings(), *warnings],
            assignments=self._assignments.rates(),
            submissions=self._submissions,
            mean=round(statistics.fmean(percents), 2) if percents else None,
            median=round(statistics.median(percents), 2) if percents else None,
            minimum=min(percents, default=None),
            maximum=max(percents, default=None),
            exercises=self._exercises.rates(),
            checks=self._checks.rates(),
            misconceptions=self._misconceptions.counts(),
            broken=self._broken,
            absent=absent + self._absent,
        )


def summarise(reports: Iterable[Report], **known: Any) -> Summary:
    """Return the summary of all reports. ``known``: the arguments of ``Counts.summary``."""
    counts = Counts()
    for report in reports:
        counts.add(report)
    return counts.summary(**known)
