"""Make a submission from the solution. A misconception or an alternative may replace the solution of one task."""

from __future__ import annotations

import ast

from grader.common.syntax import parse
from grader.course.complete import expect_bound_once, expect_complete
from grader.course.copying import undecorated
from grader.course.statements import Statement, names_reached, needed_imports, statements
from grader.exercise import Alternative, Exercise, Misconception, Task


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
