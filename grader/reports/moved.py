"""Warnings if a rule, such as late penalties or points set by hand, changed many scores of a class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from grader.common.result import ExerciseReport, Report, Result
from grader.reports.points import counted, show_percent, tidy
from grader.reports.wording import class_percent_of

MANY = 0.1
"""The largest share of the students, 0 to 1, whose points a rule may change without a warning."""
FAR = 5.0
"""Percentage points by which a rule may move the class's mean without a warning."""


@dataclass
class Sums:
    """Sums over the students of a class: percentages, bonus points, other points, and the points possible."""

    students: int = 0
    percent: float = 0.0
    bonus: float = 0.0
    earned: float = 0.0
    points: float = 0.0

    def add(self, report: Report) -> None:
        percent = class_percent_of(report)
        if percent is None:
            return
        self.students += 1
        self.percent += percent
        self.bonus += report.bonus
        self.earned += report.earned - report.bonus
        self.points += report.points

    def means(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the text of each of the class's mean scores, such as ("mean bonus", "1.5 points")."""
        students = max(self.students, 1)
        yield "class mean", show_percent(self.percent / students)
        yield "mean bonus", counted(round(self.bonus / students, 2), "point")
        mean = tidy(round(self.earned / students, 2))
        yield "mean score", f"{mean} of {counted(round(self.points / students, 2), 'point')}"


@dataclass
class Effect:
    """The effect of one rule on the scores of a class.

    Attributes:
        students: the number of students who could earn points and handed in something.
        changed: the number of students with changed points.
        before, after: the sums without and with the rule.
    """

    students: int = 0
    changed: int = 0
    before: Sums = field(default_factory=Sums)
    after: Sums = field(default_factory=Sums)

    def add(self, before: Report, after: Report) -> None:
        """Add a student, whose report is ``before`` without the rule and ``after`` with it."""
        if (class_percent_of(before), class_percent_of(after)) != (None, None):
            self.students += 1
            self.changed += abs(before.earned - after.earned) > 1e-6 or abs(before.points - after.points) > 1e-6
            self.before.add(before)
            self.after.add(after)

    @property
    def is_large(self) -> bool:
        """True if the rule changes the points of many students, or moves the class mean far.

        Many: more than the fraction ``MANY`` of the students. Far: more than ``FAR`` percentage points.
        """
        was, now = (one.percent / max(one.students, 1) for one in (self.before, self.after))
        return self.changed > MANY * self.students or abs(was - now) > FAR + 1e-6

    def warnings(self, rule: str, advice: str) -> list[str]:
        """Return a line about the large effect of ``rule``, or [] if the effect is small.

        The line ends with ``advice``. It shows only one of the class's means: the first one that the rule changes.
        """
        if not self.is_large:
            return []
        pairs = zip(self.before.means(), self.after.means(), strict=True)
        changed_means = (
            f": the {what} is {now}, and {was} without this change" for (what, was), (_, now) in pairs if was != now
        )
        students, new_mean = f"{self.changed} of {counted(self.students, 'student')}", next(changed_means, "")
        return [f"{rule} change the points of {students}{new_mean}. {advice}"]


class MovedByRules:
    """Count the students with late penalties and the students with points set by hand, one report at a time."""

    def __init__(self) -> None:
        self._late, self._by_hand = Effect(), Effect()

    def add(self, report: Report) -> None:
        in_time = sum(one.penalty for one in report.hand_ins)
        self._late.add(report.model_copy(update={"earned": report.earned + in_time, "hand_ins": []}), report)
        self._by_hand.add(_as_the_grader_gave(report), report)

    def warnings(self) -> list[str]:
        """Return a line for each rule with a large effect on the class."""
        return [
            *self._late.warnings("Late penalties", "Check the record of submission times."),
            *self._by_hand.warnings("Points set by hand", "Check these points and their reasons."),
        ]


def _as_the_grader_gave(report: Report) -> Report:
    """Return the report without the changes that people made to its points."""
    changes = [_set_by_hand(exercise) for exercise in report.exercises]
    if not any(changes):
        return report
    exercises = [
        e.model_copy(update={"earned": e.earned - change}) if change else e
        for e, change in zip(report.exercises, changes, strict=True)
    ]
    return report.model_copy(update={"exercises": exercises, "earned": report.earned - sum(changes)})


def _set_by_hand(exercise: ExerciseReport) -> float:
    """Return the change that people made to an exercise's points.

    Results that the grader leaves to a person, such as answers in words, do not count.
    """
    if exercise.by_hand is None:
        return sum(r.earned - r.by_hand.graded for r in exercise.results if r.by_hand and not left_to_a_person(r))
    most = sum(result.points for result in exercise.results if left_to_a_person(result))
    more = exercise.earned - exercise.by_hand.graded
    return more - min(max(more, 0.0), most)


def left_to_a_person(result: Result) -> bool:
    """Return whether a person gives the points, because the grader failed or cannot judge the answer."""
    return result.status in ("broken", "waiting") or result.unjudged
