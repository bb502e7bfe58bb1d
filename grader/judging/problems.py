"""Prove a question: every variant has a text, a positive answer, and slips that can be told apart."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from grader.exercise import Misconception, Number
from grader.judging.numbers import positive, slips_of, type_and_text
from grader.judging.questions import render_question
from grader.judging.units import BadAnswer, show, unit_of

VARIANT_CAP = 4000
"""Variants of one question that ``question_problems`` looks at."""


def question_problems(question: Number, misconceptions: Iterable[Misconception]) -> Iterator[str]:
    """What is wrong with a question, over every variant (at most ``VARIANT_CAP``, drawn evenly): one line each.

    A problem is a text that does not render, an answer (right or a slip's) that is not finite and
    positive, and two answers closer than the tolerance. Each is reported once, with the first variant that shows it.
    """
    try:
        unit_of(question.unit)
    except BadAnswer as error:
        yield f"{question.name}: {error}"
        return
    slips = list(slips_of(question, misconceptions))
    variants = list(question.variants())
    if not variants:
        yield f"{question.name}: no parameters satisfy its `where`"
    if len(variants) > VARIANT_CAP:
        variants = random.Random(question.name).sample(variants, VARIANT_CAP)
    first: dict[str, str] = {}
    count: dict[str, int] = {}
    for params in variants:
        for problem, detail in _variant_problems(question, slips, params):
            first.setdefault(problem, f"{_say_params(params)}{detail}")
            count[problem] = count.get(problem, 0) + 1
    for problem, where in first.items():
        yield f"{question.name}: {problem}, in {count[problem]} of {len(variants)} variants, first {where}"


def _variant_problems(
    question: Number, slips: list[Misconception], params: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """(what is wrong, its detail) for one variant."""
    try:
        render_question(question, params)
    except Exception as error:
        yield "the text does not render", f": {type_and_text(error)}"
    values: dict[str, float] = {}
    named: list[tuple[str, Callable[..., Any]]] = [("the right answer", question), *((s.name, s.fn) for s in slips)]
    for name, fn in named:
        try:
            values[name] = positive(fn, params)
        except Exception as error:
            yield f"{name} has no finite positive value", f": {type_and_text(error)}"
    for (a, x), (b, y) in itertools.combinations(values.items(), 2):
        if abs(x - y) <= question.rtol * max(x, y):
            yield (
                f"{a} and {b} are closer than the tolerance of {question.rtol:g}",
                f": {show(x, question.unit)} and {show(y, question.unit)}",
            )


def _say_params(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={v!r}" for k, v in params.items())
