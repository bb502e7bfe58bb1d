"""Copy pieces of the author's source code into the files that learners get.

The pieces are copied as text, because ``ast.unparse`` writes different source with each Python version.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable

from grader.common import syntax
from grader.course.config import CourseError
from grader.course.statements import Statement, lines_of


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
