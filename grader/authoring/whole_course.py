"""Test a whole course: names are unique, learners' files are current, nothing leaks, course.yaml lists all files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from grader.authoring.leaks import leaks
from grader.course.build import stale, usable_products
from grader.course.config import GRADING, CourseError
from grader.course.loading import Course
from grader.course.sources import source_problems
from grader.exercise import Exercise


def course_problems(course: Course, reported: Collection[str] = ()) -> Iterator[str]:
    """Yield the problems of the course as a whole.

    Args:
        reported: exercises whose problems the caller reports. For these exercises, no line says that the exercise
            cannot be used.
    """
    yield from _names([course.exercise(name) for name in course.usable(course.module_of)[0]])
    try:
        made = usable_products(course)
    except CourseError as error:
        yield str(error)
        return
    for name in made.unusable:
        if name not in reported:
            yield f"{name} cannot be used, so its files for learners were not tested; see: shardlings verify {name}"
    for path in stale(course, made):
        yield f"exercises/{path} is not current; run `shardlings build`"
    yield from leaks(course, made.texts)
    if not made.unusable:
        yield from source_problems(course)
    known = {f"{m}/{e}.py" for e, m in course.module_of.items()}
    known |= {f"{m}/{GRADING}/{e}.py" for e, m in course.module_of.items()}
    for path in sorted((course.root / "solutions").rglob("*.py")):
        name = path.relative_to(course.root / "solutions").as_posix()
        if name not in known and "__pycache__" not in name:
            if path.parent.name == GRADING:
                yield f"solutions/{name} belongs to no exercise in course.yaml: name the file after its exercise"
            else:
                yield f"solutions/{name} is not listed in course.yaml: add the exercise to its module"


def _names(exercises: Iterable[Exercise]) -> Iterator[str]:
    """Yield a problem for each name used twice, because all tasks and questions of a notebook share a namespace."""
    owner: dict[str, str] = {}
    for exercise in exercises:
        for name in [*exercise.tasks, *exercise.questions]:
            if name in owner:
                yield f"the name {name} is used by {owner[name]} and by {_file(exercise)}: rename one of them"
            owner[name] = _file(exercise)


def _file(exercise: Exercise) -> str:
    return f"solutions/{exercise.module}/{exercise.id}.py"
