"""Compare the code of each pair of students: passages that both share, weighted by how rare they are in the class.

A passage is ``LENGTH`` consecutive tokens. Passages in handed-out code do not count. The course's solution counts as
one more student. A passage that only two students have has weight 1, and a passage that all students have has weight 0.
In between, the weight is logarithmic in the number of students. The similarity of two students is the sum of the
weights of the passages that both have.
"""

from __future__ import annotations

import math
import statistics
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grader.wings.similar.inside.tokens import Word, words

LENGTH = 12
"""The number of tokens in a passage."""
FEW = 20
"""A class with fewer pairs has no base rate of similarity."""
NEARLY_ALL = 0.8
"""The least overlap that counts as unusual in a class without a base rate."""
LONGEST = 100_000
"""The largest number of characters of one student's code that are compared."""
_BLOCK = 8192
Passage = int  # a passage is stored as its hash, because a class has millions of passages
WordsOf = Callable[[str], Sequence[Word]]


@dataclass(frozen=True)
class Part:
    """A file or a notebook cell: the name that the page shows, and the code."""

    name: str
    text: str


@dataclass(frozen=True)
class StudentCode:
    """The code that one student submitted for one module."""

    student: str
    parts: tuple[Part, ...]

    @property
    def too_long(self) -> bool:
        return sum(len(part.text) for part in self.parts) > LONGEST

    def cut(self) -> StudentCode:
        """Return the part of the code that is compared: its first ``LONGEST`` characters."""
        left, parts = LONGEST, []
        for part in self.parts:
            parts.append(Part(part.name, part.text[:left]))
            left -= len(parts[-1].text)
        return StudentCode(self.student, tuple(parts))


@dataclass(frozen=True)
class Pair:
    """Two students, and the similarity of their code.

    Attributes:
        shared: the similarity, which is the sum of the weights of the passages that both students have.
        overlap: ``shared`` divided by the smaller of the total weights of the two students' passages, 0 to 1.
        unusual: whether ``shared`` exceeds ``Comparison.usual`` or, if ``usual`` is None, ``overlap`` is at least
            NEARLY_ALL.
    """

    one: StudentCode
    other: StudentCode
    shared: float
    overlap: float
    unusual: bool


@dataclass(frozen=True)
class Comparison:
    """The comparison of a class's code in one module.

    Attributes:
        works: the number of compared students. Students with only handed-out code are not compared.
        pairs: the pairs whose similarity is at least LENGTH, the most similar first.
        median: the median similarity of all pairs.
        usual: the limit above which a similarity is unusual (see ``_usual``); None if the class has too few pairs.
        weights: passage -> weight, for passages that several students have.
    """

    works: int
    pairs: list[Pair]
    median: float
    usual: float | None
    weights: Mapping[Passage, float]


def passages(found: Sequence[Word]) -> Iterator[tuple[Passage, Sequence[Word]]]:
    """Yield (passage, its tokens) for every passage in a list of tokens, in order."""
    codes = [zlib.crc32(word.what.encode("utf-8", "replace")) for word in found]
    for i in range(len(found) - LENGTH + 1):
        yield hash(tuple(codes[i : i + LENGTH])), found[i : i + LENGTH]


def compare(
    works: Iterable[StudentCode], given: Iterable[str], solutions: Iterable[str], words_of: WordsOf = words
) -> Comparison:
    """Compare all pairs of a class.

    Args:
        works: each student's code. Students with only handed-out code are not compared.
        given: the code that was handed out.
        solutions: the code of the course's own solutions.
        words_of: a function that returns the tokens of a student's code.
    """
    left_out = _passages_of(given, words)
    found = [(w, _passages_of((p.text for p in w.parts), words_of) - left_out) for w in works]
    found = [(work, own) for work, own in sorted(found, key=lambda f: f[0].student) if own]
    weights = _weights([own for _, own in found], _passages_of(solutions, words))
    shared = _shared([own for _, own in found], weights)
    whole = [sum(weights.get(p, 1.0) for p in own) for _, own in found]
    values = np.concatenate([np.zeros(0), *(row[i + 1 :] for i, row in enumerate(shared))])
    usual = _usual(values)
    pairs = [
        _pair(found[i][0], found[j][0], float(shared[i, j]), min(whole[i], whole[j]), usual)
        for i, j in np.argwhere(np.triu(shared >= LENGTH, 1)).tolist()
    ]
    pairs.sort(key=lambda p: (-p.shared, p.one.student, p.other.student))
    median = round(float(np.median(values)), 1) if len(values) else 0.0
    return Comparison(len(found), pairs, median, usual, weights)


def _pair(one: StudentCode, other: StudentCode, shared: float, whole: float, usual: float | None) -> Pair:
    overlap = round(shared / max(1.0, whole), 3)
    return Pair(one, other, round(shared, 1), overlap, overlap >= NEARLY_ALL if usual is None else shared > usual)


def _passages_of(texts: Iterable[str], words_of: WordsOf) -> set[Passage]:
    return {passage for text in texts for passage, _ in passages(words_of(text))}


def _weights(owned: Sequence[Collection[Passage]], solution: Collection[Passage]) -> dict[Passage, float]:
    counts = Counter(passage for own in owned for passage in own)
    members = len(owned) + 1
    return {
        passage: min(1.0, math.log(members / (n + (passage in solution))) / math.log(members / 2))
        for passage, n in counts.items()
        if n > 1
    }


def _shared(owned: Sequence[Collection[Passage]], weights: Mapping[Passage, float]) -> np.ndarray:
    """Return the similarity of each pair of students, as a float64 array [student, student]."""
    total = np.zeros((len(owned), len(owned)))
    several = [passage for passage, weight in weights.items() if weight > 0]
    for start in range(0, len(several), _BLOCK):
        block = {passage: column for column, passage in enumerate(several[start : start + _BLOCK])}
        has = np.zeros((len(owned), len(block)), np.float32)
        for row, own in enumerate(owned):
            has[row, [block[p] for p in own if p in block]] = 1
        total += (has * np.array([weights[p] for p in block], np.float32)) @ has.T
    return total


def _usual(values: np.ndarray) -> float | None:
    """Return the limit above which a similarity is unusual, or None if there are fewer than FEW pairs.

    The limit comes from the median and third quartile. If similarities are normally distributed, one class in ten has
    a pair above the limit.
    """
    if len(values) < FEW:
        return None
    median, third = np.quantile(values, [0.5, 0.75])
    normal = statistics.NormalDist()
    return round(float(median + (third - median) * normal.inv_cdf(1 - 0.1 / len(values)) / normal.inv_cdf(0.75)), 1)
