"""The page that shows groups and pairs of students with unusually similar code, for a person to review."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from markupsafe import Markup

from grader.wings.similar.comparing import Comparison, Pair, Passage, StudentCode, WordsOf, passages
from grader.wings.similar.inside.tokens import Word, words

RARE = 0.25
"""The least weight of a shared passage that the page marks."""


@dataclass(frozen=True)
class PairRow:
    """A row of the page's list: a pair of students. ``sides``: for each student, (name, HTML) of files and cells."""

    number: int
    module: str
    pair: Pair
    sides: tuple[list[tuple[str, Markup]], list[tuple[str, Markup]]]


@dataclass(frozen=True)
class Group:
    """Students whose code in one module is linked by unusually similar pairs, directly or through other students.

    Attributes:
        students: the students' names, sorted.
        pairs: the pairs that connect the students, the most similar pair first.
    """

    module: str
    students: tuple[str, ...]
    pairs: tuple[Pair, ...]


def groups(compared: Mapping[str, Comparison]) -> list[Group]:
    """Return the groups of students in all modules. The group with the most similar pair comes first."""
    found = [group for module, of in compared.items() for group in _groups_of(module, of.pairs)]
    return sorted(found, key=lambda group: (-group.pairs[0].shared, group.module, group.students))


def _groups_of(module: str, pairs: Sequence[Pair]) -> list[Group]:
    members: dict[str, set[str]] = {}
    unusual = [pair for pair in pairs if pair.unusual]
    for pair in unusual:
        one, other = (members.setdefault(work.student, {work.student}) for work in (pair.one, pair.other))
        if one is not other:
            one |= other
            members |= dict.fromkeys(other, one)
    distinct = {id(group): group for group in members.values()}.values()
    return [
        Group(module, tuple(sorted(group)), tuple(pair for pair in unusual if pair.one.student in group))
        for group in distinct
    ]


def listed(compared: Mapping[str, Comparison], most: int) -> list[tuple[str, Pair]]:
    """Return up to ``most`` pairs of students, each as (module, pair).

    The most similar pair of each group comes first, then the second pair of each group, and so on. Pairs that are not
    unusually similar come last, the most similar of them first.
    """
    turns = zip_longest(*([(group.module, pair) for pair in group.pairs] for group in groups(compared)))
    found = [pair for turn in turns for pair in turn if pair is not None]
    usual = [(module, pair) for module, of in compared.items() for pair in of.pairs if not pair.unusual]
    usual.sort(key=lambda f: (-f[1].shared, f[0], f[1].one.student, f[1].other.student))
    return [*found, *usual][:most]


def lines(compared: Mapping[str, Comparison], most: int, words_of: WordsOf = words) -> list[PairRow]:
    found = []
    for number, (module, pair) in enumerate(listed(compared, most), start=1):
        one, other = side_by_side(pair, compared[module].weights, words_of)
        found.append(
            PairRow(number, module, pair, (_as_html(one, other, number, "ab"), _as_html(other, one, number, "ba")))
        )
    return found


def _as_html(
    here: Sequence[MarkedFile], there: Sequence[MarkedFile], pair: int, sides: str
) -> list[tuple[str, Markup]]:
    """Return (name, HTML) of each file of the student ``here``, with links to passages shared with ``there``."""
    known = {piece.number for part in there for piece in part.pieces}
    seen: set[int] = {0}
    shown = []
    for part in here:
        text = Markup("")
        for piece in part.pieces:
            text += (
                _marked(piece, pair, sides, piece.number not in seen, piece.number in known)
                if piece.number
                else piece.text
            )
            seen.add(piece.number)
        shown.append((part.name, text))
    return shown


def _marked(piece: TextSpan, pair: int, sides: str, first: bool, linked: bool) -> Markup:
    anchor = Markup(' id="p{}{}{}"').format(pair, sides[0], piece.number) if first else ""
    link = Markup(' href="#p{}{}{}"').format(pair, sides[1], piece.number) if linked else ""
    return Markup("<mark{}><a{}>{}</a>{}</mark>").format(anchor, link, piece.number, piece.text)


# -- two students' code side by side, with the passages that both share -------------------------------


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
