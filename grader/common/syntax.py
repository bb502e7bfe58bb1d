"""Thread-safe ``ast.parse``, for the grader's own code and for submitted code."""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

ATTEMPTS = 1000
_one = threading.Lock()
Tree = TypeVar("Tree")


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


def parsed(text: str, parse: Callable[[str], Tree] = parse) -> Tree | None:
    """Return the syntax tree of a learner's text; None if Python cannot parse the text.

    ``parse``: the function ``parse`` or ``expression``.
    """
    try:
        with warnings.catch_warnings():
            # Python would print warnings about a learner's code, for example about "\d".
            warnings.simplefilter("ignore")
            return parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
