"""Texts of questions must have all data that the key needs, and must not depend on the order of options."""

from __future__ import annotations

import pytest

from grader.authoring.complete_texts import text_problems
from grader.exercise import Exercise
from grader.hardware import CHIPS


def problems(exercise: Exercise, statement: str = "") -> list[str]:
    exercise.statement = statement
    return list(text_problems(exercise))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{{ I }} on {{ X }}?", []),
        ("{{ I }} on {X}?", ["learners read the same text for X=4 and for X=8, but the right answers differ (8 MiB and 4 MiB): write {{ X }} into the text"]),
        ("{{ I * X }}?", []),  # I * X differs between the draws
        ("How many?", ["learners read the same text for X=4 and for X=8, but the right answers differ (8 MiB and 4 MiB): write {{ X }} into the text"]),
    ],
)  # fmt: skip
def test_a_parameter_that_changes_the_key_must_appear_in_the_text(text: str, told: list[str]) -> None:
    exercise = Exercise()

    def fn(I: int, X: int) -> float:
        return 2 * I * I / X

    fn.__doc__ = text
    exercise.number(points=1, unit="MiB", params={"I": [4096, 5120], "X": [4, 8]})(fn)
    assert problems(exercise) == [f"fn: {one}" for one in told]


def test_a_chip_or_an_unused_parameter_need_not_appear_in_the_text() -> None:
    exercise = Exercise()

    @exercise.number(points=1, unit="us", params={"chip": ["v5e", "v5p"], "unused": [1, 2]})
    def time(chip, unused):
        """How long?"""
        return 1e6 / CHIPS[chip].hbm_bw

    assert problems(exercise) == []


@pytest.mark.parametrize("where", ["statement", "text", "model", "nowhere"])
def test_a_formula_symbol_without_an_explanation_is_reported(where: str) -> None:
    exercise, meaning = Exercise(), "V bytes, Xs"

    def fn() -> str:
        return "V*X"

    fn.__doc__ = f"How many? {meaning if where == 'text' else ''}"
    symbols = {"V": [1, 2, 3], "X": [4, 5, 6]}
    exercise.formula(points=1, symbols=symbols, model=meaning if where == "model" else "")(fn)
    missing = ["X"] if where != "nowhere" else ["V", "X"]
    assert problems(exercise, meaning if where == "statement" else "") == [
        f"fn: no text says what the symbol {symbol} means: name it in the question's text or in the statement"
        for symbol in missing
    ]


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("both A and B", "A"),
        ("both (a) and (b)", "(a)"),
        ("f(A)", ""),
        ("none of the above", "above"),
        ("the first two options", "options"),
        ("a gather of `A`", ""),
        ("{{ A }} devices", ""),  # A is a parameter, so learners read a number in place of the letter
        ("A ring", ""),
        ("A ring, or C", "C"),
        ("an all-gather of A[I_X, J]", ""),
        ("D devices", ""),  # there are three options, so D is none of their letters
        ("none of these", ""),
    ],
)
def test_an_option_that_refers_to_others_by_letter_or_place_is_reported(option: str, told: str) -> None:
    exercise = Exercise()

    @exercise.choice(points=1, options={"one": "something", "two": "something else", "three": option})
    def which():
        """Which?"""
        return "one"

    assert problems(exercise) == (
        [
            f"which: the option 'three' contains {told!r}, which learners could take for another option. The order of "
            f"the options differs between learners. Say what {told!r} means or, if it is a name, write it between "
            "backticks"
        ]
        if told
        else []
    )


@pytest.mark.parametrize(
    ("text", "title", "equal"),
    [
        ("How many of V bytes?", "", True),
        ("How many of V bytes are kept?", "", False),
        ("How many of V bytes?", "The bytes that a device keeps", False),
    ],
)
def test_two_questions_with_equal_text_and_no_title_are_reported(text: str, title: str, equal: bool) -> None:
    exercise = Exercise()
    symbols = {"V": [1e6, 2e6, 4e6], "X": [2, 4, 8]}

    @exercise.formula(points=1, symbols=symbols)
    def sent():
        """How many of V bytes?"""
        return "V*(X - 1)/X"

    def kept() -> str:
        return "V/X"

    kept.__doc__ = text
    exercise.formula(points=1, symbols=symbols, title=title)(kept)
    told = (
        "kept: its text, numbers and kind of answer are the same as in sent: "
        "let the two texts differ, or give each question a title"
    )
    assert problems(exercise, "X devices") == ([told] if equal else [])
