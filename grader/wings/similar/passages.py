"""Two students' code side by side, with the passages that both share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.wings.similar.comparing import Pair, Passage, StudentCode, WordsOf, passages
from grader.wings.similar.tokens import Word, words

RARE = 0.25
"""The least weight of a shared passage that the page marks."""


@dataclass(frozen=True)
class TextSpan:
    """A piece of code. ``number``: the number of its passage; 0 for a piece that is not marked."""

    text: str
    number: int


@dataclass(frozen=True)
class MarkedFile:
    """A file or a notebook cell, cut into marked and unmarked pieces."""

    name: str
    pieces: tuple[TextSpan, ...]


@dataclass
class _Stretch:
    start: int
    end: int
    passages: list[Passage]


def side_by_side(
    pair: Pair, weights: Mapping[Passage, float], words_of: WordsOf = words
) -> tuple[list[MarkedFile], list[MarkedFile]]:
    """Return both students' code, with marks on the passages that both share and that are rare in the class.

    The passages are numbered in the order in which the first student's code has them.
    """
    ones, others = ([list(passages(words_of(part.text))) for part in work.parts] for work in (pair.one, pair.other))
    shared = _rare(ones, weights) & _rare(others, weights)
    runs, runs_of_other = ([_runs(found, shared) for found in of] for of in (ones, others))
    numbers: dict[Passage, int] = {}
    for number, run in enumerate((run for of_part in runs for run in of_part), start=1):
        for passage in run.passages:
            numbers.setdefault(passage, number)
    return _shown(pair.one, runs, numbers), _shown(pair.other, runs_of_other, numbers)


_Found = list[tuple[Passage, Sequence[Word]]]


def _rare(parts: Iterable[_Found], weights: Mapping[Passage, float]) -> set[Passage]:
    return {p for found in parts for p, _ in found if weights.get(p, 0) >= RARE}


def _runs(found: _Found, shared: Collection[Passage]) -> list[_Stretch]:
    runs: list[_Stretch] = []
    for passage, at in found:
        if passage not in shared:
            continue
        if runs and at[0].start <= runs[-1].end:
            runs[-1].end = at[-1].end
            runs[-1].passages.append(passage)
        else:
            runs.append(_Stretch(at[0].start, at[-1].end, [passage]))
    return runs


def _shown(work: StudentCode, runs: Sequence[list[_Stretch]], numbers: Mapping[Passage, int]) -> list[MarkedFile]:
    shown = []
    for part, of_part in zip(work.parts, runs, strict=True):
        pieces, done = [], 0
        for run in of_part:
            pieces += [
                TextSpan(part.text[done : run.start], 0),
                TextSpan(part.text[run.start : run.end], numbers[run.passages[0]]),
            ]
            done = run.end
        shown.append(MarkedFile(part.name, (*pieces, TextSpan(part.text[done:], 0))))
    return shown
