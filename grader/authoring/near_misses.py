"""Near misses: answers from a question's formula with one mistake, such as a missing term or a count off by one.

If the tolerance accepts a near miss for some random numbers only, students' results depend on luck. A near miss that
the tolerance always accepts is no problem: the question does not test the changed term.

If a question asks for the formula itself, every term of the formula matters. The grader compares formulas for some
drawn values of their symbols. So each near miss must differ from the right formula for at least one of these values. A
near miss of a formula may also lack a function, such as ``x`` in place of ``log(x)``.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from grader.common import syntax
from grader.common.syntax import expression
from grader.exercise import Exercise, Formula, Quantity, Question
from grader.judging.answers import kind_of, show_params, some_variants, wanted

DRAWS = 300
"""The largest number of draws of one question for which near misses are tried."""
COUNT = 4
"""Integers below this number are counts, such as the 1 in "X - 1 hops". Other numbers are sizes or rates."""


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
        for what, near in formula_near_misses(key.text):
            with suppress(ValueError):  # a formula that is near the key may have no finite value
                if kind.are_close(kind.want(near), key):
                    found.append(what)
        if found:
            yield (
                f"{question.name}: {found[0]} equals the key {key.text} at all drawn points: give the symbols values "
                "that show the difference"
            )
            return


def formula_near_misses(key: str) -> Iterator[tuple[str, str]]:
    for place in range(len(list(_changes_of_formula(expression(key))))):
        formula = expression(key)
        old, what, new = list(_changes_of_formula(formula))[place]
        described = f"{ast.unparse(new)} for {ast.unparse(old)} ({what})"
        yield described, ast.unparse(_Replaced(old, new).visit(formula))


def _changes_of_formula(formula: ast.Expression) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    for term in _sums(formula):
        yield from ((term, what, new) for what, new in _changes(term))
    for node in ast.walk(formula):
        if isinstance(node, ast.Call):
            yield from ((node, "a function left out", argument) for argument in node.args)


def _problems(exercise: Exercise, question: Question, node: ast.FunctionDef) -> Iterator[str]:
    draws = some_variants(question, DRAWS)
    for what, changed in near_misses(node):
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


def near_misses(node: ast.FunctionDef) -> Iterator[tuple[str, ast.Module]]:
    """Yield (description, changed module) for each near miss of a function: a term left out, or a count off by one."""
    plain = copy.deepcopy(node)
    plain.decorator_list = []
    for place, term in enumerate(_sums(plain)):
        for name, change in _changes(term):
            changed = copy.deepcopy(plain)
            module = ast.Module([changed], [])
            _Replaced(_sums(changed)[place], change).visit(module)
            yield f"{ast.unparse(change)} for {ast.unparse(term)} ({name})", ast.fix_missing_locations(module)


def _sums(node: ast.AST) -> list[ast.BinOp]:
    return [n for n in ast.walk(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add | ast.Sub)]


def _changes(term: ast.BinOp) -> Iterator[tuple[str, ast.expr]]:
    yield "a term left out", term.left
    if isinstance(term.op, ast.Add):
        yield "a term left out", term.right
    match term.right:
        case ast.Constant(value=int(count)) if count < COUNT:
            for other in (count - 1, count + 1):
                yield "a count off by one", ast.BinOp(term.left, term.op, ast.Constant(other))


class _Replaced(ast.NodeTransformer):
    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)
