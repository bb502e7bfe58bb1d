"""``ast.parse`` for threads."""

from __future__ import annotations

import ast
import threading

_one = threading.Lock()


def parse(text: str) -> ast.Module:
    """Parse one text at a time.

    CPython 3.11 counts the parser's depth per interpreter, not per thread, and two threads at once end
    in "SystemError: AST constructor recursion depth mismatch" (python/cpython#106905).
    """
    with _one:
        return ast.parse(text)


def expression(text: str) -> ast.Expression:
    """Parse one expression."""
    with _one:
        return ast.parse(text, mode="eval")
