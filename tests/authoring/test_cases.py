"""Cases of plain functions that no solution could pass, and checks that fail because of rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grader.authoring.cases import ULPS, case_problems
from grader.exercise import AuthorError, Exercise
from grader.expect import expect_outcomes
from grader.judging.plan import MOST_CASES


def asked(fn: Callable[..., Any], hidden: list[dict[str, Any]] | Callable[..., Any], **how: Any) -> Exercise:
    exercise = Exercise(statement="# A title\n\nRaise OverflowError for a number that is too large.")
    task = exercise.function(fn)
    draw = hidden if callable(hidden) else lambda rng: hidden
    cases = exercise.cases(task, public=[{"n": 8}], hidden=draw)

    @exercise.check(cases, points=1, public=True)
    def value(seen):
        """value"""
        expect_outcomes(seen, **how)

    return exercise


def raising(error: Exception) -> Callable[..., Any]:
    def half(n):
        """Half of n; ZeroDivisionError for 0."""
        if n == 9:
            raise error
        return n // 2

    return half


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("n"), "half: for n=9 the reference raises KeyError: mend the reference or the case; if the error is right, name it in the statement or the docstring"),
        (ZeroDivisionError("n"), ""),  # the docstring names this error
        (OverflowError("n"), ""),  # the statement names this error
    ],
)  # fmt: skip
def test_an_error_that_learners_cannot_know_is_reported(error: Exception, told: str) -> None:
    found = list(case_problems(asked(raising(error), [{"n": 9}, {"n": 10}]), "seed"))
    assert found == ([told] if told else [])


def test_a_reference_result_that_no_answer_can_equal_is_reported() -> None:
    def odd(n):
        return float("nan") if n == 9 else n

    def grouped(n):
        return {n}

    assert list(case_problems(asked(odd, [{"n": 9}]), "seed")) == [
        "odd: for n=9 the reference returned nan, which no learner's answer can equal: mend the reference or the case"
    ]
    assert list(case_problems(asked(grouped, [{"n": 9}]), "seed")) == [
        "grouped: for n=8 the reference returns a value that cannot be compared: return numbers, texts, lists, tuples or dicts"
    ]  # fmt: skip


def test_verify_tries_hidden_cases_of_other_seeds() -> None:
    def inverse(n):
        return 1000 // n

    found = list(case_problems(asked(inverse, lambda rng: [{"n": int(rng.integers(5))}]), "a-seed"))
    assert found and found[0].startswith("inverse: for n=0 the reference raises ZeroDivisionError: ")


def test_a_hidden_case_with_wrong_arguments_is_refused() -> None:
    due = "half, in a hidden case, is called with m: missing a required argument: 'n'"
    with pytest.raises(AuthorError, match=f"^{due}$"):
        list(case_problems(asked(raising(KeyError()), [{"m": 9}]), "seed"))
    with pytest.raises(
        AuthorError, match=r"^half: in a hidden case, argument n is the set \{9\}, which cannot be sent"
    ):
        list(case_problems(asked(raising(KeyError()), [{"n": {9}}]), "seed"))
    with pytest.raises(
        AuthorError, match=f"^half: the function `hidden` draws more than {MOST_CASES:,} cases; draw fewer$"
    ):
        list(case_problems(asked(raising(KeyError()), lambda rng: ({"n": 1} for _ in iter(int, 1))), "seed"))


@pytest.mark.parametrize(
    ("fn", "how", "is_told"),
    [
        (lambda n: n / 3, {}, True),
        (lambda n: {"all": [n, (n / 3, "x")]}, {}, True),
        (lambda n: n / 3, {"rtol": 1e-15}, True),
        (lambda n: n / 3, {"rtol": 1e-9}, False),
        (lambda n: n * 2.0, {}, False),  # floats represent whole numbers exactly
        (lambda n: n > 3, {}, False),
    ],
)
def test_a_check_with_a_tolerance_below_rounding_errors_is_reported(
    fn: Callable[..., Any], how: dict[str, float], is_told: bool
) -> None:
    fn.__name__ = "third"
    found = list(case_problems(asked(fn, [{"n": 10}, {"n": 11}], **how), "seed"))
    told = "value: the check fails a program whose floats differ from the reference's floats only in the last digits, for example because of another order of operations. Give expect_outcomes a larger rtol"
    assert found == ([told] if is_told else [])
    assert ULPS * 2.0**-52 < 1e-9  # tolerances of 1e-9, usual for exact formulas, are allowed
