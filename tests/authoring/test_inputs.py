"""Inputs of calls: sizes that follow the mesh, values that differ and are equal in every process. Cases that can be passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader.authoring.inputs import ULPS, alike_inputs, case_problems, fixed_keywords, tame_dims, undecided_draws
from grader.exercise import Array, AuthorError, Call, Exercise, array, axis, draws, normal
from grader.expect import expect_outcomes
from grader.judging.plan import MOST_CASES

UNSEEDED = np.random.default_rng()


def called(**what: Any) -> Exercise:
    exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}])

    @exercise.task
    def f(*args, mesh):
        """f"""

    @exercise.check(exercise.call(f, **what), points=1)
    def value(seen):
        """value"""

    return exercise


def test_values_that_do_not_come_from_the_generator_are_reported() -> None:
    exercise = called(a=normal(3), b=array(3, draw=lambda rng, shape: UNSEEDED.random(shape)))
    assert list(undecided_draws(exercise)) == [
        "f: two draws with one seed give different values of argument b: draw only with the given rng"
    ]
    assert list(undecided_draws(called(a=array(3, draw=lambda rng, shape: rng.random(shape))))) == []


def test_values_that_cannot_be_drawn_are_reported() -> None:
    with pytest.raises(AuthorError, match=r"^f: argument a: the drawn array has shape \(4,\), expected \(3,\)$"):
        list(undecided_draws(called(a=array(3, draw=lambda rng, shape: rng.random(4)))))


@pytest.mark.parametrize(
    ("hidden", "told"),
    [
        ({"I": 3 * axis("x"), "J": 5}, []),
        ({"I": axis("x"), "J": 5}, []),
        ({"I": 2 * axis("x"), "J": 5}, ["f: on the mesh {'x': 4, 'y': 2}, a device's part of I has an odd size for `dims`, but an even size for `hidden_dims`; change I in `hidden_dims` so that the part's size is odd", "f: on the mesh {'x': 2, 'y': 4}, a device's part of I has an odd size for `dims`, but an even size for `hidden_dims`; change I in `hidden_dims` so that the part's size is odd", "f: on every mesh, the size of I on a device is even with hidden_dims; choose I in hidden_dims so that this size is odd"]),
        ({"I": axis("x"), "J": 4}, []),
        ({"I": axis("x"), "J": axis("x")}, ["f: two hidden dimensions have equal sizes; give different sizes"]),
        ({"I": axis("x"), "J": 4 * axis("x")}, []),
        ({"I": 3 * axis("x") * axis("x"), "J": 5}, ["f: on the mesh {'x': 4, 'y': 2}, a device's part of I has an odd size for `dims`, but an even size for `hidden_dims`; change I in `hidden_dims` so that the part's size is odd", "f: on the mesh {'x': 2, 'y': 4}, a device's part of I has an odd size for `dims`, but an even size for `hidden_dims`; change I in `hidden_dims` so that the part's size is odd", "f: on every mesh, the size of I on a device is even with hidden_dims; choose I in hidden_dims so that this size is odd"]),
    ],
)  # fmt: skip
def test_hidden_sizes_that_follow_the_mesh_are_checked_on_each_mesh(hidden: dict[str, Any], told: list[str]) -> None:
    call = (
        called(a=normal("I", "J", spec=("x",)), dims={"I": axis("x"), "J": 3}, hidden_dims=hidden).checks["value"].call
    )
    assert isinstance(call, Call) and list(tame_dims(call)) == told


ONE = "f: the static keyword t is {} in every call, so a solution can hard-code it: give hidden_static, or another value in another call"  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([{"static": {"t": 0.25}}], [ONE.format(0.25)]),
        ([{"static": {"t": 0.25}}, {"static": {"t": 0.25}}], [ONE.format(0.25)]),
        ([{"static": {"t": 0.25}, "hidden_static": {"t": 0.25}}], [ONE.format(0.25)]),
        ([{"static": {"t": 0.5}}, {}], [ONE.format(0.5)]),  # the default value
        ([{"static": {"t": [1, 2]}}], [ONE.format([1, 2])]),
        ([{"static": {"t": 0.25}, "hidden_static": {"t": 0.5}}], []),
        ([{"static": {"t": 0.25}}, {"static": {"t": 0.5}}], []),
        ([{"static": {"t": 0.25}}, {}], []),
        ([{"static": {"t": 1}}, {"static": {"t": True}}], []),
        ([{}], []),
    ],
)
def test_a_static_keyword_with_one_value_in_all_calls_is_reported(calls: list[dict[str, Any]], told: list[str]) -> None:
    exercise = Exercise(meshes=[{"x": 4}])

    @exercise.task
    def f(a, *, mesh, t=0.5):
        """f"""

    @exercise.task
    def g(a, *, mesh, t=0.5):
        """g: values in calls of another task do not count"""

    for task, words in [(f, calls), (g, [{"static": {"t": 1.5}, "hidden_static": {"t": 2.5}}])]:
        for number, call in enumerate(words):
            check = lambda seen: None  # noqa: E731
            check.__name__ = f"{task.name}{number}"
            check.__doc__ = "value"
            exercise.check(exercise.call(task, a=normal(3), **call), points=1)(check)
    assert list(fixed_keywords(exercise)) == told


@pytest.mark.parametrize(
    ("fn", "told"),
    [
        (lambda a, *, mesh, t: a, []),  # the call without t raises TypeError, which ``fixed_keywords`` does not report
        (lambda a, *, mesh, t=print: a, []),
        (lambda a, *, mesh, **more: a, []),
        (lambda a, *, mesh, **more: a, [ONE.format(0.25)]),
        (lambda a, *, mesh, other=0: a, [ONE.format(0.25)]),  # ``fixed_keywords`` does not report that t is missing
    ],
)
def test_a_static_keyword_without_a_plain_default_is_compared(fn: Callable[..., Any], told: list[str]) -> None:
    exercise = Exercise(meshes=[{"x": 4}])
    fn.__name__, fn.__doc__ = "f", "f"
    task = exercise.task(fn)
    calls: list[dict[str, Any]] = [{"static": {"t": 0.25}}, *([] if told else [{}])]
    for number, call in enumerate(calls):
        check = lambda seen: None  # noqa: E731
        check.__name__, check.__doc__ = f"value{number}", "value"
        exercise.check(exercise.call(task, a=normal(3), **call), points=1)(check)
    assert list(fixed_keywords(exercise)) == told


ALONG = "f: argument a has equal values along dimension {} in every draw, so a program that swaps positions along it would pass: draw different values"
TWICE = "f: argument a gives each device of the mesh {'x': 4, 'y': 2} values that another device also has, so a program that mixes up the devices would pass: draw different values for each device"
FIXED = "f: argument a does not depend on rng, so learners know its hidden values: draw with the given rng"


@pytest.mark.parametrize(
    ("a", "told"),
    [
        (normal(8, 3, spec=("x",)), []),
        (normal(8, 3, spec=()), []),
        (array(8, 3, draw=lambda rng, shape: np.ones(shape), spec=("x",)), [ALONG.format(0)]),
        (array(8, 3, draw=lambda rng, shape: np.tile(rng.random(3), (8, 1)), spec=("x",)), [ALONG.format(0)]),
        (array(8, 3, draw=lambda rng, shape: np.tile(rng.random((8, 1)), (1, 3)), spec=("x",)), [ALONG.format(1)]),
        (array(8, 3, draw=lambda rng, shape: np.tile(rng.random((4, 3)), (2, 1)), spec=("x",)), [TWICE]),
        (array(8, 3, draw=lambda rng, shape: np.tile(rng.random((4, 3)), (2, 1)), spec=()), []),
        # The first and the last part are equal, but the two parts between them differ.
        (array(8, 3, draw=lambda rng, shape: np.tile(rng.random((6, 3)), (2, 1))[:8], spec=("x",)), []),
        (array(8, 3, draw=lambda rng, shape: np.random.default_rng(0).random(shape), spec=("x",)), [FIXED]),
        # Only floats must differ between draws, not integers such as positions.
        (array(8, draw=lambda rng, shape: np.arange(8), dtype="int32", spec=("x",)), []),
        (array(8, 8, draw=draws.causal_mask, dtype="bool", spec=("x",)), []),
        (array(1, 3, draw=lambda rng, shape: rng.random(shape)), []),  # a dimension of size 1 has only one part
        (array(draw=lambda rng, shape: 0.5), []),  # a scalar cannot be divided into parts
    ],
)
def test_inputs_in_which_wrong_programs_cannot_differ_are_reported(a: Array, told: list[str]) -> None:
    exercise = called(a=a, b=normal(3), meshes=[{"x": 4, "y": 2}])
    assert list(alike_inputs(exercise)) == told


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
