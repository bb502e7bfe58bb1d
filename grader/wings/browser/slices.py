"""The TPU slices for which the page can show timelines of programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grader.clock import placed
from grader.course.loading import Course
from grader.exercise import Exercise
from grader.exercise.declarations import judged_calls
from grader.hardware import SMALL_SLICES
from grader.hardware.times import FLAT_SLICES

SLICES = tuple(
    f"{chip}:{'x'.join(map(str, shape))}"
    for chip, shapes in (("v5e", FLAT_SLICES), ("v5p", SMALL_SLICES))
    for shape in shapes
)


def fitting(mesh: Mapping[str, int]) -> list[str]:
    """Return the slices in SLICES whose devices can form a mesh with these axis sizes."""
    return [name for name in SLICES if _fits(name, mesh)]


def usual_slice(exercise: Exercise, course: Course) -> str:
    """Return the slice to use until the learner chooses one; '' if no slice can form a mesh of the exercise."""
    return next((name for mesh in _meshes(exercise) for name in fitting(mesh)), "")


def _meshes(exercise: Exercise) -> Iterable[Mapping[str, int]]:
    for call in judged_calls(exercise.checks.values()):
        yield from call.meshes


def _fits(name: str, mesh: Mapping[str, int]) -> bool:
    try:
        placed(name, mesh)
    except ValueError:
        return False
    return True
