"""Prove that what a question asks about can exist, in every draw, and that draws differ enough.

An answer that is right by a formula may be nonsense in the world: 5 KV heads for 64 query heads, a slice that
nobody sells, a time below that of its own hops. So each question says what it is about (``exercise.About``), and
this module holds that against arithmetic and the hardware table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from grader.common.layout import entries
from grader.exercise import About, Choice, Quantity, Question, Table, Written
from grader.hardware import CHIPS, slice_problem
from grader.judging.kinds import kind_of
from grader.judging.units import show, unit_of

LEAST_ANSWERS = 8
"""Answers of a question that are farther apart than its tolerance, so that neighbours do not share one."""

CHOOSES = re.compile(r"\bmax\(|\bmin\(|\b(longer|slower|cheaper|faster) (one|level|of)\b")
"""Words in a question's text or model that say the answer is one of several."""


def question_problems(question: Question) -> Iterator[str]:
    """What cannot be, over every draw: one line each, told with the first draw it shows in."""
    if isinstance(question.answer, Written):
        return
    if question.about is None and not isinstance(question.answer, Choice):
        yield f"{question.name}: nothing says what it is about; add exercise.about({question.name}, ...)"
        return
    first: dict[str, str] = {}
    answers: list[Any] = []
    branches: set[str] = set()
    for params in question.variants():
        try:
            about = question.about(**params) if question.about else About()
            answer = question(**params)
            problems = [*impossible(about), *_of_number(question, about, answer)]
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


def _of_number(question: Question, about: About, answer: Any) -> Iterator[str]:
    """What a number cannot be."""
    if not isinstance(question.answer, Quantity):
        return
    unit = question.answer.unit
    factor, as_shown = unit_of(unit)[0], show(answer, unit)
    for known in question.published:
        if abs(answer - known * factor) <= question.rtol * known * factor:
            yield f"the answer is published: {show(known * factor, unit)}"
    if answer < about.least:
        yield f"the answer, {as_shown}, is below {show(about.least, unit)}, the least there can be"
    if answer > about.most:
        yield f"the answer, {as_shown}, is above {show(about.most, unit)}, the most there can be"


def _variety(question: Question, answers: list[Any], branches: set[str]) -> Iterator[str]:
    if not isinstance(question.answer, Quantity):
        yield from _other_variety(question, answers)
        return
    count = distinct(answers, question.rtol)
    if count < LEAST_ANSWERS:
        yield f"{question.name}: its draws have {count} different answers, at least {LEAST_ANSWERS} are asked for"
    chooses = {"max", "min"} & set(question.fn.__code__.co_names) or CHOOSES.search(f"{question.text} {question.model}")
    if len(branches) < 2 and (chooses or branches):
        mend = f"all draws take {branches.pop()!r}" if branches else "say in `branches` which one a draw takes"
        yield f"{question.name}: its answer is the larger or smaller of several, but {mend}"


def _other_variety(question: Question, answers: list[Any]) -> Iterator[str]:
    """Whether draws give too few different answers.

    A table needs many, so that neighbours do not share one; a question of right or wrong needs two, if draws differ.
    """
    kind = kind_of(question, next(question.variants(), {}))
    found: list[Any] = []
    for answer in map(kind.want, answers):
        if len(found) < LEAST_ANSWERS and not any(kind.are_close(answer, known) for known in found):
            found.append(answer)
    least = LEAST_ANSWERS if isinstance(question.answer, Table) else min(len(answers), 2)
    if len(found) < least:
        several = "answer" if len(found) == 1 else "different answers"
        yield f"{question.name}: its draws have {len(found)} {several}, at least {least} are asked for"


def distinct(answers: list[float], rtol: float) -> int:
    """How many answers can be told apart."""
    found: list[float] = []
    for answer in sorted(answers):
        if not found or answer - found[-1] > rtol * answer:
            found.append(answer)
    return len(found)
