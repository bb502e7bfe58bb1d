"""Check a question: each variant needs a text and a valid answer, and no misconception may have the right answer.

A *variant* is the question with one choice of its parameters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from grader.exercise import Misconception, Order, Question
from grader.judging.answers import (
    kind_of,
    misconceptions_of,
    render_question,
    show_params,
    some_variants,
    type_and_text,
    units_known,
    wanted,
)
from grader.judging.units import BadAnswer

VARIANT_CAP = 4000
"""The largest number of variants of one question that ``question_problems`` checks."""


def question_problems(question: Question, misconceptions: Iterable[Misconception]) -> Iterator[str]:
    """Yield the problems of a question, one line each, over all variants or a sample of ``VARIANT_CAP`` variants.

    The problems are:

    - A unit is unknown, or no parameters satisfy ``where``, the question's condition on them.
    - A text does not render.
    - The right answer, or the answer of a misconception, is not valid for the question.
    - Two of these answers are so close that a learner's answer could count as equal to both.
    - A question about order declares its items in the right order, so learners could read the answer in their files.

    Each problem is reported once, with the first variant that has it.
    """
    try:
        units_known(question)
    except BadAnswer as error:
        yield f"{question.name}: {error}"
        return
    own = list(misconceptions_of(question, misconceptions))
    variants = some_variants(question, VARIANT_CAP)
    if not variants:
        yield f"{question.name}: no parameters satisfy its `where`"
    first: dict[str, str] = {}
    count: dict[str, int] = {}
    for params in variants:
        for problem, detail in _variant_problems(question, own, params):
            first.setdefault(problem, f"{show_params(params)}{detail}")
            count[problem] = count.get(problem, 0) + 1
    for problem, where in first.items():
        of_all = f", in {count[problem]} of {len(variants)} variants, first " if any(variants) else ""
        yield f"{question.name}: {problem}{of_all}{where}"


def _variant_problems(
    question: Question, misconceptions: list[Misconception], params: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    try:
        kind = kind_of(question, params)
    except Exception as error:
        yield "the options cannot be shown", f": {type_and_text(error)}"
        return
    try:
        render_question(question, params)
    except Exception as error:
        yield "the text of the question does not render", f": {type_and_text(error)}"
    values: dict[str, Any] = {}
    named: list[tuple[str, Callable[..., Any]]] = [
        ("the right answer", question.fn),
        *((f"the answer of {s.name}", s.fn) for s in misconceptions),
    ]
    for name, fn in named:
        try:
            values[name] = wanted(question, fn, params, kind)
        except Exception as error:
            yield f"{name} is not a valid {kind.valid}", f": {type_and_text(error)}"
    answer = question.answer
    if isinstance(answer, Order) and values.get("the right answer") == tuple(answer.options):
        yield "learners see the items as you declared them, in the right order: declare them in another order", ""
    for (a, x), (b, y) in itertools.combinations(values.items(), 2):
        if kind.are_close(x, y):
            closer = f"closer than the tolerance of {question.rtol:g}" if question.rtol else "equal"
            yield f"{a} and {b} are {closer}", f": {kind.shown(x)} and {kind.shown(y)}"
