"""``verify`` tries formulas close to a question's formula. Each must be right in every draw, or wrong in every draw."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from grader.authoring.near_misses import formula_near_misses, near_miss_problems, near_misses
from grader.exercise import Exercise
from tests.made_up import made_up

QUESTION = '''
@exercise.number(points=1, unit="", params={"X": [4, 200], "Y": [3, 5]})
def hops(X, Y):
    """How many?"""
    return (X - 1) * Y


@exercise.number('''


def test_a_near_miss_that_shows_in_some_draws_only_is_reported(tmp_path: Path) -> None:
    course = made_up(tmp_path, "\n@exercise.number(", QUESTION)
    found = list(near_miss_problems(course.exercise("x1_gather")))
    assert [line.split(" in ")[0] for line in found if line.startswith("hops")] == [
        "hops: the tolerance of 0.02 accepts the wrong X for X - 1 (a term left out)",
        "hops: the tolerance of 0.02 accepts the wrong X - 0 for X - 1 (a count off by one)",
        "hops: the tolerance of 0.02 accepts the wrong X - 2 for X - 1 (a count off by one)",
    ]
    assert all("in 2 of 4 variants, for example with X=200, Y=3; choose params" in line for line in found)


def test_a_near_miss_that_shows_always_or_never_is_allowed(tmp_path: Path) -> None:
    for sizes in ("[4, 8]", "[200, 300]"):
        folder = tmp_path / sizes.strip("[]").replace(", ", "_")
        course = made_up(folder, "\n@exercise.number(", QUESTION.replace("[4, 200]", sizes))
        assert list(near_miss_problems(course.exercise("x1_gather"))) == []


def test_each_term_of_a_sum_is_left_out_once() -> None:
    (node,) = ast.parse("def f(a, b):\n    return a * 2 + max(b - 1, 7)").body
    assert isinstance(node, ast.FunctionDef)
    assert [ast.unparse(module).split("return ")[1] for _, module in near_misses(node)] == [
        "a * 2", "max(b - 1, 7)", "a * 2 + max(b, 7)", "a * 2 + max(b - 0, 7)", "a * 2 + max(b - 2, 7)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("(X - 1)*V/X", ["X for X - 1 (a term left out)", "X - 0 for X - 1 (a count off by one)", "X - 2 for X - 1 (a count off by one)"]),
        ("max(V, ceil(X))", ["V for max(V, ceil(X)) (a function left out)", "ceil(X) for max(V, ceil(X)) (a function left out)", "X for ceil(X) (a function left out)"]),
        ("V*X**2", []),
    ],
)  # fmt: skip
def test_near_misses_of_a_formula(key: str, near: list[str]) -> None:
    assert [what for what, _ in formula_near_misses(key)] == near


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("max(V, X)", "V for max(V, X) (a function left out)"),
        ("V + X*1e-9", "V for V + X * 1e-09 (a term left out)"),
        ("ceil(X/2)*V", "X / 2 for ceil(X / 2) (a function left out)"),
        ("V/(X - 4)", ""),  # the key has no finite value at X = 4, which ``verify`` reports in a different check
        ("(X - 1)*V/X", ""),
        ("max(V, 1e6*X)", ""),
    ],
)
def test_a_formula_term_that_changes_no_drawn_point_is_reported(key: str, what: str) -> None:
    exercise = Exercise()

    @exercise.formula(points=1, symbols={"V": [1e6, 5e6, 9e6], "X": [4, 8, 16]})
    def bytes_sent():
        """How many?"""
        return key

    found = list(near_miss_problems(exercise))
    told = f"bytes_sent: {what} equals the key {key} at all drawn points: give the symbols values"
    assert [one.split(" that show")[0] for one in found] == ([told] if what else [])
