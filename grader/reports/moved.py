"""Warnings if late penalties or points set by hand changed many scores of a class."""

from __future__ import annotations

from dataclasses import dataclass

from grader.common.result import Report, Result
from grader.reports.points import counted, show_percent

MANY = 0.1
"""The largest share of the students, 0 to 1, whose points a rule may change without a warning."""
FAR = 5.0
"""Percentage points by which a rule may move the class's mean without a warning."""


@dataclass
class _Rule:
    """The effect of one rule (late penalties, or points set by hand) on a class.

    ``students``: the number of students with changed points. ``change``: the sum of the changes of their scores, in
    percentage points.
    """

    students: int = 0
    change: float = 0.0

    def add(self, points: float, of: float) -> None:
        self.students += abs(points) > 1e-9
        self.change += 100 * points / of


class MovedByRules:
    """Count the students with late penalties and the students with points set by hand, one report at a time."""

    def __init__(self) -> None:
        self._class, self._mean = 0, 0.0
        self._late, self._by_hand = _Rule(), _Rule()

    def add(self, report: Report) -> None:
        if report.points <= 0:
            return
        self._class += 1
        self._mean += 100 * report.earned / report.points
        self._late.add(-sum(one.penalty for one in report.hand_ins), report.points)
        self._by_hand.add(_set_by_hand(report), report.points)

    def warnings(self) -> list[str]:
        """Return a line for each rule with a large effect on the class.

        An effect is large if it changes the points of many students (more than the fraction ``MANY``), or the class
        mean by more than ``FAR`` percentage points.
        """
        rules = (
            ("Late penalties", self._late, "Check the record of submission times."),
            ("Points set by hand", self._by_hand, "Check overrides.yaml."),
        )
        return [
            f"{name} changed the points of {rule.students} of {counted(self._class, 'student')}: the class mean is "
            f"{self._percent(0.0)}, and {self._percent(rule.change)} without this change. {then}"
            for name, rule, then in rules
            if rule.students > MANY * self._class or abs(rule.change) > FAR * self._class
        ]

    def _percent(self, change: float) -> str:
        return show_percent((self._mean - change) / self._class)


def _set_by_hand(report: Report) -> float:
    """Return the sum of the changes that people made to a report's points.

    Results that the grader leaves to a person, such as answers in words, do not count.
    """
    change = 0.0
    for exercise in report.exercises:
        if exercise.by_hand:
            most = sum(result.points for result in exercise.results if _left_to_a_person(result))
            more = exercise.earned - exercise.by_hand.graded
            change += more - min(max(more, 0.0), most)
        else:
            change += sum(
                r.earned - r.by_hand.graded for r in exercise.results if r.by_hand and not _left_to_a_person(r)
            )
    return change


def _left_to_a_person(result: Result) -> bool:
    return result.status in ("broken", "waiting") or result.unjudged
