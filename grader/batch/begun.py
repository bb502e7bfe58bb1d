"""A look at much work at once: what is as it was handed out need not be graded to say so."""

from __future__ import annotations

from collections.abc import Sequence

from grader.batch.grade import Grader
from grader.common.result import ExerciseReport, Report
from grader.course.loading import Course
from grader.intake.stubs import nothing_written
from grader.intake.submission import Source, Submission, fingerprint


def is_untouched(course: Course, source: Source | None) -> bool:
    """Whether there is nothing of a learner's in it: no file, or one that is as it was handed out."""
    return source is None or fingerprint(source) in course.handed_out or nothing_written(source)


def graded_if_begun(grader: Grader, submission: Submission, names: Sequence[str], *, public: bool) -> Report:
    """A report of all these exercises; those that nobody has touched are in it as not handed in, without results."""
    course = grader.course
    untouched = {source for source in set(submission.sources.values()) if is_untouched(course, source)}
    begun = [name for name in names if submission.sources.get(name) not in {None, *untouched}]
    report = grader.grade(submission, begun, public=public)
    graded = {e.exercise: e for e in report.exercises}
    return report.model_copy(update={"exercises": [graded.get(name) or _not_begun(course, name) for name in names]})


def _not_begun(course: Course, name: str) -> ExerciseReport:
    exercise = course.exercise(name)
    return ExerciseReport(
        exercise=name, module=exercise.module, title=exercise.title, points=0, earned=0, pending=0, results=[],
        handed_in=False, extension=exercise.extension,
    )  # fmt: skip
