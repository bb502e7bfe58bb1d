"""Near misses of a question's formula: right or wrong in every draw alike."""

from __future__ import annotations

import ast
from pathlib import Path

from grader.authoring.near_misses import near_miss_problems, near_misses
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
        "hops: the tolerance of 0.02 accepts X for X - 1 (a term left out)",
        "hops: the tolerance of 0.02 accepts X - 0 for X - 1 (a count off by one)",
        "hops: the tolerance of 0.02 accepts X - 2 for X - 1 (a count off by one)",
    ]
    assert all("in 2 of 4 variants, first X=200, Y=3; choose draws" in line for line in found)


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
