"""What a class knows and does not."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from grader.common.result import Report
from grader.reports.attention import Attention, BrokenResult, broken_results, who_needs_a_person
from grader.reports.rates import (
    AssignmentRate,
    CheckRate,
    ExerciseRate,
    MisconceptionCount,
    assignment_rates,
    check_rates,
    count_misconceptions,
    exercise_rates,
)
from grader.reports.untrusted import clean
from grader.reports.wording import percent_of


class Summary(BaseModel, frozen=True, extra="forbid"):
    """A class: ``mean`` to ``maximum`` are percentages of the points, a bonus left out; None without any.

    ``attention`` is who needs a person, ``warnings`` what is wrong with the course itself, ``absent`` how many are in the roster
    and have no report, so that they are in none of these numbers.
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
        """The checks and questions that anybody failed, those that the most did first."""
        return sorted((c for c in self.checks if c.failed), key=lambda c: (-c.failed, c.rate or 0))


def summarise(
    reports: Iterable[Report],
    *,
    not_graded: Mapping[str, str] | None = None,
    extensions: Collection[str] = (),
    warnings: Iterable[str] = (),
    suspicions: Iterable[Mapping[str, Any]] = (),
    also: Iterable[tuple[str, str]] = (),
    absent: int = 0,
) -> Summary:
    """What a class knows and does not; the same for any order of the reports.

    Args:
        not_graded: student -> why.
        extensions: exercises that count as extra credit.
        warnings: what is wrong with the course.
        suspicions: wrong answers that are right for others' numbers, as ``integrity.json`` has them.
        also: (student, why) for others who need a person.
        absent: how many of the roster handed in nothing.
    """
    ordered = in_order(reports)
    percents = [percent for r in ordered if (percent := percent_of(r)) is not None]
    return Summary(
        attention=[
            *who_needs_a_person(ordered, not_graded or {}, extensions, suspicions),
            *(
                Attention(student=clean(student, 100), reason=clean(reason, 600), kind="class")
                for student, reason in also
            ),
        ],
        warnings=list(warnings),
        assignments=assignment_rates(ordered, extensions),
        submissions=len(ordered),
        mean=round(statistics.fmean(percents), 2) if percents else None,
        median=round(statistics.median(percents), 2) if percents else None,
        minimum=min(percents, default=None),
        maximum=max(percents, default=None),
        exercises=exercise_rates(ordered, extensions),
        checks=check_rates(ordered),
        misconceptions=count_misconceptions(ordered),
        broken=broken_results(ordered),
        absent=absent,
    )


def in_order(reports: Iterable[Report]) -> list[Report]:
    """By student; the same for any order that they come in."""
    listed = list(reports)
    count = Counter(r.student for r in listed)  # to write out everybody's takes seconds
    return sorted(listed, key=lambda r: (r.student, r.dumps() if count[r.student] > 1 else ""))
