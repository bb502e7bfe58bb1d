"""Worked keys, and keys in the wrong unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.authoring.keys import key_problems, worked_keys
from grader.exercise import AuthorError, Exercise, Question
from tests.made_up import made_up


def question(text: str, unit: str, value: float) -> Question:
    def fn(I: int) -> float:
        return value * I

    fn.__doc__ = text
    return Exercise().number(points=1, unit=unit, params={"I": [1, 2]}, title="a title")(fn)


def test_a_worked_key_has_question_numbers_answer_and_unit(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    (line,) = worked_keys(course, course.exercise("x1_gather"))
    numbers = course.params(course.exercise("x1_gather").questions["gather_time"])
    asked = f"How long do {numbers['I']} bytes take on a ring of 4 v5p chips?"
    assert line.startswith(f"gather_time: {asked} ") and line.endswith(f" us (I={numbers['I']})")


@pytest.mark.parametrize(
    ("text", "unit", "value", "told"),
    [
        ("How many GiB?", "GiB", 5 * 2**30, []),
        ("How many GiB?", "GiB", 5, ["fn: with I=1 the key is 4.65661e-09 GiB. Return seconds, bytes or FLOP and not GiB, or choose another prefix"]),
        ("How long?", "us", 559, ["fn: with I=1 the key is 5.59e+08 us. Return seconds, bytes or FLOP and not us, or choose another prefix"]),
        ("How many bytes?", "B", 1e12, []),  # a base unit has no other prefix to confuse it with
        ("How many chips?", "", 1e9, []),
        ("How many GiB?", "ms", 1, ["fn: the text asks 'how many GiB', an amount of data, and its unit, 'ms', is the unit of a time"]),
        ("How long does it\ntake?", "MB", 1e6, ["fn: the text asks 'how long', a time, and its unit, 'MB', is the unit of an amount of data"]),
        ("How many GB per second?", "GB/s", 1e9, []),
        ("How many tokens does it take, and how long?", "ms", 1, []),  # the unit belongs to one of the two questions
        ("How many apples?", "ms", 1, []),
    ],
)  # fmt: skip
def test_a_key_in_a_wrong_unit_is_reported(text: str, unit: str, value: float, told: list[str]) -> None:
    assert list(key_problems(question(text, unit, value))) == told


def test_a_table_is_looked_at_column_by_column() -> None:
    exercise = Exercise()

    @exercise.table(points=1, columns={"bytes": "MiB", "time": "us"}, params={"I": [1, 2]}, title="a title")
    def sent(I):
        """How many MiB, and how long?"""
        return {"bytes": I * 2**20, "time": 50 * I}

    told = "sent: with I=1 the key is 5e+07 us. Return seconds, bytes or FLOP and not us, or choose another prefix"
    assert list(key_problems(sent)) == [told]


def test_a_label_is_the_title_or_a_sentence_and_no_fragment() -> None:
    exercise = Exercise()

    def asked(text: str, title: str = "") -> list[str]:
        def fn() -> tuple[str]:
            return ("x",)

        fn.__doc__ = text
        fn.__name__ = f"q{len(exercise.questions)}"
        return list(key_problems(exercise.spec(points=1, axes=["x"], title=title)(fn)))

    assert asked("The cache is cut by heads. Its PartitionSpec?") == [
        "q0: its label in reports would be 'Its PartitionSpec?', which says little; give title=..."
    ]
    assert asked("The cache is cut by heads. Its PartitionSpec?", "The layout of the cache") == []
    assert asked("How is the cache cut?") == []
    with pytest.raises(AuthorError, match="title is "):
        asked("How is the cache cut?", "two\nlines")


@pytest.mark.parametrize("partial", [True, False])
def test_an_entry_that_every_draw_has_earns_nothing_alone(partial: bool) -> None:
    exercise = Exercise()

    @exercise.table(points=1, columns={"bytes": "MiB", "hops": ""}, params={"I": [1, 2]}, partial=partial)
    def sent(I):
        """How many MiB does a device send, in how many hops?"""
        return {"bytes": I * 2**20, "hops": 4}

    told = "sent: hops is equal in every draw, and partial credit would give points for it"
    assert list(key_problems(sent)) == ([told] if partial else [])
