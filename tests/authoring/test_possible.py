"""possible: a question's scenario must be able to exist, and its draws must differ."""

from __future__ import annotations

from typing import Any

import pytest
from jax.sharding import PartitionSpec as P

from grader.authoring.possible import distinct, impossible, question_problems
from grader.exercise import Exercise, Question, Scenario, larger


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
