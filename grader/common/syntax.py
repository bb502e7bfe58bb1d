"""Thread-safe ``ast.parse``."""

from __future__ import annotations

import ast
import threading
from typing import Any

ATTEMPTS = 1000
_one = threading.Lock()


def parse(text: str) -> ast.Module:
    """Parse Python source in one thread at a time, and retry if CPython miscounts the depth of the syntax tree.

    CPython up to 3.11.7 and 3.12.1 counts this depth per interpreter, not per thread: two threads that parse at once
    end in "SystemError: AST constructor recursion depth mismatch" (python/cpython#106905). The lock separates the
    grader's own threads. The retry covers libraries that parse at the same time (Jinja's lexer, ``inspect``).
    """
    return _parsed(text, "exec")


def expression(text: str) -> ast.Expression:
    """Parse a Python expression."""
    return _parsed(text, "eval")


def _parsed(text: str, mode: str) -> Any:
    for left in reversed(range(ATTEMPTS)):
        try:
            with _one:
                return ast.parse(text, mode=mode)  # noqa: TID251
        except SystemError:  # CPython's bug: bad source raises SyntaxError, ValueError, RecursionError or MemoryError
            if not left:
                raise
    raise AssertionError
