"""The formulas that the grader evaluates or refuses. No text of a student takes long or runs code."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.common.formulas import BadFormula, answer, evaluate, is_symbol, points_of

SYMBOLS = {"V": [1e6, 2e6, 5e6], "X": [4, 8, 16]}
NAMES, POINTS = list(SYMBOLS), points_of(SYMBOLS)
ONLY = (
    "a formula has only numbers, symbols, + - * / ** and abs, ceil, exp, floor, log, log2, max, min, sqrt: "
    "write it like 2*D/(W*X), with * for products and ** for powers"
)
NONE = "this is not a formula: write it like 2*D/(W*X), with * for products and ** for powers"


def test_drawn_points_are_fixed_and_use_each_value_of_a_symbol() -> None:
    assert points_of(SYMBOLS) == POINTS and len(POINTS) == 32
    assert {point[0] for point in POINTS} == {*SYMBOLS["V"]} and {point[1] for point in POINTS} == {4, 8, 16}
    assert POINTS[:2] == [[1000000.0, 16.0], [1000000.0, 16.0]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(X - 1)*V/X", 1.5e6), (" V -\n V/X ", 1.5e6), ("-X**2 + +X", -12), ("max(X, 3) - min(X, 3)", 1), ("log2(X)", 2),
        ("ceil(X/3) + floor(X/3)", 3), ("sqrt(X) + abs(-X)", 6), ("exp(log(X))", 4), ("1_000.5e0", 1000.5), ("𝐗", 4), ("7", 7),
    ],
)  # fmt: skip
def test_a_formula_is_evaluated(text: str, value: float) -> None:
    assert evaluate(text, NAMES, [[2e6, 4.0]]) == [pytest.approx(value)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("V/W", "there is no symbol 'W': the symbols are V, X"),
        ("v", "there is no symbol 'v': the symbols are V, X"),
        ("X^2", "write a power with **, not with ^"),
        ("t = V/X", "write only the right side of the formula, without ="),
        ("X := 2", "write only the right side of the formula, without ="),
        ("2X", NONE), ("", NONE), ("X; V", NONE), ("X−1", NONE), ("\ud800", NONE), ("X\0", NONE), ("(" * 250, NONE),
        ("X(V - 1)", "X is a symbol and not a function: write a product as X*(...)"),
        ("sin(X)", "there is no function 'sin': the functions are abs, ceil, exp, floor, log, log2, max, min, sqrt"),
        ("sqrt", "sqrt is a function: write sqrt(...)"),
        ("max(X)", "max takes 2 arguments, but you gave 1"), ("log(X, 2)", "log takes 1 argument, but you gave 2"),
        ("__import__('os')", ONLY), ("().__class__", ONLY), ("X.real", ONLY), ("[X][0]", ONLY), ("X if X else V", ONLY),
        ("lambda: X", ONLY), ("True", ONLY), ("1j", ONLY), ("'a'*9", ONLY), ("f'{X}'", ONLY), ("max(X, key=V)", ONLY),
        ("max(*X)", ONLY), ("~X", ONLY), ("X//2", ONLY), ("X@V", ONLY), ("X < V", ONLY),
        ("9**9**9**9", "the formula has no finite value for V=1e+06, X=16"),
        ("X**X**X**X", "the formula has no finite value for V=1e+06, X=16"),
        ("1/(X - 4)", "the formula has no finite value for V=2e+06, X=4"),
        ("9" * 400, "a number in this formula is too large"),
        ("-" * 400 + "X", "this formula is too long: simplify it"),
        ("X" * 5_000_000, "a formula has at most 500 characters"),
    ],
)  # fmt: skip
def test_text_that_is_no_formula_gives_a_one_line_reason(text: str, reason: str) -> None:
    with pytest.raises(BadFormula) as error:
        evaluate(text, NAMES, POINTS)
    assert str(error.value) == reason
    assert answer({"text": text, "names": NAMES, "points": POINTS}) == {"problem": reason}


@given(st.one_of(st.text(max_size=60), st.text("VX0123456789+-*/()., ", max_size=60)))
def test_any_text_gives_finite_numbers_or_a_one_line_reason(text: str) -> None:
    found = answer({"text": text, "names": NAMES, "points": POINTS})
    if "problem" in found:
        assert "\n" not in found["problem"] and len(found["problem"]) < 300
    else:
        assert "values" in found
        assert len(found["values"]) == len(POINTS) and all(map(math.isfinite, found["values"]))


def test_a_symbol_is_a_name_that_a_formula_can_hold() -> None:
    assert all(map(is_symbol, ["X", "W_ici", "α"]))
    assert not any(map(is_symbol, ["", "2X", "lambda", "max", "a b", "𝐗", "ﬁ"]))
