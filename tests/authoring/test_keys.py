"""``verify`` prints each key with its question, and reports keys in a wrong unit and texts that lack something."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from grader.authoring.keys import key_problems, text_problems, worked_keys
from grader.exercise import AuthorError, Exercise, Question, Scenario
from grader.hardware import CHIPS
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
        ("How many GiB?", "GiB", 5, ["fn: with I=1 the key is 4.65661e-09 GiB, an unlikely amount. Return seconds, bytes or FLOP, not GiB, or choose a unit with another prefix"]),
        ("How long?", "us", 559, ["fn: with I=1 the key is 5.59e+08 us, an unlikely amount. Return seconds, bytes or FLOP, not us, or choose a unit with another prefix"]),
        ("How many bytes?", "B", 1e12, []),  # the unit has no prefix that could be wrong
        ("How many chips?", "", 1e9, []),
        ("How many GiB?", "ms", 1, ["fn: the text asks 'how many GiB' (an amount of data), but unit='ms' is for a time"]),
        ("How long does it\ntake?", "MB", 1e6, ["fn: the text asks 'how long' (a time), but unit='MB' is for an amount of data"]),
        ("How many GB per second?", "GB/s", 1e9, []),
        ("How many tokens does it take, and how long?", "ms", 1, []),  # the unit fits one of two questions
        ("How many tokens are made in one second (tokens/s)?", "tokens/s", 100, []),
        ("How many apples?", "ms", 1, []),
        ("How many GiB?", "MiB", 1e6, ["fn: the text asks 'how many GiB', but the grader reads a bare number as MiB: name the same unit in the text and in unit=..."]),
        ("How many GB?", "GiB", 1e9, ["fn: the text asks 'how many GB', but the grader reads a bare number as GiB: name the same unit in the text and in unit=..."]),
        ("How many Gbit?", "GB", 1e9, ["fn: the text asks 'how many Gbit', but the grader reads a bare number as GB: name the same unit in the text and in unit=..."]),
        ("How many bytes?", "MB", 1e6, ["fn: the text asks 'how many bytes', but the grader reads a bare number as MB: name the same unit in the text and in unit=..."]),
        ("How long in ms?", "us", 1e-3, ["fn: the text asks 'in ms', but the grader reads a bare number as us: name the same unit in the text and in unit=..."]),
        ("How long does it take (ms)?", "us", 1e-3, ["fn: the text asks 'ms', but the grader reads a bare number as us: name the same unit in the text and in unit=..."]),
        ("What size has it in units of GB?", "MB", 1e6, ["fn: the text asks 'of GB', but the grader reads a bare number as MB: name the same unit in the text and in unit=..."]),
        ("How large is it, as GB?", "MB", 1e6, ["fn: the text asks 'as GB', but the grader reads a bare number as MB: name the same unit in the text and in unit=..."]),
        ("How long does the second of 3 ms take?", "us", 1e-3, []),
        ("How many percent?", "", 0.25, ["fn: the text asks 'how many percent', but the grader reads a bare number as a plain number: name the same unit in the text and in unit=..."]),
        ("The link's bandwidth in GB/s is 45, its latency in ns is 3. How many us?", "us", 1e-3, []),
        ("Of 8 GB, how many MB does `a[in GiB]` take in {{ GiB }} parts?", "MB", 1e6, []),
        ("How many percent?", "percent", 0.25, []),
        ("How many percent?", "percent", 25, ["fn: with I=1 the key is 2500 percent. Return a share (0.25 for 25 percent), or give Scenario(most=...) if more than 100 percent is right"]),
    ],
)  # fmt: skip
def test_a_key_in_a_wrong_unit_is_reported(text: str, unit: str, value: float, told: list[str]) -> None:
    assert list(key_problems(question(text, unit, value))) == told


def test_the_keys_of_a_table_are_checked_column_by_column() -> None:
    exercise = Exercise()

    @exercise.table(points=1, columns={"bytes": "MiB", "time": "us"}, params={"I": [1, 2]}, title="a title")
    def sent(I):
        """How many MiB, and how long?"""
        return {"bytes": I * 2**20, "time": 50 * I}

    told = "sent: with I=1 the key is 5e+07 us, an unlikely amount. Return seconds, bytes or FLOP, not us, or choose a unit with another prefix"
    assert list(key_problems(sent)) == [told]


def test_a_label_that_is_a_sentence_fragment_is_reported() -> None:
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
    with pytest.raises(AuthorError, match="`title` is "):
        asked("How is the cache cut?", "two\nlines")


@pytest.mark.parametrize("partial", [True, False])
def test_partial_credit_for_an_entry_equal_in_every_draw_is_reported(partial: bool) -> None:
    exercise = Exercise()

    @exercise.table(points=1, columns={"bytes": "MiB", "hops": ""}, params={"I": [1, 2]}, partial=partial)
    def sent(I):
        """How many MiB does a device send, in how many hops?"""
        return {"bytes": I * 2**20, "hops": 4}

    told = "sent: hops has the same value in all draws, so students can copy it for partial credit: choose params that change this value"
    assert list(key_problems(sent)) == ([told] if partial else [])


@pytest.mark.parametrize(("most", "told"), [(2.0, False), (1.5, True), (math.inf, True)])
def test_more_than_100_percent_needs_a_scenario_that_allows_it(most: float, told: bool) -> None:
    exercise = Exercise()
    asked = exercise.number(points=1, unit="%", params={"I": [1, 2]}, title="a title")(growth)
    exercise.scenario(asked, lambda I: Scenario(most=most))
    assert any("percent" in problem for problem in key_problems(asked)) == told


def growth(I: int) -> float:
    """By how many % does it grow?"""
    return 0.9 * I


@pytest.mark.parametrize(("rtol", "told"), [(1e-12, True), (0.0, True), (1e-5, False), (None, False)])
def test_a_tolerance_that_rejects_the_key_as_shown_is_reported(rtol: float | None, told: bool) -> None:
    exercise = Exercise()

    @exercise.number(points=1, unit="us", rtol=rtol, params={"I": [1, 2]}, title="a title")
    def time(I):
        """How many us?"""
        return I / 3e3

    due = (
        f"time: with I=1 reports show the key as 333.333 us, which the tolerance of {rtol:g} rejects: give a larger rtol"
        if rtol is not None
        else ""
    )
    assert list(key_problems(time)) == ([due] if told else [])


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
