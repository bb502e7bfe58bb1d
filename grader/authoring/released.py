"""Test an exercise in the form that learners get: the public part that ``build`` writes, without ``solutions/``."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from grader.batch.grade import Grader
from grader.common.result import Report
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.public import public_source
from grader.exercise import Exercise
from grader.intake.submission import Submission
from grader.sandbox.temporary import home


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
    for result in _graded(grader, released, reference, exercise.id).exercises[0].results:
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


def _graded(grader: Grader, released: Course, reference: Submission, name: str) -> Report:
    with grader.workers() as workers:
        return Grader(released, grader.tier, here=workers).grade(reference, [name], public=True)
