"""Copy pieces of the author's source code into generated files, and check that these files define all names they use.

The pieces are copied as text, because ``ast.unparse`` writes different source with each Python version. ``build``
copies only functions, classes, imports and ``NAME = value``, not other statements that define names, such as a loop or
``a, b = f()``. Without the check, a learner's file could raise NameError.
"""

from __future__ import annotations

import ast
import builtins
import io
import symtable
import tokenize
from collections.abc import Iterable, Iterator, Sequence

from grader.common import syntax
from grader.course.config import CourseError
from grader.course.statements import Statement, lines_of, statements
from grader.exercise import Exercise

WITHOUT_BINDING = {*dir(builtins), "__file__", "__annotations__"}


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
