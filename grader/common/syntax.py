"""Thread-safe ``ast.parse``."""

from __future__ import annotations

import ast
import threading
from typing import Any

ATTEMPTS = 1000
_one = threading.Lock()


def parse(text: str) -> ast.Module:
    """Parse Python source in one thread at a time, and retry if CPython miscounts the depth of the syntax tree.

    In CPython up to 3.11.7 and 3.12.1, two threads that parse at once may raise "SystemError: AST constructor recursion
    depth mismatch" (python/cpython#106905). A lock keeps the grader's threads apart. The retry is needed because
    libraries (Jinja's lexer, ``inspect``) parse without the lock.
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
        except SystemError:  # This is a bug of CPython, so try again. Invalid source code raises other errors.
            if not left:
                raise
    raise AssertionError
