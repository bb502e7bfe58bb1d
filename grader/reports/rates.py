"""How a class did on modules, exercises and checks, and what it misunderstood."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable

from pydantic import BaseModel

from grader.common.result import ExerciseReport, Report, Result
from grader.reports.points import percentage


class AssignmentRate(BaseModel, frozen=True, extra="forbid"):
    """How a class did on one module, extensions left out: ``mean`` is a percentage of those who handed it in.

    It is None without any, and where all of the module is a bonus.
    """

    module: str
    submissions: int
    handed_in: int
    mean: float | None
    full: int


class ExerciseRate(BaseModel, frozen=True, extra="forbid"):
    """How a class did on one exercise: mean percent, and how many have full marks."""

    exercise: str
    title: str
    submissions: int
    mean: float
    full: int


class CheckRate(BaseModel, frozen=True, extra="forbid"):
    """How many passed one check, of those who handed the exercise in.

    ``rate`` is a percentage of those judged: broken ones are left out.
    """

    exercise: str
    name: str
    label: str
    public: bool
    passed: int
    failed: int
    blocked: int
    broken: int
    rate: float | None


class MisconceptionCount(BaseModel, frozen=True, extra="forbid"):
    """How many students have one misconception, and who."""

    exercise: str
    name: str
    hint: str
    students: int
    who: list[str]


def assignment_rates(reports: list[Report], extensions: Collection[str]) -> list[AssignmentRate]:
    """By module, in the order of their ids."""
    modules = sorted({e.module for r in reports for e in r.exercises})
    return [_assignment_rate(module, reports, extensions) for module in modules]


def _assignment_rate(module: str, reports: list[Report], extensions: Collection[str]) -> AssignmentRate:
    by_student = [[e for e in r.exercises if e.module == module] for r in reports]
    done = [exercises for exercises in by_student if any(e.handed_in for e in exercises)]
    required = [[e for e in exercises if e.exercise not in extensions] for exercises in done]
    percents = [_percent_of(exercises) for exercises in required if exercises]
    return AssignmentRate(
        module=module,
        submissions=len(list(filter(None, by_student))),
        handed_in=len(done),
        mean=round(statistics.fmean(percents), 2) if percents else None,
        full=sum(percent >= 100 for percent in percents),
    )


def _percent_of(exercises: list[ExerciseReport]) -> float:
    return percentage(sum(e.earned for e in exercises), sum(e.points for e in exercises))


def _results(reports: list[Report]) -> Iterable[tuple[Report, ExerciseReport, Result]]:
    return ((r, e, result) for r in reports for e in r.exercises for result in e.results)


def exercise_rates(reports: list[Report], extensions: Collection[str]) -> list[ExerciseRate]:
    """Extensions are of those who handed them in: nobody has to."""
    groups: dict[str, list[ExerciseReport]] = defaultdict(list)
    for report in reports:
        for exercise in report.exercises:
            if exercise.handed_in or exercise.exercise not in extensions:
                groups[exercise.exercise].append(exercise)
    return [
        ExerciseRate(
            exercise=name,
            title=group[0].title,
            submissions=len(group),
            mean=round(statistics.fmean(percentage(e.earned, e.points) for e in group), 2),
            full=sum(e.earned >= e.points for e in group),
        )
        for name, group in groups.items()
    ]


def check_rates(reports: list[Report]) -> list[CheckRate]:
    """In the order in which the reports have them."""
    groups: dict[tuple[str, str, bool], list[Result]] = defaultdict(list)  # a check may have a hidden twin
    for _, exercise, result in _results(reports):
        if exercise.handed_in and result.kind != "written":
            groups[exercise.exercise, result.name, result.public].append(result)
    return [_check_rate(exercise, group) for (exercise, _, _), group in groups.items()]


def _check_rate(exercise: str, group: list[Result]) -> CheckRate:
    states = [r.status for r in group]
    passed, broken = states.count("passed"), states.count("broken")
    return CheckRate(
        exercise=exercise,
        name=group[0].name,
        label=group[0].label,
        public=group[0].public,
        passed=passed,
        failed=states.count("failed"),
        blocked=states.count("blocked"),
        broken=broken,
        rate=percentage(passed, len(group) - broken) if len(group) > broken else None,
    )


def count_misconceptions(reports: list[Report]) -> list[MisconceptionCount]:
    """The most common first."""
    students: dict[tuple[str, str], set[str]] = defaultdict(set)
    hints: dict[tuple[str, str], str] = {}
    for report, exercise, result in _results(reports):
        if result.misconception:
            key = exercise.exercise, result.misconception
            students[key].add(report.student)
            hints.setdefault(key, result.hint)
    ranked = sorted(students, key=lambda key: (-len(students[key]), key))
    return [
        MisconceptionCount(
            exercise=e, name=n, hint=hints[e, n], students=len(students[e, n]), who=sorted(students[e, n])
        )
        for e, n in ranked
    ]
