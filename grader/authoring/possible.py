"""Check that a question's situation can exist, and that right and nearly right answers differ enough.

A formula can give impossible answers: 5 KV heads for 64 query heads, a slice that is not sold, or a communication time
below the latency of its hops. So each question names its chip, mesh and arrays (``exercise.Scenario``), and this module
checks them with arithmetic and the hardware table.

A near miss is an answer from a question's formula with one mistake, such as a missing term or a count off by one. If
the tolerance accepts a near miss for some random numbers only, students' results depend on luck. A near miss that the
tolerance always accepts is no problem: the question does not test the changed term.

If a question asks for the formula itself, every term of the formula matters. The grader compares formulas for some
drawn values of their symbols. So each near miss must differ from the right formula for at least one of these values. A
near miss of a formula may also lack a function, such as ``x`` in place of ``log(x)``.
"""

from __future__ import annotations

import ast
import copy
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from grader.common import syntax
from grader.common.layout import entries
from grader.common.syntax import expression
from grader.exercise import Exercise, Formula, Quantity, Question, Scenario, Spec, Table, Written
from grader.hardware import CHIPS, slice_problem
from grader.judging.answers import kind_of, show_params, some_variants, wanted
from grader.judging.units import show, unit_of
from grader.reports.points import counted

LEAST_ANSWERS = 8
"""The least number of answers to a question that differ by more than the tolerance. With fewer answers, too many
students would have equal ones."""

MEND = "list more values in params"
NUMBER = re.compile(r"-?\d[\d.,]*(?:e[+-]?\d+)?")
CHOOSES = re.compile(r"\bmax\(|\bmin\(|\b(longer|slower|cheaper|faster) (one|level|of)\b")
"""Words in a question's text or model that show that the answer is the largest or smallest of several amounts."""
DRAWS = 300
"""The largest number of draws of one question for which near misses are tried."""
COUNT = 4
"""Integers below this number are counts, such as the 1 in "X - 1 hops". Other numbers are sizes or rates."""


def question_problems(question: Question) -> Iterator[str]:
    """Yield a line for each problem of a question, with the first random numbers that show it.

    If several lines differ only in numbers, yield only the first of them. The question must have valid keys
    (``judging.problems``).
    """
    if isinstance(question.answer, Written):
        return
    if question.scenario is None and isinstance(question.answer, Quantity | Spec | Table):
        yield f"{question.name}: it has no scenario; add exercise.scenario({question.name}, ...)"
        return
    first: dict[str, tuple[str, str]] = {}
    answers: list[Any] = []
    branches: set[str] = set()
    for params in question.variants():
        answer = question(**params)
        try:
            scenario = question.scenario(**params) if question.scenario else Scenario()
            problems = [*impossible(scenario), *_of_number(question, scenario, answer)]
        except Exception as error:  # the author's scenario may raise any error
            problems = [f"its scenario raises {type(error).__name__}: {error}"]
        else:
            answers.append(answer)
            branches.update(scenario.branches)
        for problem in problems:
            first.setdefault(NUMBER.sub("#", problem), (problem, show_params(params)))
    yield from (f"{question.name}: {problem}, with {where}" for problem, where in first.values())
    yield from _variety(question, answers, branches)


def impossible(scenario: Scenario) -> Iterator[str]:
    """Yield a problem for each part of a scenario (array, slice, memory, heads) that cannot exist."""
    for shape, spec in scenario.arrays:
        for size, axes in zip(shape, entries(tuple(spec), len(shape)), strict=True):
            parts = math.prod(scenario.mesh[axis] for axis in axes)
            if size % parts:
                yield f"a dimension of size {size} cannot be cut into {parts} equal parts"
    if scenario.chip in CHIPS:
        # If a scenario names a slice, rings or lines, its mesh may use only some chips. So do not check the number of
        # chips.
        free = scenario.slice or scenario.rings or scenario.lines
        count = 0 if free else math.prod(scenario.mesh.values())
        rings, lines = scenario.rings, scenario.lines
        problem = slice_problem(scenario.chip, shape=scenario.slice, count=count, rings=rings, lines=lines)
        if problem:
            yield problem
        memory = CHIPS[scenario.chip].hbm
        if scenario.holds > memory:
            holds = f"{scenario.holds / 1e9:.1f} GB"
            yield f"one {scenario.chip} has {memory / 1e9:g} GB of memory, but the scenario puts {holds} into it"
    query, kv = scenario.heads
    if query % kv:
        yield f"{counted(query, 'query head')} cannot share {kv} KV heads evenly"


def _of_number(question: Question, scenario: Scenario, answer: Any) -> Iterator[str]:
    """Yield a problem if a numeric answer is impossible, or equals one of the question's published answers."""
    if not isinstance(question.answer, Quantity):
        return
    unit = question.answer.unit
    factor, as_shown = unit_of(unit)[0], show(answer, unit)
    for known in question.published:
        if abs(answer - known * factor) <= question.rtol * known * factor:
            listed = show(known * factor, unit)
            yield f"the answer is one of the answers in `published`, so learners can look it up: {listed}"
    if answer < scenario.least:
        yield f"the answer, {as_shown}, is below the least possible answer, {show(scenario.least, unit)}"
    if answer > scenario.most:
        yield f"the answer, {as_shown}, is above the largest possible answer, {show(scenario.most, unit)}"


def _variety(question: Question, answers: list[Any], branches: set[str]) -> Iterator[str]:
    if not isinstance(question.answer, Quantity):
        yield from _other_variety(question, answers)
        return
    count = distinct(answers, question.rtol)
    if count < LEAST_ANSWERS:
        found = f"its params give {counted(count, 'different right answer')}, but at least {LEAST_ANSWERS} are needed"
        yield f"{question.name}: {found}; {MEND}"
    chooses = {"max", "min"} & set(question.fn.__code__.co_names) or CHOOSES.search(f"{question.text} {question.model}")
    if len(branches) < 2 and (chooses or branches):
        mend = "use Scenario(branches=...) to say for each draw which amount is the answer"
        if branches:
            one = branches.pop()
            mend = (
                f"in all draws the answer is the amount {one!r}; choose params that also make another amount the answer"
            )
        yield f"{question.name}: its answer is the larger or smaller of several amounts; {mend}"


def _other_variety(question: Question, answers: list[Any]) -> Iterator[str]:
    """For a question whose answer is not a number: yield a problem if its right answers differ too little."""
    kind = kind_of(question, next(question.variants(), {}))
    found: list[Any] = []
    for answer in map(kind.want, answers):
        if len(found) < LEAST_ANSWERS and not any(kind.are_close(answer, known) for known in found):
            found.append(answer)
    least = LEAST_ANSWERS if isinstance(question.answer, Table) else min(len(answers), 2)
    if len(found) < least:
        several = counted(len(found), "different right answer")
        yield f"{question.name}: its params give {several}, but at least {least} are needed; {MEND}"


def distinct(answers: list[float], rtol: float) -> int:
    """Return the number of answers that differ by more than the relative tolerance."""
    found: list[float] = []
    for answer in sorted(answers):
        if not found or answer - found[-1] > rtol * answer:
            found.append(answer)
    return len(found)


def near_miss_problems(exercise: Exercise) -> Iterator[str]:
    """Yield a problem for each near miss that a question's tolerance accepts for some, but not all, random numbers."""
    found = {node.name: node for node in syntax.parse(exercise.source).body if isinstance(node, ast.FunctionDef)}
    for question in exercise.questions.values():
        if isinstance(question.answer, Quantity) and question.name in found:
            yield from _problems(exercise, question, found[question.name])
        elif isinstance(question.answer, Formula):
            yield from _formula_problems(question)


def _formula_problems(question: Question) -> Iterator[str]:
    """Yield a problem if a near miss of a question's right formula equals it for all drawn values of the symbols."""
    for drawn in question.variants():
        kind = kind_of(question, drawn)
        try:
            key = wanted(question, question.fn, drawn, kind)
        except Exception:  # another part of ``verify`` reports invalid keys
            return
        found: list[str] = []
        for what, near in near_misses(expression(key.text)):
            with suppress(ValueError):  # a formula that is near the key may have no finite value
                if kind.are_close(kind.want(ast.unparse(near)), key):
                    found.append(what)
        if found:
            yield (
                f"{question.name}: {found[0]} equals the key {key.text} at all drawn points: give the symbols values "
                "that show the difference"
            )
            return


def _problems(exercise: Exercise, question: Question, node: ast.FunctionDef) -> Iterator[str]:
    draws = some_variants(question, DRAWS)
    plain = copy.copy(node)
    plain.decorator_list = []
    for what, changed in near_misses(ast.Module([plain], [])):
        space = dict(exercise.spaces[0])
        exec(compile(changed, question.name, "exec"), space)
        seen = [(params, _hidden(question, space[question.name], params)) for params in draws]
        hidden = [params for params, is_hidden in seen if is_hidden]
        shown = [params for params, is_hidden in seen if is_hidden is False]
        if hidden and shown:
            yield (
                f"{question.name}: the tolerance of {question.rtol:g} accepts the wrong {what} "
                f"in {len(hidden)} of {len(draws)} variants, for example with {show_params(hidden[0])}; "
                "choose params with which the right and the wrong answer differ by more than the tolerance"
            )


def _hidden(question: Question, near: Callable[..., Any], params: dict[str, Any]) -> bool | None:
    """Return True if the tolerance accepts the near miss; None if it equals the right answer or raises an error."""
    right = question(**params)
    try:
        answer = near(**params)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return None if answer == right else kind_of(question, params).are_close(answer, right)


def near_misses(tree: ast.Module | ast.Expression) -> Iterator[tuple[str, Any]]:
    """Yield (description, changed tree) for each near miss of a function or of a formula."""
    for place in range(len(list(_changes(tree)))):
        changed = copy.deepcopy(tree)
        old, what, new = list(_changes(changed))[place]
        described = f"{ast.unparse(new)} for {ast.unparse(old)} ({what})"
        yield described, ast.fix_missing_locations(_Replaced(old, new).visit(changed))


def _changes(tree: ast.Module | ast.Expression) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    """Yield (node, description, replacement): a term left out, a count off by one, or a formula's function left out."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=right):
                yield node, "a term left out", left
                if isinstance(operator, ast.Add):
                    yield node, "a term left out", right
                match right:
                    case ast.Constant(value=int(count)) if count < COUNT:
                        for other in (count - 1, count + 1):
                            yield node, "a count off by one", ast.BinOp(left, operator, ast.Constant(other))
    for node in ast.walk(tree) if isinstance(tree, ast.Expression) else ():
        if isinstance(node, ast.Call):
            yield from ((node, "a function left out", argument) for argument in node.args)


class _Replaced(ast.NodeTransformer):
    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)
