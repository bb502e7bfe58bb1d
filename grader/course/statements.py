"""Split an author's file into top-level statements, each with a kind, without executing the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from grader.common import syntax
from grader.common.result import QuestionKind
from grader.exercise import Exercise

TASKS = {"task", "body", "function"}
QUESTIONS = {*get_args(QuestionKind)}


@dataclass(frozen=True)
class Statement:
    """A top-level statement of an author's file, and its kind, such as task, check or import."""

    kind: str  # one of: doc import exercise task given helper call check question misconception alternative private
    node: ast.stmt
    text: str

    @property
    def name(self) -> str:
        if isinstance(self.node, ast.FunctionDef | ast.ClassDef):
            return self.node.name
        match self.node:
            case ast.Assign(targets=[ast.Name(id=name)]):
                return name
        return ""


def statements(exercise: Exercise, *, grading: bool = False) -> list[Statement]:
    """Return the statements of the exercise's file and, if ``grading`` is True, of its grading file.

    The statements form one sequence, as in one file: line numbers continue, and the grading file's imports of the
    exercise are left out.
    """
    found = [*_statements(exercise.source)]
    if grading:
        found += _counted_on(exercise.grading_source, len(lines_of(exercise.source)), exercise.id)
    return found


@lru_cache(256)
def _counted_on(source: str, after: int, exercise: str) -> tuple[Statement, ...]:
    """Return the grading file's statements, with ``after`` (the exercise's number of lines) added to line numbers."""
    more = [s for s in _statements.__wrapped__(source) if not _imports_from(s.node, exercise)]
    for statement in more:
        ast.increment_lineno(statement.node, after)
    return tuple(s for s in more if s.kind != "doc")


@lru_cache(256)  # cached, because callers ask often and never modify the result
def _statements(source: str) -> tuple[Statement, ...]:
    lines = lines_of(source)
    found = []
    for node in syntax.parse(source).body:
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
        start = min([node.lineno, *(d.lineno for d in decorators)]) - 1
        text = "".join(lines[start : node.end_lineno])
        if isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            text = f"{node.target.id} = {ast.get_source_segment(source, node.value)}\n"  # without the annotation
            place, node = node.lineno, syntax.parse(text).body[0]
            ast.increment_lineno(node, place - 1)
        found += [Statement(_kind(node), node, text) for node, text in _one_by_one(source, node, text)]
    return tuple(found)


def _one_by_one(source: str, node: ast.stmt, text: str) -> Iterator[tuple[ast.stmt, str]]:
    """Yield ``a, b = x, y`` as ``a = x`` and ``b = y``, and any other statement unchanged."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(
            values
        ) and (all(isinstance(name, ast.Name) for name in names)):
            for name, value in zip(names, values, strict=True):
                assert isinstance(name, ast.Name)
                made = f"{name.id} = ({ast.get_source_segment(source, value)})\n"
                one = syntax.parse(made).body[0]
                ast.increment_lineno(one, node.lineno - 1)
                yield one, made
        case _:
            yield node, text


def lines_of(text: str) -> list[str]:
    """Return the lines as Python counts them, unlike ``splitlines``, which also splits at a form feed."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _kind(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return "doc"
    if isinstance(node, ast.Import | ast.ImportFrom):
        return "import"
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        for decorator in node.decorator_list:
            word = word_of(decorator)
            if word:
                return "task" if word in TASKS else "question" if word in QUESTIONS else word
    if isinstance(node, ast.Assign):
        if isinstance(node.targets[0], ast.Name) and node.targets[0].id == "exercise":
            return "exercise"
        word = word_of(node.value) if isinstance(node.value, ast.Call) else ""
        if word in ("call", "cases", "timing"):
            return "call"
        if word == "given":
            return "given"
    return "private"


def word_of(node: ast.expr) -> str:
    """Return NAME for ``exercise.NAME`` and ``exercise.NAME(...)``, such as ``check``; '' for other expressions."""
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "exercise":
        return target.attr
    return ""


def _imports_from(node: ast.stmt, package: str) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package


def needed_imports(parts: Iterable[Statement], *, used_by: str) -> str:
    """Return the imports whose names occur in the code ``used_by``, except imports of the grader."""
    lines = []
    for part in parts:
        if part.kind != "import" or _imports_from(part.node, "grader"):
            continue
        assert isinstance(part.node, ast.Import | ast.ImportFrom)
        names = [(a.asname or a.name).split(".")[0] for a in part.node.names]
        if any(n == "*" or re.search(rf"\b{re.escape(n)}\b", used_by) for n in names):
            lines.append(part.text.rstrip("\n"))
    return "\n".join(dict.fromkeys(lines))


def names_reached(start: list[ast.stmt], known: dict[str, ast.stmt]) -> set[str]:
    """Return the names in ``known`` that the statements ``start`` use, directly or through statements in ``known``."""
    reached: set[str] = set()
    queue = list(start)
    while queue:
        current = queue.pop()
        if isinstance(current, ast.FunctionDef):  # decorators are part of the declaration, not of the function
            body = [*current.body, ast.Expr(current.args)]  # type: ignore[arg-type]
            current = ast.Module(body=body, type_ignores=[])
        for name in _free_names(current):
            if name in known and name not in reached:
                reached.add(name)
                queue.append(known[name])
    return reached


def _free_names(node: ast.AST) -> set[str]:
    """Return the names that the node reads but does not bind as arguments, loop variables or targets."""
    nodes = list(ast.walk(node))
    bound = {n.arg for n in nodes if isinstance(n, ast.arg)}
    bound |= {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return {n.id for n in nodes if isinstance(n, ast.Name)} - bound
