"""Tokens of code leave out everything that students who copy change first."""

from __future__ import annotations

import pytest

from grader.wings.similar.inside.tokens import words


def read(text: str) -> list[str]:
    return [word.what for word in words(text)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = f(y)", "total = helper(rows)"),
        ("def f(a):\n    return a", 'def f(a):\n    """Words."""\n    # more\n    return a'),
        ("f(a, b)", "f(\n    a,\n    b,\n)"),
        ("x = 'one'", 'x = "another"'),
        ("n = 4", "n = 0x10"),
        ("if a:\n    b()", "if a:\n\tb()\n\n\n"),
    ],
)
def test_names_numbers_texts_comments_and_formatting_do_not_count(one: str, other: str) -> None:
    assert read(one) == read(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("jax.lax.psum(a)", "jax.lax.pmean(a)"), ("len(a)", "sum(a)"), ("a + b", "a @ b"), ("import jax", "import numpy")],
)
def test_tokens_that_cannot_be_chosen_count(one: str, other: str) -> None:
    assert read(one) != read(other)


def test_a_token_knows_its_place() -> None:
    text = "x = f(y)  # why\n"
    assert [text[word.start : word.end] for word in words(text)] == ["x", "=", "f", "(", "y", ")"]


@pytest.mark.parametrize(
    "text", ["", "def (", "'never closed", "\x00\ufffd", "))))", "x = = 3", "%%bash\nrm -rf ~", "é = 名"]
)
def test_any_text_is_read(text: str) -> None:
    assert all(0 <= word.start < word.end <= len(text) for word in words(text))
