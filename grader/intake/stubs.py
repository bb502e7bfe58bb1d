"""Detect stubs in which the learner wrote nothing."""

from __future__ import annotations

import ast


def stubs_left(tree: ast.Module) -> int | None:
    """Return the number of stubs in a file or cell; None if it has any other function, class or assigned value.

    A stub is a function or class without code (see ``is_left``), or a variable with the value None or no value. All
    other statements are ignored, because the setup cells of notebooks have them.
    """
    left = 0
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
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


def is_left(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Return whether a definition contains only docstrings and ``raise NotImplementedError(...)``."""
    *words, last = node.body
    raised = last.exc if isinstance(last, ast.Raise) else None
    raised = raised.func if isinstance(raised, ast.Call) else raised
    is_words = all(isinstance(w, ast.Expr) and isinstance(w.value, ast.Constant) for w in words)
    return is_words and isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
