"""Histograms as SVG pictures: a class's scores, and its answers to a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grader.reports.answers import AnswerBar, Answers
from grader.reports.points import counted

WIDTH, HEIGHT = 400.0, 130.0
_TOP, _GAP = 20.0, 3.0


@dataclass(frozen=True)
class BarSegment:
    """A part of a column. Its ``kind`` (right, misconception, other or count) decides its pattern and colour."""

    kind: str
    y: float
    height: float
    mark: str = ""


@dataclass(frozen=True)
class Column:
    """One column of a histogram. ``text``: the column's tooltip. ``note``: text above the column."""

    x: float
    width: float
    top: float
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
    most, step = max([1, *totals]), WIDTH / max(1, len(stacks))
    columns = []
    for i, (stack, text, total) in enumerate(zip(stacks, texts, totals, strict=True)):
        pieces, y = [], HEIGHT
        for kind, n, mark in stack:
            if n:
                height = (HEIGHT - _TOP) * n / most
                y -= height
                pieces.append(BarSegment(kind, round(y, 1), round(height, 1), mark))
        letters = "".join(dict.fromkeys(mark for kind, n, mark in stack if n and mark))
        note = " ".join(filter(None, [str(total) if total else "", letters]))
        columns.append(
            Column(round(i * step + _GAP / 2, 1), round(step - _GAP, 1), round(y, 1), tuple(pieces), note, text)
        )
    return Histogram(tuple(columns), tuple((round(x, 1), text) for x, text in ticks), alt)
