"""Make submissions from the solution. A misconception or an alternative may replace the solution of one task."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from grader.common.syntax import parse
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.statements import (
    Statement,
    expect_bound_once,
    expect_complete,
    names_reached,
    needed_imports,
    statements,
    undecorated,
)
from grader.exercise import Alternative, Exercise, Misconception, Question, Task
from grader.judging.answers import kind_of, wanted


def reference_source(
    exercise: Exercise, answers: dict[str, str], replaced: Misconception | Alternative | None = None
) -> str:
    """Return the solution as a submission: undecorated tasks, the author's helpers, and answers to questions.

    Args:
        answers: the answers, by the question's name.
        replaced: a misconception or an alternative, which replaces the solution of one task.
    """
    parts = statements(exercise, grading=replaced is not None)
    chosen = [p for p in parts if p.kind in ("given", "task")]
    if replaced is None or not isinstance(replaced.of, Task):
        body = [*_helpers(exercise, chosen, parts), *map(undecorated, chosen)]
    else:
        wrong = next(p for p in parts if p.name == replaced.name)
        body = [*_helpers(exercise, [*chosen, wrong], parts), *map(undecorated, chosen)]
        body = _in_its_place(body, undecorated(wrong), replaced, parts)
    body.append("".join(f"{name} = {value!r}\n" for name, value in answers.items()))
    code = "\n\n".join(body)
    text = f"{needed_imports(parts, used_by=code)}\n\n\n{code}"
    expect_complete(exercise, text, kept="declare this name in the exercise's own file")
    return text


def _in_its_place(
    body: list[str], wrong: str, replaced: Misconception | Alternative, parts: list[Statement]
) -> list[str]:
    """Return the code ``body`` with a misconception or alternative, under the task's name, in place of the solution.

    If the replacement calls the solution, the result also has the solution, under the name ``right_TASK``.
    """
    task, right = replaced.of.name, f"right_{replaced.of.name}"
    solution = next(undecorated(p) for p in parts if p.name == task)
    without_task = _renamed(wrong, {task: right})
    body = [_renamed(without_task, {replaced.name: task}) if text == solution else text for text in body]
    return body if without_task == wrong else [_renamed(solution, {task: right}), *body]


def _renamed(text: str, names: dict[str, str]) -> str:
    """Return the code with global names replaced as in ``names``. Attributes and strings do not change."""
    lines = text.encode().splitlines(keepends=True)
    for node in sorted(ast.walk(parse(text)), key=_place, reverse=True):
        name = node.id if isinstance(node, ast.Name) else node.name if isinstance(node, ast.FunctionDef) else ""
        if name in names:
            line, column = _place(node)
            column += len("def ") if isinstance(node, ast.FunctionDef) else 0
            before, after = lines[line - 1][:column], lines[line - 1][column:]
            lines[line - 1] = before + after.replace(name.encode(), names[name].encode(), 1)
    return b"".join(lines).decode()


def _place(node: ast.AST) -> tuple[int, int]:
    """Return the line (from 1) and the byte in the line (from 0) where a node starts."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _helpers(exercise: Exercise, chosen: list[Statement], parts: list[Statement]) -> list[str]:
    """Return the private statements that the chosen statements use, directly or through other statements."""
    private = {p.name: p for p in parts if p.kind == "private" and p.name}
    needed = names_reached([p.node for p in chosen], {name: p.node for name, p in private.items()})
    expect_bound_once(exercise, parts, needed)
    return [p.text for p in private.values() if p.name in needed]


def reference_in_place(exercise: Exercise) -> str:
    """Return the solution's tasks and all statements that they need, at the line numbers of the author's file.

    All other lines are blank.
    """
    parts = statements(exercise)
    chosen = [p for p in parts if p.kind in ("given", "task")]
    private = {p.name: p for p in parts if p.kind == "private" and p.name}
    reached = names_reached([p.node for p in chosen], {name: p.node for name, p in private.items()})
    placed = {_first_line(p, skip_decorators=True): undecorated(p) for p in chosen}
    placed |= {_first_line(p): p.text for p in private.values() if p.name in reached}
    code = "\n".join(placed.values())
    placed |= {_first_line(p): p.text for p in parts if needed_imports([p], used_by=code)}
    lines = [""] * exercise.source.count("\n")
    for first, text in placed.items():
        own = text.split("\n")
        own = own[:-1] if own[-1] == "" else own
        lines[first - 1 : first - 1 + len(own)] = own
    return "\n".join(lines) + "\n"


def _first_line(part: Statement, *, skip_decorators: bool = False) -> int:
    decorators = [] if skip_decorators else getattr(part.node, "decorator_list", [])
    return min([part.node.lineno, *(d.lineno for d in decorators)])


def answers(course: Course, exercise: Exercise, student: str) -> dict[str, str]:
    """Return the right answer to each question, by the question's name, as text that the student could write."""
    return {q.name: answer_by(q, q, course.params(q, student)) for q in exercise.questions.values()}


def answer_by(author: Question | Misconception, question: Question, params: Mapping[str, Any]) -> str:
    """Return the answer for ``params`` that the author's function of a question or misconception gives.

    Raises CourseError if the function raises an error.
    """
    try:
        kind = kind_of(question, params)
        return kind.written(wanted(question, author.fn, params, kind))
    except Exception as error:  # the author's function may raise any error
        raise CourseError(f"{author.name} has no answer: {type(error).__name__}: {error}") from None
