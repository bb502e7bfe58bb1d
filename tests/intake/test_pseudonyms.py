"""The grader reads the name for the leaderboard from the source, without running the code."""

from __future__ import annotations

import pytest

from grader.course.finding import find_course
from grader.intake.facts import LONGEST, has_leaderboard, pseudonym_of
from grader.intake.submission import Chunk, Source
from tests.commands import ROOT


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


def test_only_an_exercise_that_gives_the_variable_has_a_leaderboard() -> None:
    """If a student sets the name in a different exercise, the grader must not make a second leaderboard."""
    course = find_course(ROOT)
    names = ["c1_no_communication", "m1_block", "m2_train_step"]
    assert [name for name in names if has_leaderboard(course.exercise(name).source)] == ["m2_train_step"]
