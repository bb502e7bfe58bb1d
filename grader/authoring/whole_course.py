"""Test a whole course, and each exercise in the form that learners get.

Names are unique, learners' files are current, nothing leaks, and course.yaml lists all files. The learners' form is the
public part that ``build`` writes, without ``solutions/``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from grader.authoring.leaks import leaks
from grader.batch.grade import Grader
from grader.course.build import stale, usable_products
from grader.course.config import GRADING, CourseError
from grader.course.loading import Course
from grader.course.public import public_source
from grader.course.sources import source_problems
from grader.exercise import Exercise
from grader.intake.submission import Submission
from grader.sandbox.temporary import home


def course_problems(course: Course, reported: Collection[str] | None = None) -> Iterator[str]:
    """Yield the problems of the course as a whole.

    Args:
        reported: exercises whose problems the caller reports. For these exercises, no line says that the exercise
            cannot be used. Only the texts of these exercises are searched for solutions and right answers. None
            searches the texts of all exercises.
    """
    yield from _names([course.exercise(name) for name in course.usable(course.module_of)[0]])
    try:
        made = usable_products(course)
    except CourseError as error:
        yield str(error)
        return
    for name in made.unusable:
        if name not in (reported or ()):
            yield f"{name} cannot be used, so its files for learners were not tested; see: shardlings verify {name}"
    for path in stale(course, made):
        yield f"exercises/{path} is not current; run `shardlings build`"
    yield from leaks(course, made.texts, reported)
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


def released_problems(grader: Grader, exercise: Exercise, reference: Submission) -> Iterator[str]:
    """Yield a problem for each public name of the author's file that the learners' file lacks.

    Also yield a problem for each public check that the solution does not pass if the course has the learners' file.

    Args:
        reference: the solution, as a submission.

    Raises:
        CourseError: the learners' file cannot be used.
    """
    released = _released(grader.course, exercise)
    found = released.exercise(exercise.id)
    expected = {**exercise.tasks, **exercise.questions, **{c.name: c for c in exercise.checks.values() if c.public}}
    for name in sorted(expected.keys() - {**found.tasks, **found.questions, **found.checks}.keys()):
        yield f"the learners' file lacks {name}: declare it at the top level of the file, not in a loop or an if"
    with grader.pool.lent() as workers:
        report = Grader(released, grader.tier, here=workers).grade(reference, [exercise.id], public=True)
    for result in report.exercises[0].results:
        if result.kind == "check" and result.status != "passed":
            yield f"with the learners' file, the reference does not pass {result.name}: {result.reason}"


def _released(course: Course, exercise: Exercise) -> Course:
    with tempfile.TemporaryDirectory(dir=home()) as folder:
        released = Course(Path(folder), course.config)
        path = released.path_of(exercise.id)
        path.parent.mkdir(parents=True)
        path.write_text(public_source(exercise), encoding="utf-8")
        try:
            released.exercise(exercise.id)
        except CourseError as error:
            where = str(error).replace(f"{folder}/", "exercises/")
            raise CourseError(f"the learners' file cannot be used: {where}") from None
    return released
