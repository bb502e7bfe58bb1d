"""Formulas as answers: equal formulas are right, and known mistakes get a hint."""

from __future__ import annotations

from typing import Any

import pytest

from grader.common.formulas import answer, points_of
from grader.exercise import AuthorError, Exercise
from grader.judging.answers import heading, judge_answer, kind_of, read_back, render_question

SYMBOLS = {"V": [1e6, 2e6, 5e6], "X": [4, 8, 16], "W": [1e9, 2e9, 3e9]}
UNKNOWN = "not right, and not the result of a known misconception"


def asked() -> Exercise:
    exercise = Exercise()

    @exercise.formula(points=2, symbols=SYMBOLS, params={"ways": [1, 2]})
    def gather_time(ways):
        """A ring sends {{ ways }} ways. How long does a gather of V bytes take?"""
        return f"(X - 1)/X*V/({ways}*W)"

    @exercise.misconception(of=gather_time)
    def whole(ways):
        """A device has its own part already."""
        return f"V/({ways}*W)"

    return exercise


def judged(text: str, ways: int = 2) -> Any:
    exercise = asked()
    raw = {"formula": text, **answer({"text": text, "names": list(SYMBOLS), "points": points_of(SYMBOLS)})}
    return judge_answer(exercise.questions["gather_time"], {"ways": ways}, exercise.misconceptions.values(), raw)


@pytest.mark.parametrize("text", ["(X-1)/X * V/(2*W)", "V/2/W - V/X/2/W", "0.5*V*(1 - X**-1)/W", "V/W/2*(X-1)/X\n"])
def test_equal_formulas_are_right(text: str) -> None:
    result = judged(text)
    assert (result.kind, result.status, result.earned) == ("formula", "passed", 2)
    assert result.actual == f"read as {text.strip()}" and result.expected == "(X - 1)/X*V/(2*W)"
    assert judged(text, ways=1).status == "failed"


def test_other_formulas_are_wrong_and_known_ones_get_their_hint() -> None:
    for text in ("V", "0", "(X-1)/X*V/W", "(X-1)/X*V/(2.00001*W)", "-(X-1)/X*V/(2*W)"):
        assert (judged(text).status, judged(text).reason) == ("failed", UNKNOWN), text
    result = judged("0.5*V/W")
    assert (result.misconception, result.hint) == ("whole", "A device has its own part already.")
    assert judged("V/w").reason == "there is no symbol 'w': the symbols are V, X, W"


@pytest.mark.parametrize(
    "raw", ["V/W", 3, [], ["V"], {"dict": []}, {"formula": "V"}, {"formula": 3, "values": [1]}, {"type": "function"}]
)
def test_only_formulas_evaluated_by_a_confined_process_are_read(raw: Any) -> None:
    question = asked().questions["gather_time"]
    assert judge_answer(question, {"ways": 1}, [], raw).reason == "write the formula as a text in quotes"


def test_learners_read_the_symbols() -> None:
    question = asked().questions["gather_time"]
    assert heading(question) == "a formula of V, X, W"
    assert render_question(question, {"ways": 2}).endswith(
        'Answer with a formula of V, X, W, as a text in quotes such as "2*W**2".'
    )
    kind = kind_of(question, {})
    result = read_back(question, {"ways": 2}, kind.raw("V/W"))
    assert (result.status, result.reason) == ("blocked", "read as V/W; the answer is judged after you submit")
    assert read_back(question, {"ways": 2}, {"problem": "no"}).reason == "no"
    assert read_back(question, {"ways": 2}, None).reason == "not answered yet"


@pytest.mark.parametrize(
    ("symbols", "told"),
    [
        ({}, "`symbols` is empty: give at least one symbol with its possible values"),
        (["X"], '`symbols` is the list [\'X\'], not a dict such as {"D": [2, 4, 8], "W": [1e9, 2e9, 3e9]}'),
        ({"2X": [1, 2, 3]}, "symbols: '2X' cannot be a symbol: use a name that Python does not define"),
        (
            {"max": [1, 2, 3]},
            "symbols: 'max' cannot be a symbol: use a name that Python does not define",
        ),
        ({"X": "abc"}, "symbols: X has the str 'abc', not a list of numbers such as [2, 4, 8]"),
        ({"X": [1, 2, float("nan")]}, "symbols: X has the list [1, 2, nan], not a list of numbers such as [2, 4, 8]"),
        ({"X": [1, 1, 2]}, "symbols: X needs at least 3 values; it has 2"),
        ({"X": [1, 2, 3]}, "symbols: their values give 3 points at which to compare formulas, but 8 are needed"),
    ],
)
def test_invalid_declarations_of_formulas_are_reported(symbols: Any, told: str) -> None:
    with pytest.raises(AuthorError) as error:
        Exercise().formula(points=1, symbols=symbols)
    assert str(error.value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (3, "3 is not a text: return the formula in quotes"),
        ("V/Q", "'V/Q': there is no symbol 'Q': the symbols are V, X, W"),
        ("1/(X - 4)", "'1/(X - 4)': the formula has no finite value for "),
    ],
)
def test_a_key_that_is_not_a_formula_is_reported(value: Any, told: str) -> None:
    with pytest.raises(ValueError) as error:
        kind_of(asked().questions["gather_time"], {}).want(value)
    assert str(error.value).startswith(told)
