"""Detect stubs in which the learner wrote nothing."""

from __future__ import annotations

import ast

from grader.intake.decoding import parsed
from grader.intake.submission import Source
from grader.wire import limits


def nothing_written(source: Source) -> bool:
    """Return True if no task and no answer is written. The stub may be of any edition of the course."""
    left = 0
    for chunk in source.chunks:
        tree = parsed(chunk.text) if len(chunk.text) <= limits.MAX_CELL else None
        if tree is None:
            return False
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if not _is_left(node):
                    return False
                left += 1
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                    return False
                left += 1
    return left > 0


def _is_left(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Return True for a body of only docstrings and ``raise NotImplementedError(...)``."""
    *words, last = node.body
    raised = last.exc if isinstance(last, ast.Raise) else None
    raised = raised.func if isinstance(raised, ast.Call) else raised
    is_words = all(isinstance(w, ast.Expr) and isinstance(w.value, ast.Constant) for w in words)
    return is_words and isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
