"""What calls are asked with is proved: sizes that follow the mesh, and values that anybody draws alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grader.authoring.inputs import tame_dims, undecided_draws
from grader.exercise import AuthorError, Call, Exercise, array, axis, normal

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
    assert list(undecided_draws(exercise)) == ["f: argument b is drawn differently each time: draw with the given rng"]
    assert list(undecided_draws(called(a=array(3, draw=lambda rng, shape: rng.random(shape))))) == []


def test_values_that_cannot_be_drawn_are_reported() -> None:
    with pytest.raises(AuthorError, match=r"^f: argument a: what is drawn has shape \(4,\), expected \(3,\)$"):
        list(undecided_draws(called(a=array(3, draw=lambda rng, shape: rng.random(4)))))


@pytest.mark.parametrize(
    ("hidden", "told"),
    [
        ({"I": 3 * axis("x"), "J": 5}, []),
        ({"I": axis("x"), "J": 5}, []),
        ({"I": 2 * axis("x"), "J": 5}, ["f: hidden I is even on each device of the mesh {'x': 4, 'y': 2}, public I is odd", "f: hidden I is even on each device of the mesh {'x': 2, 'y': 4}, public I is odd", "f: hidden I is even on each device of every mesh"]),
        ({"I": axis("x"), "J": 4}, []),
        ({"I": axis("x"), "J": axis("x")}, ["f: two hidden dimensions are equal"]),
        ({"I": axis("x"), "J": 4 * axis("x")}, []),
        ({"I": 3 * axis("x") * axis("x"), "J": 5}, ["f: hidden I is even on each device of the mesh {'x': 4, 'y': 2}, public I is odd", "f: hidden I is even on each device of the mesh {'x': 2, 'y': 4}, public I is odd", "f: hidden I is even on each device of every mesh"]),
    ],
)  # fmt: skip
def test_hidden_sizes_that_follow_the_mesh_are_looked_at_on_each(hidden: dict[str, Any], told: list[str]) -> None:
    call = (
        called(a=normal("I", "J", spec=("x",)), dims={"I": axis("x"), "J": 3}, hidden_dims=hidden).checks["value"].call
    )
    assert isinstance(call, Call) and list(tame_dims(call)) == told
