"""Points that a person set in nbgrader's formgrader, for answers in words or in place of the grader's points."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grader.batch.overrides import Override, overridden, with_sums
from grader.common.result import ByHand, ExerciseReport, Report, Result, sum_of_points
from grader.course.loading import Course
from grader.exercise import Exercise
from grader.integrations.nbgrader import folder
from grader.reports.points import tidy

WHO = "the staff, in nbgrader"
EXTRA = "extra_credit"
SAID = 1000  # a report shows at most this many characters of a person's comment


def laid_over(report: Report, submission: Any, course: Course) -> Report:
    """Return the report with the points that a person set in the gradebook.

    In nbgrader, an exercise has one check cell for all points that the grader gives, and a cell for each answer in
    words. If a person scores the check cell, this score replaces all points of the grader. The report then has one
    total for the exercise: this score plus the points of all answers in words. Until all of these answers are graded,
    the score does not count. Extra credit for an exercise becomes a bonus exercise of its own (``_extra_credit``).

    Args:
        submission: nbgrader's SubmittedAssignment.
    """
    grades = _grades_of(submission)
    comments = {comment.name: comment.manual_comment for book in submission.notebooks for comment in book.comments}
    found = [one for graded in report.exercises for one in _given(course, report.student, graded, grades, comments)]
    extra = _extra_credit(course, report, grades)
    if not found and not extra:
        return report
    settled = overridden(report, None, found)[0]
    return with_sums(settled.model_copy(update={"exercises": [*settled.exercises, *extra]}))


def out_of_range(report: Report, submission: Any, course: Course) -> list[str]:
    """Return a reason for review for each score by hand below 0, or above the points of its cell.

    The report cannot show such a score (``laid_over`` uses the nearest possible score), but nbgrader adds it up.
    """
    grades, found = _grades_of(submission), list[str]()
    for graded in report.exercises:
        exercise = course.exercise(graded.exercise)
        words = to_read(course, [exercise.id])
        worth = {f"{exercise.id}/{result.name}": result.points for result in graded.results}
        in_words = 0.0 if exercise.extension else sum(worth[check] for check in words.values())
        cells = {folder.check_cell(exercise.id): (exercise.id, graded.points - in_words)}
        cells |= {cell: (check, worth[check]) for cell, check in words.items()}
        for cell, (name, most) in cells.items():
            points = _points(exercise, grades.get(cell))
            if points is not None and not -1e-6 <= points <= most + 1e-6:
                score = f"the score {tidy(points)} of {name} is not between 0 and {tidy(most)}"
                found.append(f"{score}: nbgrader counts this score, but the pages do not")
    return found


def _grades_of(submission: Any) -> dict[str, Any]:
    return {grade.name: grade for book in submission.notebooks for grade in book.grades}


def _extra_credit(course: Course, report: Report, grades: dict[str, Any]) -> list[ExerciseReport]:
    """Return a bonus exercise without checks that has the extra credit that a person gave; [] if a person gave none.

    The extra credit in the cells of extensions is not included, because it replaces the points of the extension itself.
    """
    regular = [course.exercise(e.exercise) for e in report.exercises if not e.extension]
    cells = {folder.check_cell(exercise.id): exercise.id for exercise in regular}
    cells |= to_read(course, cells.values())
    scored = {name: grades[cell] for cell, name in cells.items() if cell in grades and _has_score(grades[cell])}
    given = {name: float(grade.extra_credit) for name, grade in scored.items() if grade.extra_credit}
    if not given:
        return []
    total, module = sum_of_points(given.values()), report.exercises[0].module
    because = ", ".join(f"{tidy(points)} for {name}" for name, points in given.items())
    return [
        ExerciseReport(
            exercise=f"{EXTRA}_{module}", module=module, title="Extra credit", points=total, earned=total, pending=0.0,
            results=[], extension=True, by_hand=ByHand(by=WHO, reason=because, graded=0.0, was=0.0),
        )
    ]  # fmt: skip


def _has_score(grade: Any) -> bool:
    """Return whether a cell has a score. nbgrader omits the extra credit of a cell without a score."""
    return grade.manual_score is not None or grade.auto_score is not None


def _given(
    course: Course, student: str, graded: ExerciseReport, grades: dict[str, Any], comments: dict[str, str | None]
) -> list[Override]:
    """Return the points that a person set: one entry for a whole exercise, or one for each answer in words."""
    exercise = course.exercise(graded.exercise)
    words = {check: cell for cell, check in to_read(course, [exercise.id]).items()}
    results = {f"{exercise.id}/{result.name}": result for result in graded.results}
    given = {c: points for c, cell in words.items() if (points := _points(exercise, grades.get(cell))) is not None}
    whole = _whole(exercise, graded, grades)
    rest = [result for check, result in results.items() if check in words and check not in given]
    if whole is not None and not any(result.waits for result in rest):
        total = whole + sum(given.values()) + sum(result.earned for result in rest)
        return [_override(student, exercise.id, total, graded, "")]
    return [_override(student, c, given[c], results[c], comments.get(words[c])) for c in results if c in given]


def _whole(exercise: Exercise, graded: ExerciseReport, grades: dict[str, Any]) -> float | None:
    """Return the points that a person gave for the check cell. Other extra credit of an extension is the grader's."""
    points = _points(exercise, grades.get(folder.check_cell(exercise.id)))
    is_graders = exercise.extension and points is not None and abs(points - graded.earned) < 1e-6
    return None if is_graders else points


def to_read(course: Course, exercises: Iterable[str]) -> dict[str, str]:
    """Return a dict from the cell's name to EXERCISE/QUESTION, for the questions whose answers a person grades."""
    return {
        folder.cell_name(name, question.name): f"{name}/{question.name}"
        for name in exercises
        for question in folder.written_questions(course.exercise(name))
    }


def _points(exercise: Exercise, grade: Any) -> float | None:
    """Return the points that a person gave for a cell.

    In nbgrader, the cells of an extension (an exercise whose points are a bonus) are worth 0 points. Staff enter the
    points of such a cell as extra credit.
    """
    if grade is None:
        return None
    return grade.extra_credit if exercise.extension else grade.manual_score


def _override(
    student: str, check: str, points: float, target: ExerciseReport | Result, comment: str | None
) -> Override:
    within = min(max(float(points), 0.0), target.points)
    reason = (comment or "").strip()[:SAID] or "no comment"
    return Override(student=student, check=check, points=within, by=WHO, reason=reason)
