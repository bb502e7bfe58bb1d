"""A question's scenario must be able to exist, its draws must differ, and its tolerance must tell near misses apart."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from jax.sharding import PartitionSpec as P

from grader.authoring.possible import (
    distinct,
    impossible,
    near_miss_problems,
    near_misses,
    question_problems,
)
from grader.common.syntax import expression
from grader.exercise import Exercise, Question, Scenario, larger
from tests.made_up import made_up

QUESTION = '''
@exercise.number(points=1, unit="", params={"X": [4, 200], "Y": [3, 5]})
def hops(X, Y):
    """How many?"""
    return (X - 1) * Y


@exercise.number('''


def question(
    about: Any = Scenario, answer: Any = lambda n: n * 1e-6, published: tuple = (), **changed: Any
) -> Question:
    exercise = Exercise()
    options = {"points": 1, "unit": "us", "params": {"n": [2, 3, 5, 7, 11, 13, 17, 19]}} | changed

    def asked(n: int) -> float:
        """How long, for {{ n }}?"""
        return answer(n)

    number = exercise.number(**options)(asked)
    exercise.scenario(number, about if about is not Scenario else lambda n: Scenario(), published=published)
    return number


@pytest.mark.parametrize(
    ("about", "lines"),
    [
        (Scenario(), []),
        (Scenario(mesh={"x": 4, "y": 2}, arrays=[((24, 10), P("x", "y"))]), []),
        (Scenario(mesh={"x": 4, "y": 2}, arrays=[((26, 10), P("x", "y"))]), ["a dimension of size 26 cannot be cut into 4 equal parts"]),
        (Scenario(mesh={"x": 4, "y": 3}, arrays=[((512,), P(("x", "y")))]), ["a dimension of size 512 cannot be cut into 12 equal parts"]),
        (Scenario(chip="v4p", mesh={"n": 2560}), ["v4p has no slice of 2560 chips"]),
        (Scenario(chip="v5p", mesh={"n": 2560}), []),
        (Scenario(chip="v5e", slice=(4, 16), lines=(4,)), ["v5e has no slice of 4x16"]),
        (Scenario(chip="v5e", mesh={"x": 8}, rings=(8,)), ["v5e has no slice with rings of 8"]),
        (Scenario(heads=(64, 8)), []),
        (Scenario(heads=(64, 5)), ["64 query heads cannot share 5 KV heads evenly"]),
        (Scenario(chip="v5e", mesh={"x": 16}, holds=17e9), ["one v5e has 16 GB of memory, but the scenario puts 17.0 GB into it"]),
        (Scenario(chip="H100", mesh={"x": 7}), []),
    ],
)  # fmt: skip
def test_an_impossible_scenario_is_reported(about: Scenario, lines: list[str]) -> None:
    assert list(impossible(about)) == lines


def test_a_sound_question_has_no_problem() -> None:
    assert list(question_problems(question())) == []


def test_a_question_without_a_scenario_is_reported() -> None:
    number = question()
    number.scenario = None
    assert list(question_problems(number)) == ["asked: it has no scenario; add exercise.scenario(asked, ...)"]


def test_an_impossible_draw_is_reported_with_the_draw() -> None:
    number = question(lambda n: Scenario(heads=(38, n)))
    found = list(question_problems(number))
    assert found[0] == "asked: 38 query heads cannot share 3 KV heads evenly, with n=3" and len(found) == 1


def test_an_answer_outside_the_scenarios_bounds_is_reported() -> None:
    assert list(question_problems(question(lambda n: Scenario(least=2.5e-6)))) == [
        "asked: the answer, 2 us, is below the least possible answer, 2.5 us, with n=2"
    ]
    assert list(question_problems(question(lambda n: Scenario(most=18e-6)))) == [
        "asked: the answer, 19 us, is above the largest possible answer, 18 us, with n=19"
    ]


def test_a_draw_with_the_published_answer_is_reported() -> None:
    assert list(question_problems(question(published=(99, 7.1)))) == [
        "asked: the answer is one of the answers in `published`, so learners can look it up: 7.1 us, with n=7"
    ]


def test_a_question_with_fewer_than_eight_answers_is_reported() -> None:
    assert list(question_problems(question(params={"n": [2, 3, 5, 7, 11, 13, 17]}))) == [
        "asked: its params give 7 different right answers, but at least 8 are needed; list more values in params"
    ]
    assert distinct([1.0, 1.01, 1.019, 1.05, 2.0], 0.02) == 3


@pytest.mark.parametrize("how", ["declared", "in the model", "in the answer"])
def test_a_maximum_that_takes_one_branch_in_all_draws_is_reported(how: str) -> None:
    blind = "asked: its answer is the larger or smaller of several amounts; "
    both = lambda n: Scenario(branches=(larger(hops=5, bytes=n),))  # noqa: E731
    one = lambda n: Scenario(branches=(larger(hops=50, bytes=n),))  # noqa: E731
    changed: dict[str, Any] = {"model": "max(hops, bytes)"} if how == "in the model" else {}
    number = question(both, **changed)
    if how == "in the answer":
        number.fn = lambda n: max(0, n * 1e-6)
    assert list(question_problems(number)) == []
    number.scenario = one
    assert list(question_problems(number)) == [
        f"{blind}in all draws the answer is the amount 'hops'; choose params that also make another amount the answer"
    ]
    number.scenario = lambda n: Scenario()
    undeclared = [f"{blind}use Scenario(branches=...) to say for each draw which amount is the answer"]
    assert list(question_problems(number)) == ([] if how == "declared" else undeclared)


def test_a_scenario_that_raises_is_reported() -> None:
    found = list(question_problems(question(lambda n: Scenario(arrays=[((n,), P("x"))]))))
    assert found[0] == "asked: its scenario raises KeyError: 'x', with n=2"


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
    tree = ast.parse("def f(a, b):\n    return a * 2 + max(b - 1, 7)")
    assert [ast.unparse(module).split("return ")[1] for _, module in near_misses(tree)] == [
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
    assert [what for what, _ in near_misses(expression(key))] == near


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
