"""Near misses: answers by a question's formula with one term left out, or with a count off by one.

If the tolerance accepts a near miss in some draws and rejects it in other draws, students' results depend on luck. If
the tolerance accepts a near miss in all draws, the question is not about the changed term, and there is no problem.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from grader.common import syntax
from grader.exercise import Exercise, Quantity, Question
from grader.judging.answers import kind_of

DRAWS = 300
"""The most draws of one question for which near misses are tried."""
COUNT = 4
"""Integers below this number are counts, as 1 in X - 1 hops. Other numbers are sizes or rates."""


def near_miss_problems(exercise: Exercise) -> Iterator[str]:
    """Yield a problem for each near miss that a question's tolerance accepts in some draws only."""
    found = {node.name: node for node in syntax.parse(exercise.source).body if isinstance(node, ast.FunctionDef)}
    for question in exercise.questions.values():
        if isinstance(question.answer, Quantity) and question.name in found:
            yield from _problems(exercise, question, found[question.name])


def _problems(exercise: Exercise, question: Question, node: ast.FunctionDef) -> Iterator[str]:
    draws = list(question.variants())
    if len(draws) > DRAWS:
        draws = random.Random(question.name).sample(draws, DRAWS)
    for what, changed in near_misses(node):
        space = dict(exercise.spaces[0])
        exec(compile(changed, question.name, "exec"), space)
        seen = [(params, _hidden(question, space[question.name], params)) for params in draws]
        hidden = [params for params, is_hidden in seen if is_hidden]
        shown = [params for params, is_hidden in seen if is_hidden is False]
        if hidden and shown:
            first = ", ".join(f"{name}={value!r}" for name, value in hidden[0].items())
            yield (
                f"{question.name}: the tolerance of {question.rtol:g} accepts {what} in {len(hidden)} of {len(draws)} "
                f"variants, first {first}; choose draws in which it shows"
            )


def _hidden(question: Question, near: Callable[..., Any], params: dict[str, Any]) -> bool | None:
    """Return whether the tolerance accepts the near miss. None if the near miss is right or raises an error."""
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
            module = _Replaced(_sums(changed)[place], change).visit(ast.Module([changed], []))
            yield f"{ast.unparse(change)} for {ast.unparse(term)} ({name})", ast.fix_missing_locations(module)


def _sums(node: ast.FunctionDef) -> list[ast.BinOp]:
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
    def __init__(self, old: ast.BinOp, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)
