"""A class's results in modules, exercises and checks, and its misconceptions."""

from __future__ import annotations

import re
import statistics
from array import array
from collections import Counter, defaultdict
from difflib import SequenceMatcher
from functools import lru_cache

from pydantic import BaseModel

from grader.common.result import ExerciseReport, Report
from grader.reports.points import percentage

GAP = "…"


class AssignmentRate(BaseModel, frozen=True, extra="forbid"):
    """A class's results in one module, without extensions (exercises for extra credit).

    ``mean``: the mean percentage of the students who handed in the module; None if no student handed it in, or if the
    module has only extensions.
    """

    module: str
    submissions: int
    handed_in: int
    mean: float | None
    full: int


class ExerciseRate(BaseModel, frozen=True, extra="forbid"):
    """A class's results in one exercise: the mean percentage, and the number of students with full marks."""

    exercise: str
    title: str
    submissions: int
    mean: float
    full: int


class CheckRate(BaseModel, frozen=True, extra="forbid"):
    """The number of students who passed one check, among the students who handed in the check's exercise.

    ``rate`` is the percentage of the judged results that passed. Broken results (the grader failed) are not judged.
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
    """A misconception, and the students who have it."""

    exercise: str
    name: str
    hint: str
    students: int
    who: list[str]


class AssignmentRates:
    """Count a class's results in each module, one report at a time."""

    def __init__(self) -> None:
        self._submissions: Counter[str] = Counter()
        self._percents: dict[str, array[float]] = {}
        self._handed_in: Counter[str] = Counter()

    def add(self, report: Report) -> None:
        by_module: dict[str, list[ExerciseReport]] = {}
        for exercise in report.exercises:
            by_module.setdefault(exercise.module, []).append(exercise)
        self._submissions.update(by_module.keys())
        for module, exercises in by_module.items():
            if any(e.handed_in for e in exercises):
                self._handed_in[module] += 1
                if required := [e for e in exercises if not e.extension]:
                    earned, points = sum(e.earned for e in required), sum(e.points for e in required)
                    self._percents.setdefault(module, array("d")).append(percentage(earned, points))

    def rates(self) -> list[AssignmentRate]:
        """Return the rates of all modules, in the order of the modules' ids."""
        return [self._rate(module) for module in sorted(self._submissions)]

    def _rate(self, module: str) -> AssignmentRate:
        percents = self._percents.get(module, array("d"))
        return AssignmentRate(
            module=module,
            submissions=self._submissions[module],
            handed_in=self._handed_in[module],
            mean=round(statistics.fmean(percents), 2) if percents else None,
            full=sum(percent >= 100 for percent in percents),
        )


class ExerciseRates:
    """Count a class's results in each exercise, one report at a time.

    An extension is optional, so its rate counts only students who handed it in.
    """

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}  # exercise -> title, in order of first occurrence in reports
        self._percents: dict[str, array[float]] = {}
        self._full: Counter[str] = Counter()

    def add(self, report: Report) -> None:
        for e in report.exercises:
            if e.handed_in or not e.extension:
                self._titles.setdefault(e.exercise, e.title)
                self._percents.setdefault(e.exercise, array("d")).append(percentage(e.earned, e.points))
                self._full[e.exercise] += e.earned >= e.points

    def rates(self) -> list[ExerciseRate]:
        return [
            ExerciseRate(
                exercise=name,
                title=title,
                submissions=len(self._percents[name]),
                mean=round(statistics.fmean(self._percents[name]), 2),
                full=self._full[name],
            )
            for name, title in self._titles.items()
        ]


class CheckRates:
    """Count how many students passed each check and question, one report at a time."""

    def __init__(self) -> None:
        # The bool is True for a public check. A public and a hidden check may share a name.
        self._labels: dict[tuple[str, str, bool], str] = {}
        self._states: defaultdict[tuple[str, str, bool], Counter[str]] = defaultdict(Counter)

    def add(self, report: Report) -> None:
        for exercise in report.exercises:
            for result in exercise.results if exercise.handed_in else ():
                if result.kind != "written":
                    key = exercise.exercise, result.name, result.public
                    self._labels[key] = common_label(self._labels.get(key, result.label), result.label)
                    self._states[key][result.status] += 1

    def rates(self) -> list[CheckRate]:
        found = []
        for (exercise, name, public), label in self._labels.items():
            states = self._states[exercise, name, public]
            counts = {state: states[state] for state in ("passed", "failed", "blocked", "broken")}
            judged = states.total() - states["broken"]
            rate = percentage(states["passed"], judged) if judged else None
            found.append(CheckRate(exercise=exercise, name=name, label=label, public=public, **counts, rate=rate))
        return found


class MisconceptionCounts:
    """Find which students have each misconception, one report at a time."""

    def __init__(self) -> None:
        self._students: dict[tuple[str, str], set[str]] = {}
        self._hints: dict[tuple[str, str], str] = {}

    def add(self, report: Report) -> None:
        for exercise in report.exercises:
            for result in exercise.results:
                if result.misconception:
                    key = exercise.exercise, result.misconception
                    self._students.setdefault(key, set()).add(report.student)
                    self._hints.setdefault(key, result.hint)

    def counts(self) -> list[MisconceptionCount]:
        """Return the counts, the most common misconception first."""
        ranked = sorted(self._students, key=lambda key: (-len(self._students[key]), key))
        return [
            MisconceptionCount(
                exercise=exercise,
                name=name,
                hint=self._hints[exercise, name],
                students=len(self._students[exercise, name]),
                who=sorted(self._students[exercise, name]),
            )
            for exercise, name in ranked
        ]


@lru_cache(10_000)
def common_label(one: str, other: str) -> str:
    """Return a label with gaps where two students' labels differ in numbers, such as ``How long do … bytes take?``."""
    if one == other:
        return one
    mine, theirs = (re.findall(r"\w+(?:\.\d+)?|…|\s+|[^\w\s]", label) for label in (one, other))
    parts: list[str] = []
    for _, start, end, other_start, other_end in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        same = mine[start:end] == theirs[other_start:other_end]
        parts += mine[start:end] if same else [GAP]
    return re.sub(r"…(\s*…)+", GAP, "".join(parts))
