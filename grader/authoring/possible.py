"""Prove that what a question asks about can exist, in every draw, and that draws differ enough.

An answer that is right by a formula may be nonsense in the world: 5 KV heads for 64 query heads, a slice that
nobody sells, a time below that of its own hops. So each question says what it is about (``exercise.About``), and
this module holds that against arithmetic and the hardware table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from grader.common.layout import entries
from grader.exercise import About, Number
from grader.hardware import CHIPS, slice_problem
from grader.judging.units import show, unit_of

LEAST_ANSWERS = 8
"""Answers of a question that are farther apart than its tolerance, so that neighbours do not share one."""

CHOOSES = re.compile(r"\bmax\(|\bmin\(|\b(longer|slower|cheaper|faster) (one|level|of)\b")
"""Words in a question's text or model that say the answer is one of several."""


def question_problems(question: Number) -> Iterator[str]:
    """What cannot be, over every draw: one line each, with the first draw that shows it."""
    if question.about is None:
        yield f"{question.name}: nothing says what it is about; add exercise.about({question.name}, ...)"
        return
    first: dict[str, str] = {}
    answers: list[float] = []
    branches: set[str] = set()
    for params in question.variants():
        try:
            about, answer = question.about(**params), question(**params)
            problems = [*impossible(about), *_published(question, answer), *_bounds(question, about, answer)]
        except Exception as error:  # of the author's
            problems = [f"what it is about raises {type(error).__name__}: {error}"]
        else:
            answers.append(answer)
            branches.update(about.branches)
        for problem in problems:
            first.setdefault(problem, ", ".join(f"{k}={v!r}" for k, v in params.items()))
    yield from (f"{question.name}: {problem}, with {where}" for problem, where in first.items())
    yield from _variety(question, answers, branches)


def impossible(about: About) -> Iterator[str]:
    """Why there can be no such array, slice or model."""
    for shape, spec in about.arrays:
        for size, axes in zip(shape, entries(tuple(spec), len(shape)), strict=True):
            parts = math.prod(about.mesh[axis] for axis in axes)
            if size % parts:
                yield f"a dimension of {size} is not cut into {parts} equal parts"
    if about.chip in CHIPS:
        free = about.slice or about.rings or about.lines  # then the mesh may be a part of the slice
        count = 0 if free else math.prod(about.mesh.values())
        if problem := slice_problem(about.chip, shape=about.slice, count=count, rings=about.rings, lines=about.lines):
            yield problem
        if about.holds > CHIPS[about.chip].hbm:
            yield f"one {about.chip} has {CHIPS[about.chip].hbm / 1e9:g} GB and would hold {about.holds / 1e9:.1f}"
    query, kv = about.heads
    if query % kv:
        yield f"{query} query heads cannot share {kv} KV heads evenly"


def _bounds(question: Number, about: About, answer: float) -> Iterator[str]:
    as_shown = show(answer, question.unit)
    if answer < about.least:
        yield f"the answer, {as_shown}, is below {show(about.least, question.unit)}, the least there can be"
    if answer > about.most:
        yield f"the answer, {as_shown}, is above {show(about.most, question.unit)}, the most there can be"


def _published(question: Number, answer: float) -> Iterator[str]:
    factor, _ = unit_of(question.unit)
    for known in question.published:
        if abs(answer - known * factor) <= question.rtol * known * factor:
            yield f"the answer is published: {show(known * factor, question.unit)}"


def _variety(question: Number, answers: list[float], branches: set[str]) -> Iterator[str]:
    count = distinct(answers, question.rtol)
    if count < LEAST_ANSWERS:
        yield f"{question.name}: its draws have {count} different answers, at least {LEAST_ANSWERS} are asked for"
    chooses = {"max", "min"} & set(question.fn.__code__.co_names) or CHOOSES.search(f"{question.text} {question.model}")
    if len(branches) < 2 and (chooses or branches):
        mend = f"all draws take {branches.pop()!r}" if branches else "say in `branches` which one a draw takes"
        yield f"{question.name}: its answer is the larger or smaller of several, but {mend}"


def distinct(answers: list[float], rtol: float) -> int:
    """How many answers can be told apart."""
    found: list[float] = []
    for answer in sorted(answers):
        if not found or answer - found[-1] > rtol * answer:
            found.append(answer)
    return len(found)
