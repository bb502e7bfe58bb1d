"""The name for the leaderboard is read as text."""

from __future__ import annotations

import pytest

from grader.intake.facts import LONGEST, pseudonym_of
from grader.intake.submission import Chunk, Source


def read(*texts: str) -> str:
    return pseudonym_of(Source("m1.py", tuple(Chunk(f"cell {i}", text) for i, text in enumerate(texts))))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('leaderboard_name = "quiet otter"', "quiet otter"),
        ('leaderboard_name: str = "quiet otter"', "quiet otter"),
        ('a = leaderboard_name = "quiet otter"', "quiet otter"),
        ('leaderboard_name = "one"\nleaderboard_name = "two"', "two"),
        ('leaderboard_name = "one"\nleaderboard_name = ""', ""),
        ("", ""),
        ("leaderboard_name = None", ""),
        ("leaderboard_name = 7", ""),
        ('leaderboard_name = "a" + "b"', ""),
        ("leaderboard_name = open('/etc/passwd').read()", ""),
        ('def f():\n    leaderboard_name = "inside"', ""),
        ('leaderboard_name += "more"', "more"),
        ("leaderboard_name: str", ""),
        (f'leaderboard_name = "{"x" * 1000}"', "x" * LONGEST),
    ],
)
def test_the_last_plain_text_pseudonym_counts(text: str, name: str) -> None:
    assert read(text) == name


def test_a_cell_that_cannot_be_parsed_hides_no_pseudonym() -> None:
    assert read('leaderboard_name = "otter"', "%matplotlib inline\n!ls", "(" * 10_000, "\0") == "otter"
