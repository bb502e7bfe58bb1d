"""The grader parses texts in many threads, while libraries parse texts in other threads."""

from __future__ import annotations

import ast
import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from grader.common import syntax

TEXT = "\n".join(f"def f{i}(a, b={i}):\n    return [a + b * {i} for b in range(a)]" for i in range(300))


@pytest.fixture
def switching() -> Iterator[None]:
    """Make the garbage collector run Python code, so that threads switch while ``ast.parse`` builds a tree."""

    def pause(phase: str, info: dict) -> None:
        for _ in range(50):
            pass

    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    gc.callbacks.append(pause)
    yield
    gc.callbacks.remove(pause)
    sys.setswitchinterval(often)


@pytest.mark.slow
def test_a_library_that_parses_at_the_same_time_causes_no_error(switching: None) -> None:
    """CPython 3.11.7 may raise "SystemError: AST constructor recursion depth mismatch" here. ``parse`` then tries again."""
    stopped = threading.Event()

    def library(depth: int) -> None:
        while not stopped.is_set():
            if depth:
                return library(depth - 1)
            try:
                ast.parse(TEXT)
            except SystemError:
                continue
        return None

    thread = threading.Thread(target=library, args=(50,))
    thread.start()
    try:
        for _ in range(60):
            assert len(syntax.parse(TEXT).body) == 300
    finally:
        stopped.set()
        thread.join()


def test_text_that_is_not_python_raises_syntax_error() -> None:
    with pytest.raises(SyntaxError, match="was never closed"):
        syntax.parse("f(")
    with pytest.raises(SyntaxError, match="invalid syntax"):
        syntax.expression("a = 1")
    assert ast.unparse(syntax.expression("a+1")) == "a + 1"
