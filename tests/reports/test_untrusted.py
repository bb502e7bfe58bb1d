"""Untrusted text becomes one line of visible characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.reports.untrusted import clean, show_data


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://a.b\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x1bcb", "ab"),
        ("a\x00\x08b\x7f", "ab"),
        ("\u202edetrevni\u2066 a\u200bb\u00ad", "detrevni ab"),
        ("two\r\nlines\tand\u2028more", "two lines and more"),
        ("\ud800lone", "lone"),
        ("C[I, K_X] · ×", "C[I, K_X] · ×"),
    ],
)
def test_clean_leaves_one_line_of_visible_characters(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_clean_caps_the_length() -> None:
    assert clean("x" * 10_000_000, 10) == "x" * 9 + "…"
    assert clean("x" * 10, 10) == "x" * 10


def test_data_is_shown_on_one_line() -> None:
    assert show_data({"all_reduce x": 2, "all_gather y": 1}) == "all_reduce x: 2, all_gather y: 1"
    assert show_data({}) == "none"
    assert show_data([24, 40]) == "[24, 40]"
    assert len(show_data({"k" * 50: "v" * 500})) <= 300


@given(text=st.text(max_size=60) | st.text("a\x1b[0m] \n\x07\u202e\u00a0é", max_size=12))
def test_clean_ignores_an_appended_null_character(text):
    assert clean(text) == clean(text + "\x00")
