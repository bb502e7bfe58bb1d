"""A class's results, and the cases that need review."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from grader.common.result import Report
from grader.reports.attention import LONGEST, Attention, AttentionList, BrokenResult, broken_results, name_of
from grader.reports.moved import MovedByRules
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
        self._attention = AttentionList()
        self._assignments = AssignmentRates()
        self._exercises = ExerciseRates()
        self._checks = CheckRates()
        self._misconceptions = MisconceptionCounts()
        self._moved = MovedByRules()
        self._broken: list[BrokenResult] = []
        self._percents = array("d")
        self._submissions = self._absent = 0

    def add(self, report: Report) -> None:
        for part in (
            self._attention, self._assignments, self._exercises, self._checks, self._misconceptions, self._moved,
        ):  # fmt: skip
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
        percents = self._percents
        others = (
            Attention(student=name_of(student), reason=clean(reason, LONGEST), kind="class") for student, reason in also
        )
        return Summary(
            attention=[*self._attention.attention(not_graded or {}, suspicions), *others],
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
