"""Check that a question's situation can exist in every draw, and that its answers differ enough.

A formula can give impossible answers: 5 KV heads for 64 query heads, a slice that is not sold, a time shorter than the
time of its own hops. So each question names its chip, mesh and arrays (``exercise.Scenario``), and this module checks
these with arithmetic and the hardware table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from grader.common.layout import entries
from grader.exercise import Quantity, Question, Scenario, Spec, Table, Written
from grader.hardware import CHIPS, slice_problem
from grader.judging.answers import kind_of
from grader.judging.units import show, unit_of

LEAST_ANSWERS = 8
"""The least number of answers to a question that differ by more than the tolerance. With fewer answers, too many
students would have equal ones."""

CHOOSES = re.compile(r"\bmax\(|\bmin\(|\b(longer|slower|cheaper|faster) (one|level|of)\b")
"""Words in a question's text or model that show that the answer is the largest or smallest of several amounts."""


def question_problems(question: Question) -> Iterator[str]:
    """Yield one line for each distinct problem of the question's draws, with the first draw that has the problem."""
    if isinstance(question.answer, Written):
        return
    if question.scenario is None and isinstance(question.answer, Quantity | Spec | Table):
        yield f"{question.name}: it has no scenario; add exercise.scenario({question.name}, ...)"
        return
    first: dict[str, str] = {}
    answers: list[Any] = []
    branches: set[str] = set()
    for params in question.variants():
        try:
            scenario = question.scenario(**params) if question.scenario else Scenario()
            answer = question(**params)
            problems = [*impossible(scenario), *_of_number(question, scenario, answer)]
        except Exception as error:  # the author's scenario may raise any error
            problems = [f"its scenario raises {type(error).__name__}: {error}"]
        else:
            answers.append(answer)
            branches.update(scenario.branches)
        for problem in problems:
            first.setdefault(problem, ", ".join(f"{k}={v!r}" for k, v in params.items()))
    yield from (f"{question.name}: {problem}, with {where}" for problem, where in first.items())
    yield from _variety(question, answers, branches)


def impossible(scenario: Scenario) -> Iterator[str]:
    """Yield the reasons why the scenario's arrays, slice or model cannot exist."""
    for shape, spec in scenario.arrays:
        for size, axes in zip(shape, entries(tuple(spec), len(shape)), strict=True):
            parts = math.prod(scenario.mesh[axis] for axis in axes)
            if size % parts:
                yield f"a dimension of {size} is not cut into {parts} equal parts"
    if scenario.chip in CHIPS:
        free = scenario.slice or scenario.rings or scenario.lines  # with any of these, the mesh may be part of a slice
        count = 0 if free else math.prod(scenario.mesh.values())
        rings, lines = scenario.rings, scenario.lines
        problem = slice_problem(scenario.chip, shape=scenario.slice, count=count, rings=rings, lines=lines)
        if problem:
            yield problem
        memory = CHIPS[scenario.chip].hbm
        if scenario.holds > memory:
            yield f"one {scenario.chip} has {memory / 1e9:g} GB and would hold {scenario.holds / 1e9:.1f}"
    query, kv = scenario.heads
    if query % kv:
        yield f"{query} query heads cannot share {kv} KV heads evenly"


def _of_number(question: Question, scenario: Scenario, answer: Any) -> Iterator[str]:
    """Yield the reasons why the answer to a numeric question is published or impossible."""
    if not isinstance(question.answer, Quantity):
        return
    unit = question.answer.unit
    factor, as_shown = unit_of(unit)[0], show(answer, unit)
    for known in question.published:
        if abs(answer - known * factor) <= question.rtol * known * factor:
            yield f"the answer is published: {show(known * factor, unit)}"
    if answer < scenario.least:
        yield f"the answer, {as_shown}, is below {show(scenario.least, unit)}, the least possible"
    if answer > scenario.most:
        yield f"the answer, {as_shown}, is above {show(scenario.most, unit)}, the most possible"


def _variety(question: Question, answers: list[Any], branches: set[str]) -> Iterator[str]:
    if not isinstance(question.answer, Quantity):
        yield from _other_variety(question, answers)
        return
    count = distinct(answers, question.rtol)
    if count < LEAST_ANSWERS:
        yield f"{question.name}: its draws have {count} different answers, and at least {LEAST_ANSWERS} are needed"
    chooses = {"max", "min"} & set(question.fn.__code__.co_names) or CHOOSES.search(f"{question.text} {question.model}")
    if len(branches) < 2 and (chooses or branches):
        mend = f"all draws take {branches.pop()!r}" if branches else "say in `branches` which one a draw takes"
        yield f"{question.name}: its answer is the larger or smaller of several, but {mend}"


def _other_variety(question: Question, answers: list[Any]) -> Iterator[str]:
    """Yield a problem if draws give too few different answers. Another proof reports invalid answers.

    A table needs LEAST_ANSWERS different answers. Other questions with several draws need two.
    """
    kind = kind_of(question, next(question.variants(), {}))
    found: list[Any] = []
    for value in answers:
        try:
            answer = kind.want(value)
        except Exception:
            return
        if len(found) < LEAST_ANSWERS and not any(kind.are_close(answer, known) for known in found):
            found.append(answer)
    least = LEAST_ANSWERS if isinstance(question.answer, Table) else min(len(answers), 2)
    if len(found) < least:
        several = "answer" if len(found) == 1 else "different answers"
        yield f"{question.name}: its draws have {len(found)} {several}, and at least {least} are needed"


def distinct(answers: list[float], rtol: float) -> int:
    """Return the number of answers that differ by more than the tolerance."""
    found: list[float] = []
    for answer in sorted(answers):
        if not found or answer - found[-1] > rtol * answer:
            found.append(answer)
    return len(found)
