"""A class's numeric answers: the ratio of each answer to the right answer, and the misconceptions found."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from grader.common.result import Report, Result
from grader.judging.units import BadAnswer, parse
from grader.reports.labels import common_label

LARGEST = 1000.0
"""The largest factor that a histogram shows. Answers farther from the right answer count at the histogram's edge."""
_STEPS = 9
"""Number of histogram bars on each side of the right answer."""


@dataclass(frozen=True)
class MatchedMisconception:
    """A misconception of some students. ``ratio``: the median of the students' answers / the right answer."""

    mark: str
    name: str
    hint: str
    ratio: float
    students: tuple[str, ...]


@dataclass(frozen=True)
class AnswerBar:
    """A bar of a histogram: the answers whose ratio to the right answer is between ``low`` and ``high``.

    The middle bar has all answers that count as right, and no others. ``right``, ``misconceptions`` and ``other`` count
    the bar's answers.
    """

    low: float
    high: float
    right: int
    misconceptions: tuple[tuple[str, int], ...]
    other: int

    @property
    def total(self) -> int:
        return self.right + sum(n for _, n in self.misconceptions) + self.other


@dataclass(frozen=True)
class Answers:
    """A class's answers to one question.

    Attributes:
        off_scale: the number of answers that are unreadable, are not positive, or have a wrong kind of unit.
        silent: the number of students without an answer.
        bars: the histogram's bars. The first has the smallest answers.
    """

    exercise: str
    name: str
    label: str
    right: int
    answered: int
    silent: int
    off_scale: int
    bars: tuple[AnswerBar, ...]
    misconceptions: tuple[MatchedMisconception, ...]


@dataclass(frozen=True, slots=True)
class _Given:
    """One student's answer. ``ratio``: see ``_ratio``."""

    right: bool
    silent: bool
    ratio: float | None
    misconception: str


@dataclass
class _QuestionAnswers:
    """A class's answers to one question. Equal answers are counted together.

    Attributes:
        label: the common part of this question's labels. The numbers in a label may differ between students.
        hints: the hint of each misconception.
        students: the students with each misconception.
    """

    label: str
    given: Counter[_Given] = field(default_factory=Counter)
    hints: dict[str, str] = field(default_factory=dict)
    students: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


class NumericAnswers:
    """Collect the answers to every question that asks for a number, one report at a time."""

    def __init__(self) -> None:
        self._questions: dict[tuple[str, str], _QuestionAnswers] = {}

    def add(self, report: Report) -> None:
        for exercise, result in _numbers(report):
            key = exercise, result.name
            if key not in self._questions:
                self._questions[key] = _QuestionAnswers(result.label)
            question = self._questions[key]
            question.label = common_label(question.label, result.label)
            ratio = _ratio(str(result.actual or ""), str(result.expected or ""))
            question.given[_Given(result.status == "passed", result.actual is None, ratio, result.misconception)] += 1
            if result.misconception:
                question.hints.setdefault(result.misconception, result.hint)
                question.students[result.misconception].append(report.student)

    def answers(self) -> list[Answers]:
        """Return the answers to each question, in the order of the reports."""
        return [_answers(exercise, name, question) for (exercise, name), question in self._questions.items()]


def _numbers(report: Report) -> Iterator[tuple[str, Result]]:
    """Yield (exercise, result) for each graded numeric answer in the exercises that the student handed in."""
    for part in report.exercises:
        for result in part.results if part.handed_in else ():
            if result.kind == "number" and result.status in ("passed", "failed"):
                yield part.exercise, result


@lru_cache(1000)
def _ratio(actual: str, expected: str) -> float | None:
    """Return the given answer divided by the right answer; None if there is no positive ratio."""
    try:
        given = parse(actual.removeprefix("read as "), "")
        right = parse(expected, "")
    except BadAnswer:
        return None
    if given.dimension != right.dimension or not right.value:
        return None
    ratio = given.value / right.value
    return ratio if math.isfinite(ratio) and ratio > 0 else None


def _answers(exercise: str, name: str, question: _QuestionAnswers) -> Answers:
    given = question.given
    silent = sum(n for one, n in given.items() if one.silent)
    misconceptions = _misconceptions(question)
    return Answers(
        exercise=exercise,
        name=name,
        label=question.label,
        right=sum(n for one, n in given.items() if one.right),
        answered=given.total() - silent,
        silent=silent,
        off_scale=sum(n for one, n in given.items() if one.ratio is None) - silent,
        bars=_bars(given, {one.name: one.mark for one in misconceptions}),
        misconceptions=misconceptions,
    )


def _misconceptions(question: _QuestionAnswers) -> tuple[MatchedMisconception, ...]:
    """Return the misconceptions, the most common first, marked with the letters a, b, c, ..."""
    ranked = sorted(question.students, key=lambda name: (-len(question.students[name]), name))
    found = []
    for number, name in enumerate(ranked):
        own = (one.ratio for one in question.given.elements() if one.misconception == name)
        ratios = sorted(ratio for ratio in own if ratio is not None)
        middle = ratios[len(ratios) // 2] if ratios else math.nan
        mark = chr(ord("a") + number) if number < 26 else str(number + 1)
        found.append(MatchedMisconception(mark, name, question.hints[name], middle, tuple(question.students[name])))
    return tuple(found)


def _bars(group: Counter[_Given], marks: dict[str, str]) -> tuple[AnswerBar, ...]:
    """Return the histogram's bars, on a logarithmic scale. The middle bar is centred on the right answer."""
    placed = [(given, math.log(min(max(given.ratio, 1 / LARGEST), LARGEST))) for given in group if given.ratio]
    if not placed:
        return ()
    reach = max(math.log(4), *(abs(at) for _, at in placed))
    width = 2 * reach / (2 * _STEPS)
    bars: dict[int, Counter[_Given]] = defaultdict(Counter)
    for given, at in placed:
        # The middle bar has all right answers and no wrong answer, even if the question accepts a wide range.
        nearest = round(at / width) or (1 if at > 0 else -1)
        bars[0 if given.right else nearest][given] += group[given]
    return tuple(_bar(k, width, bars[k], marks) for k in range(-_STEPS, _STEPS + 1))


def _bar(k: int, width: float, given: Counter[_Given], marks: dict[str, str]) -> AnswerBar:
    misconceptions: Counter[str] = Counter()
    for one, n in given.items():
        if one.misconception:
            misconceptions[marks[one.misconception]] += n
    right = sum(n for one, n in given.items() if one.right)
    return AnswerBar(
        low=math.exp((k - 0.5) * width),
        high=math.exp((k + 0.5) * width),
        right=right,
        misconceptions=tuple(sorted(misconceptions.items())),
        other=given.total() - right - misconceptions.total(),
    )
