"""What a class answered to the questions that ask for a number: how far from right, and with which slips."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from grader.common.result import Report, Result
from grader.judging.units import BadAnswer, parse

LARGEST = 1000.0
"""Answers farther off than this factor are counted at the edge."""
_STEPS = 9
"""Bars on each side of the right answer."""


@dataclass(frozen=True)
class Slip:
    """A known slip that led to answers. ``ratio``: the middle one of them, divided by the right answer."""

    mark: str
    name: str
    hint: str
    ratio: float
    students: tuple[str, ...]


@dataclass(frozen=True)
class AnswerBar:
    """Answers between ``low`` and ``high`` times the right one: how many are right, of which slip, and of none."""

    low: float
    high: float
    right: int
    slips: tuple[tuple[str, int], ...]
    other: int

    @property
    def total(self) -> int:
        return self.right + sum(n for _, n in self.slips) + self.other


@dataclass(frozen=True)
class Answers:
    """A class's answers to one question; bars go from low to high.

    ``off_scale`` are of another dimension, not positive, or not to be read; ``silent`` gave none.
    """

    exercise: str
    name: str
    label: str
    right: int
    answered: int
    silent: int
    off_scale: int
    bars: tuple[AnswerBar, ...]
    slips: tuple[Slip, ...]


@dataclass(frozen=True, slots=True)
class _Given:
    student: str
    result: Result
    ratio: float | None


def numeric_answers(reports: Sequence[Report]) -> list[Answers]:
    """Of every question that somebody was asked, in the order of the reports."""
    asked = dict.fromkeys((exercise, result.name) for report in reports for exercise, result in _numbers(report))
    return [_answers(exercise, name, _given(reports, exercise, name)) for exercise, name in asked]


def _numbers(report: Report, exercise: str = "") -> Iterator[tuple[str, Result]]:
    """The answers that were handed in, to the questions of one exercise or of all."""
    for part in report.exercises:
        for result in part.results if part.handed_in and exercise in ("", part.exercise) else ():
            if result.kind == "number" and result.status in ("passed", "failed"):
                yield part.exercise, result


def _given(reports: Sequence[Report], exercise: str, name: str) -> list[_Given]:
    """A whole class's to one question; to all questions they would take memory."""
    return [
        _Given(report.student, result, _ratio(str(result.actual or ""), str(result.expected or "")))
        for report in reports
        for _, result in _numbers(report, exercise)
        if result.name == name
    ]


@lru_cache(1000)
def _ratio(actual: str, expected: str) -> float | None:
    """What was answered, divided by what is right; None where there is no such positive number."""
    try:
        given = parse(actual.removeprefix("read as "), "")
        right = parse(expected, "")
    except BadAnswer:
        return None
    if given.dimension != right.dimension or not right.value:
        return None
    ratio = given.value / right.value
    return ratio if math.isfinite(ratio) and ratio > 0 else None


def _answers(exercise: str, name: str, group: list[_Given]) -> Answers:
    silent = sum(given.result.actual is None for given in group)
    slips = _slips(group)
    return Answers(
        exercise=exercise,
        name=name,
        label=group[0].result.label,
        right=sum(given.result.status == "passed" for given in group),
        answered=len(group) - silent,
        silent=silent,
        off_scale=sum(given.ratio is None for given in group) - silent,
        bars=_bars(group, {slip.name: slip.mark for slip in slips}),
        slips=slips,
    )


def _slips(group: list[_Given]) -> tuple[Slip, ...]:
    """The most common first, lettered."""
    by_name: dict[str, list[_Given]] = defaultdict(list)
    for given in group:
        if given.result.misconception:
            by_name[given.result.misconception].append(given)
    ranked = sorted(by_name, key=lambda name: (-len(by_name[name]), name))
    found = []
    for number, name in enumerate(ranked):
        theirs = by_name[name]
        ratios = sorted(given.ratio for given in theirs if given.ratio is not None)
        middle = ratios[len(ratios) // 2] if ratios else math.nan
        mark = chr(ord("a") + number) if number < 26 else str(number + 1)
        found.append(Slip(mark, name, theirs[0].result.hint, middle, tuple(given.student for given in theirs)))
    return tuple(found)


def _bars(group: list[_Given], marks: dict[str, str]) -> tuple[AnswerBar, ...]:
    """On a logarithmic scale that holds all answers, the right one in the middle of the middle bar."""
    placed = [(given, math.log(min(max(given.ratio, 1 / LARGEST), LARGEST))) for given in group if given.ratio]
    if not placed:
        return ()
    reach = max(math.log(4), *(abs(at) for _, at in placed))
    width = 2 * reach / (2 * _STEPS)
    bars: dict[int, list[Result]] = defaultdict(list)
    for given, at in placed:
        # only what is right stands in the middle, however tolerant the question is
        nearest = round(at / width) or (1 if at > 0 else -1)
        bars[0 if given.result.status == "passed" else nearest].append(given.result)
    return tuple(_bar(k, width, bars[k], marks) for k in range(-_STEPS, _STEPS + 1))


def _bar(k: int, width: float, results: list[Result], marks: dict[str, str]) -> AnswerBar:
    slips = Counter(marks[r.misconception] for r in results if r.misconception)
    right = sum(r.status == "passed" for r in results)
    return AnswerBar(
        low=math.exp((k - 0.5) * width),
        high=math.exp((k + 0.5) * width),
        right=right,
        slips=tuple(sorted(slips.items())),
        other=len(results) - right - slips.total(),
    )
