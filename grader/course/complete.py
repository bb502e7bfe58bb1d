"""Check that the files generated from an author's file define every name that they use.

``build`` copies only functions, classes, imports and ``NAME = value``, not other statements that define names, such as
a loop or ``a, b = f()``. Without this check, a learner's file could raise NameError.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterable, Iterator, Sequence

from grader.common.syntax import parse
from grader.course.config import CourseError
from grader.course.statements import Statement, lines_of, statements
from grader.exercise import Exercise

WITHOUT_BINDING = {*dir(builtins), "__file__", "__annotations__"}


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
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in parse(text).body):
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
