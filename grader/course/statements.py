"""Split an author's file into top-level statements, each with a kind, and copy pieces of them into generated files.

Nothing is executed. The pieces are copied as text, because ``ast.unparse`` writes different source with each Python
version. ``build`` copies only functions, classes, imports and ``NAME = value``, not other statements that define names,
such as a loop or ``a, b = f()``. So ``expect_complete`` checks that a generated file defines all names that it uses.
Without this check, a learner's file could raise NameError.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import symtable
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from grader.common import syntax
from grader.common.result import QuestionKind
from grader.course.config import CourseError
from grader.exercise import Exercise

TASKS = {"task", "body", "function"}
QUESTIONS = {*get_args(QuestionKind)}
WITHOUT_BINDING = {*dir(builtins), "__file__", "__annotations__"}


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


def undecorated(statement: Statement) -> str:
    """Return the source of a function or class without decorators.

    For ``NAME = exercise.given(value)``, return ``NAME = value``.
    """
    node = statement.node
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        lines = lines_of(statement.text)
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        return "".join(lines[node.lineno - first :])
    assert isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    value = node.value.args[0]
    return f"{statement.name} = {_moved_left(copied(statement, value), value.col_offset)}\n"


def _moved_left(text: str, by: int) -> str:
    """Remove ``by`` spaces from the start of each line of an expression, but not from its first line.

    If this would change a string in the expression, return ``text`` unchanged.
    """
    moved = text.replace("\n" + " " * by, "\n")
    same = ast.dump(syntax.parse(moved)) == ast.dump(syntax.parse(text))
    return moved if same else text


def specification(part: Statement) -> str:
    """Return a function's source up to the end of its docstring."""
    assert isinstance(part.node, ast.FunctionDef)
    name, doc = part.node.name, part.node.body[0]
    if ast.get_docstring(part.node) is None or not isinstance(doc, ast.Expr):
        raise CourseError(f"the {part.kind} {name} has no docstring; write a docstring that tells learners what to do")
    if doc.lineno == part.node.lineno:
        raise CourseError(f"the docstring of {name} must be on lines of its own")
    lines = part.text.encode().splitlines(keepends=True)
    last = len(lines) - ((part.node.end_lineno or 0) - (doc.end_lineno or 0)) - 1
    return b"".join([*lines[:last], lines[last][: doc.end_col_offset]]).decode()


def reworded(part: Statement, text: str) -> Statement:
    """Return the statement ``part`` with its source replaced by ``text``."""
    return Statement(part.kind, syntax.parse(text).body[0], text)


def alone(part: Statement) -> Statement:
    """Return an assignment without other statements on its lines: ``a = 1`` from ``a = 1; b = 2``.

    Statements of other kinds are returned unchanged.
    """
    return reworded(part, f"{copied(part, part.node)}\n") if isinstance(part.node, ast.Assign) else part


def copied(part: Statement, node: ast.stmt | ast.expr | ast.keyword) -> str:
    """Return the author's source of ``node``, which is the statement ``part`` or an expression or keyword in it."""
    first = (part.node.end_lineno or 1) - len(lines_of(part.text)) + 1
    text = ast.get_source_segment("\n" * (first - 1) + part.text, node)
    assert text is not None
    return text


def called(part: Statement, call: ast.Call, keywords: Iterable[str]) -> str:
    """Return the source of the author's call with its keywords replaced by ``keywords``."""
    arguments = [*(copied(part, a) for a in call.args), *keywords]
    return f"{copied(part, call.func)}({', '.join(arguments)})"


def uncommented(text: str) -> str:
    """Return Python source without comments, because an author's comments are not for learners."""
    lines = lines_of(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() + "\n"
            if lines[row - 1] == "\n":  # the line had only a comment
                lines[row - 1] = ""
    return "".join(lines)


def quotable(text: str) -> str:
    """Return text escaped for use between three double quotes."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def expect_complete(exercise: Exercise, text: str, kept: str) -> None:
    """Raise CourseError, with the author's line, if generated Python uses a name that it does not define.

    Args:
        text: Python source that was made from the exercise.
        kept: the end of the error's message, which says how the author gets the definition into the source.
    """
    for name in unbound(text):
        binding = _binding(statements(exercise, grading=True), name)
        if not binding:
            raise CourseError(f"{exercise.id}: learners' code uses {name}, which is not defined")
        match binding[0]:
            case Statement(kind="import"):
                how = "learners' code cannot import this name"
            case Statement(name=""):
                how = f"assign this name on a line of its own: {name} = ..."
            case _:
                how = kept
        raise CourseError(f"{place(exercise, binding[0])}: learners' code uses {name}; {how}")


def expect_bound_once(exercise: Exercise, parts: Sequence[Statement], names: Iterable[str]) -> None:
    """Raise CourseError, with the author's line, if several statements bind one of ``names``."""
    for name in sorted(names):
        binding = _binding(parts, name)
        if len(binding) > 1:
            raise CourseError(
                f"{place(exercise, binding[1])}: {name} is assigned twice; "
                "assign it once, because learners' files get only one of the two statements"
            )


def place(exercise: Exercise, part: Statement) -> str:
    """Return the path and the line of a statement, in the exercise's file or the grading file beside it."""
    first, before = part.node.lineno, len(lines_of(exercise.source))
    which = int(first > before and len(exercise.spaces) > 1)
    return f"{exercise.spaces[which].get('__file__', exercise.id)}:{first - before * which}"


def unbound(text: str) -> list[str]:
    """Return the global names that Python source reads and does not bind, in alphabetical order."""
    top = symtable.symtable(text, "made", "exec")
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in syntax.parse(text).body):
        return []
    read, bound = set(), set()
    for table in _scopes(top):
        for symbol in table.get_symbols():
            if table is top or symbol.is_global():
                read |= {symbol.get_name()} if symbol.is_referenced() else set()
                bound |= {symbol.get_name()} if symbol.is_local() or symbol.is_declared_global() else set()
    return sorted(read - bound - WITHOUT_BINDING)


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for inner in table.get_children():
        yield from _scopes(inner)


def _binding(parts: Iterable[Statement], name: str) -> list[Statement]:
    return [part for part in parts if name in set(_bound_by(part.node))]


def _bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds in its module, without names inside functions and comprehensions."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return
        case ast.alias():
            yield (node.asname or node.name).split(".")[0]
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
    for child in ast.iter_child_nodes(node):
        yield from _bound_by(child)
