"""A class's numeric answers, and histograms.

An answer counts by its ratio to the right answer, and by its misconception. A histogram is an SVG picture of a class's
scores, or of its answers to a question.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median_high

from grader.common.result import READ_AS, Report, Result
from grader.judging.units import BadAnswer, parse
from grader.reports.points import counted
from grader.reports.rates import common_label

LARGEST = 1000.0
"""The largest factor that a histogram shows. Answers farther from the right answer count at the histogram's edge."""
_STEPS = 9
"""Number of histogram bars on each side of the right answer."""
WIDTH, HEIGHT = 400.0, 130.0
_TOP = 20.0


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
        given = parse(actual.removeprefix(READ_AS), "")
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
        ratios = [ratio for ratio in own if ratio is not None]
        middle = median_high(ratios) if ratios else math.nan
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


@dataclass(frozen=True)
class BarSegment:
    """A part of a column. Its ``kind`` (right, misconception, other or count) decides its pattern and colour."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True)
class Column:
    """One column of a histogram. ``text``: the column's tooltip. ``note``: text above the column."""

    pieces: tuple[BarSegment, ...]
    note: str
    text: str


@dataclass(frozen=True)
class Histogram:
    """Columns in a frame of ``WIDTH`` by ``HEIGHT``, ticks as (x position, text) below the frame, and a description."""

    columns: tuple[Column, ...]
    ticks: tuple[tuple[float, str], ...]
    alt: str


def score_histogram(percents: Iterable[float]) -> Histogram:
    """Draw the number of students in each of ten ranges of percentages. The last range includes 100 and more."""
    counts = [0] * 10
    for percent in percents:
        counts[min(9, int(percent // 10))] += 1
    spans = [f"{10 * i} to {10 * i + 10}%" if i < 9 else "90% and more" for i in range(10)]
    stacks = [[("count", n, "")] for n in counts]
    texts = [f"{span}: {counted(n, 'student')}" for span, n in zip(spans, counts, strict=True)]
    ticks = [(WIDTH * i / 10, f"{10 * i}%") for i in range(0, 11, 2)]
    return _histogram(stacks, texts, ticks, "Scores. " + "; ".join(texts))


def answer_histogram(answers: Answers) -> Histogram:
    """Draw a column for each range of the ratio answer / right answer, on a logarithmic scale.

    Letters above a column name the misconceptions of the answers in the column.
    """
    stacks = [
        [
            ("right", bar.right, ""),
            *(("misconception", n, mark) for mark, n in bar.misconceptions),
            ("other", bar.other, ""),
        ]
        for bar in answers.bars
    ]
    texts = [_of_bar(bar) for bar in answers.bars]
    middles = [(bar.low * bar.high) ** 0.5 for bar in answers.bars]
    step = WIDTH / max(1, len(stacks))
    shown = [(step * (i + 0.5), f"×{middle:.2g}") for i, middle in enumerate(middles)][::3]
    misconceptions = "".join(
        f"; {counted(len(s.students), 'answer')} by the misconception {s.name}" for s in answers.misconceptions
    )
    alt = f"{answers.right} of {counted(answers.answered, 'answer')} right{misconceptions}"
    return _histogram(stacks, texts, shown, alt)


def _of_bar(bar: AnswerBar) -> str:
    misconceptions = "".join(f", {n} of misconception {mark}" for mark, n in bar.misconceptions)
    return f"×{bar.low:.3g} to ×{bar.high:.3g}: {bar.right} right{misconceptions}, {bar.other} other"


def _histogram(
    stacks: Sequence[Sequence[tuple[str, int, str]]],
    texts: Sequence[str],
    ticks: Sequence[tuple[float, str]],
    alt: str,
) -> Histogram:
    totals = [sum(n for _, n, _ in stack) for stack in stacks]
    columns = []
    for stack, text, total in zip(stacks, texts, totals, strict=True):
        pieces, y = [], HEIGHT
        for kind, n, _ in stack:
            if n:
                height = (HEIGHT - _TOP) * n / max(totals)
                y -= height
                pieces.append(BarSegment(kind, round(y, 1), round(height, 1)))
        letters = "".join(dict.fromkeys(mark for _, n, mark in stack if n and mark))
        note = " ".join(filter(None, [str(total) if total else "", letters]))
        columns.append(Column(tuple(pieces), note, text))
    return Histogram(tuple(columns), tuple((round(x, 1), text) for x, text in ticks), alt)
