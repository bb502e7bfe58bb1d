"""Detect stubs in which the learner wrote nothing."""

from __future__ import annotations

import ast


def stubs_left(tree: ast.Module) -> int | None:
    """Return the number of stubs in a file or cell; None if it has any other function, class or assigned value.

    A stub is a function without code (see ``is_left``), or a variable with the value None or no value. A class is no
    stub: ``class MyError(Exception): pass`` is complete. All other statements are ignored, because the setup cells of
    notebooks have such statements.
    """
    left = 0
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            return None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not is_left(node):
                return None
            left += 1
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(_target(node), ast.Name):
            if not (node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)):
                return None
            left += 1
    return left


def _target(node: ast.Assign | ast.AnnAssign) -> ast.expr:
    return node.targets[0] if isinstance(node, ast.Assign) else node.target


def is_left(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is empty: only docstrings, ``...``, ``pass`` and ``raise NotImplementedError``."""
    return all(map(_is_empty, node.body))


def _is_empty(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant or isinstance(statement, ast.Pass)
