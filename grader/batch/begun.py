"""Grade the exercises that a learner has begun."""

from __future__ import annotations

from collections.abc import Sequence

from grader.batch.grade import Grader
from grader.common.result import ExerciseReport, Report
from grader.course.loading import Course
from grader.intake.facts import is_untouched
from grader.intake.submission import Submission


def graded_if_begun(grader: Grader, submission: Submission, names: Sequence[str], *, public: bool) -> Report:
    """Grade the exercises ``names``. An exercise counts as not handed in if the learner did not change its file."""
    course, given = grader.course, grader.course.handed_out
    begun = [name for name in names if not is_untouched(submission.sources.get(name), given)]
    report = grader.grade(submission, begun, public=public)
    graded = {e.exercise: e for e in report.exercises}
    return report.model_copy(update={"exercises": [graded.get(name) or _not_begun(course, name) for name in names]})


def _not_begun(course: Course, name: str) -> ExerciseReport:
    exercise = course.exercise(name)
    return ExerciseReport(
        exercise=name, module=exercise.module, title=exercise.title, points=0, earned=0, pending=0, results=[],
        handed_in=False, extension=exercise.extension,
    )  # fmt: skip
