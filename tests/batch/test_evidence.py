"""Find the code of a task in any submission."""

from __future__ import annotations

import pytest

from grader.batch.evidence import code_of
from grader.intake.submission import Chunk, Source


def found(*texts: str, name: str = "f") -> list[tuple[str, int, str]]:
    chunks = tuple(Chunk(f"cell {i}", text) for i, text in enumerate(texts, 1))
    return [(code.name, code.line, code.text) for code in code_of(Source("x", chunks), name)]


def test_the_evidence_is_the_last_definition_with_its_decorators() -> None:
    first, last = "def f(): return 1\n", "x = 1\n@jit\ndef f():\n    return 2\ny = 3\n"
    assert found(first, last) == [("cell 2", 2, "@jit\ndef f():\n    return 2")]
    assert found("a = 1\nf = g\n") == [("cell 1", 2, "f = g")]
    assert found("f: int = 2\n") == [("cell 1", 1, "f: int = 2")]
    assert found("def g():\n    def f(): ...\n") == []


@pytest.mark.parametrize("text", ["def f(:", "\0", "(" * 100_000, "%matplotlib\ndef f(): ...", "f" * 10 + "\ud800"])
def test_the_evidence_skips_code_that_cannot_be_parsed(text: str) -> None:
    assert found(text) == []


def test_lines_are_counted_as_python_does() -> None:
    assert found('a = "\x0c\u2028"\r\ndef f():\r\n    return 1\r\n') == [("cell 1", 2, "def f():\n    return 1")]
