"""Inputs of calls: sizes that follow the mesh, values that are equal in every process, parts that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader.authoring.inputs import alike_inputs, fixed_keywords, tame_dims, undecided_draws
from grader.exercise import Array, AuthorError, Call, Exercise, array, axis, draws, normal

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
