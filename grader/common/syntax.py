"""Thread-safe ``ast.parse``."""

from __future__ import annotations

import ast
import threading
from typing import Any

ATTEMPTS = 1000
_one = threading.Lock()


def parse(text: str) -> ast.Module:
    """Parse Python source in one thread at a time, and retry if CPython miscounts the depth of the syntax tree.

    CPython up to 3.11.7 and 3.12.1 counts the depth of the syntax tree per interpreter, not per thread. If two threads
    parse at once, one of them raises "SystemError: AST constructor recursion depth mismatch" (python/cpython#106905).
    A lock lets only one of the grader's threads parse at a time. The retry is needed because libraries (Jinja's lexer,
    ``inspect``) may parse at the same time without this lock.
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
        except SystemError:  # a bug of CPython, so try again; bad source raises other errors
            if not left:
                raise
    raise AssertionError
