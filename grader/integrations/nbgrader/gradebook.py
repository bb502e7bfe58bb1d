"""Rows of nbgrader's gradebook: the cells of an assignment, and the results of a graded notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import Assignment, Gradebook, Student, SubmittedAssignment, SubmittedNotebook
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy.orm import selectinload

from grader.common.result import ExerciseReport, Report
from grader.exercise import Exercise
from grader.integrations.nbgrader import by_hand, cells, folder, written
from grader.integrations.nbgrader.autograder import Shardlings, StudentNotebook
from grader.integrations.nbgrader.repair import ReleasedCell

NO_RESPONSE = "No response."


def known_cells(gradebook: Gradebook, assignment: str, notebook: str) -> list[ReleasedCell]:
    """Return a notebook's cells in the gradebook, with their points and roles."""
    found: Any = gradebook.find_notebook(notebook, assignment)
    points = {c.name: c.max_score for c in (*found.grade_cells, *found.task_cells)}
    solutions = {c.name for c in found.solution_cells}
    tasks = {c.name for c in found.task_cells}
    return [
        ReleasedCell(
            name=c.name,
            kind=c.cell_type,
            source=c.source,
            checksum=c.checksum,
            points=points.get(c.name),
            solution=c.name in solutions,
            task=c.name in tasks,
            locked=bool(c.locked),
        )
        for c in found.source_cells
    ]


def in_order(known: list[ReleasedCell], released: Path) -> list[ReleasedCell]:
    """Return the cells in the order of the released notebook, because the gradebook does not store the order."""
    try:
        nodes = nbformat.read(released, as_version=4).cells
    except Exception:
        return known
    order = {n.metadata.get("nbgrader", {}).get("grade_id"): i for i, n in enumerate(nodes)}
    return sorted(known, key=lambda k: order.get(k.name, len(order)))


@contextmanager
def one_transaction(gradebook: Gradebook) -> Iterator[None]:
    """Commit all changes that the ``with`` block makes to the gradebook, or none.

    nbgrader commits after every row. In the block, these commits only add to one transaction. The end of the block
    commits this transaction. Source: "Joining a Session into an External Transaction" in SQLAlchemy's documentation.
    """
    session: Any = gradebook.db
    session.remove()
    try:
        with gradebook.engine.begin() as connection:
            session.configure(bind=connection, join_transaction_mode="rollback_only", expire_on_commit=False)
            yield
            session.flush()
    finally:
        session.remove()
        session.configure(bind=gradebook.engine, join_transaction_mode="conditional_savepoint", expire_on_commit=True)


def submissions_of(gradebook: Gradebook, assignment: str, students: Sequence[str]) -> list[Any]:
    """Return the submissions of ``students`` from the gradebook, with one fast query for each kind of row."""
    of: Any = SubmittedAssignment
    book: Any = SubmittedNotebook
    kind: Any = Assignment
    notebooks = selectinload(of.notebooks)
    return (
        gradebook.db.query(of)
        .join(kind, kind.id == of.assignment_id)
        .filter(kind.name == assignment, of.student_id.in_(students))
        .options(notebooks.selectinload(book.grades), notebooks.selectinload(book.comments))
        .order_by(of.student_id)
        .all()
    )


def names_of(gradebook: Gradebook) -> dict[str, str]:
    """Return the first name and last name of each student with a name in the gradebook."""
    of: Any = Student
    rows = gradebook.db.query(of.id, of.first_name, of.last_name).order_by(of.id)
    names = {str(student): " ".join(filter(None, name)) for student, *name in rows}
    return {student: name for student, name in names.items() if name}


def annotate(submitted: Any, autograder: Shardlings, book: StudentNotebook, report: Report, mark: str) -> None:
    """Add data to a notebook's rows that nbgrader does not save: reasons, extra credit, flags for manual grading.

    The reasons are saved as comments. Scores, extra credit and comments by people never change. The caller must commit
    the changes.

    Args:
        submitted: nbgrader's SubmittedNotebook.
        mark: the stamp of the results.
    """
    declared = {name: autograder.loaded.exercise(name) for name in book.names}
    found = {e.exercise: e for e in report.exercises}
    broken = broken_in([report])
    to_grade = _cells_to_grade(autograder, book, report) | _cells_of_others(book)
    comments = {c.name: c for c in submitted.comments if c.name not in book.repaired.untouched - to_grade}
    for name, exercise in declared.items():
        _comment_tasks(comments, exercise, found[name])
    extra_words = by_hand.to_read(autograder.loaded, [name for name in book.names if declared[name].extension])
    bonus = {cell: found[name].earned for cell, name in book.exercise_of.items() if declared[name].extension}
    _give_extra(submitted, bonus, mark)
    for grade in submitted.grades:
        _await_a_person(grade, to_grade)
        if grade.name in extra_words and grade.auto_score is None:
            grade.auto_score = 0  # nbgrader omits the extra credit of a cell without a score
        if book.exercise_of.get(grade.name) in broken:
            grade.needs_manual_grade = True


def broken_in(reports: Iterable[Report]) -> set[str]:
    """Return the exercises in which the grader itself failed."""
    return {e.exercise for of in reports for e in of.exercises for result in e.results if result.status == "broken"}


def empty(submitted: Any) -> None:
    """Set the rows of a notebook that was not submitted. The caller must commit the changes."""
    for grade in submitted.grades:
        grade.auto_score, grade.needs_manual_grade = 0, False
    for comment in submitted.comments:
        comment.auto_comment = None
    submitted.late_submission_penalty = None
    _give_extra(submitted, dict.fromkeys(written.read(submitted).extra_credit, 0.0), "")


def _give_extra(submitted: Any, bonus: Mapping[str, float], mark: str) -> None:
    """Set the extra credit of cells of extensions. A value that the grader did not write is a person's, and stays.

    Args:
        bonus: the extra credit that the grader gives, by the cell's name.
    """
    last = written.read(submitted).extra_credit
    now = dict(last)
    for grade in submitted.grades:
        if grade.name in bonus and grade.extra_credit in (None, last.get(grade.name, 0.0), bonus[grade.name]):
            grade.extra_credit = now[grade.name] = bonus[grade.name]
        elif grade.name in bonus:
            grade.needs_manual_grade = True
    written.write(submitted, written.Written(mark, now))


def _cells_of_others(book: StudentNotebook) -> set[str]:
    """Return the names of autograded cells that are no exercise of the course. A person must grade these cells."""
    if book.repaired.is_blank:
        return set()
    return {name for node in book.repaired.cells if (name := cells.graded_code(node))} - book.exercise_of.keys()


def _await_a_person(grade: Any, to_grade: set[str]) -> None:
    """Flag a cell that a person must grade, because nbgrader gives 0 points to an unchanged cell without this flag.

    A cell may be unchanged although the student answered: a question may ask for code in another cell.
    """
    if grade.name in to_grade and grade.manual_score is None:
        grade.auto_score, grade.needs_manual_grade = None, True


def _cells_to_grade(autograder: Shardlings, book: StudentNotebook, report: Report) -> set[str]:
    """Return the names of cells with answers that a person must grade."""
    waiting = {f"{e.exercise}/{r.name}" for e in report.exercises for r in e.results if r.status == "waiting"}
    read = by_hand.to_read(autograder.loaded, book.names)
    return {cell for cell, question in read.items() if question in waiting}


def _comment_tasks(comments: dict[str, Any], exercise: Exercise, report: ExerciseReport) -> None:
    for task, cell in folder.solution_cells(exercise).items():
        if cell in comments:
            comments[cell].auto_comment = cells.comment(report, task)


def save(submitted: Any, nodes: list[Any], book: StudentNotebook) -> None:
    """Set the scores of all cells, as nbgrader's SaveAutoGrades does. The caller must commit the changes."""
    from nbgrader.utils import determine_grade

    graded = {n.metadata.nbgrader["grade_id"]: n for n in nodes if n.metadata.get("nbgrader", {}).get("grade")}
    for grade in submitted.grades:
        node = graded.get(grade.name)
        if node is None:
            continue
        grade.auto_score = determine_grade(node)[0]
        grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
    for comment in submitted.comments:
        comment.auto_comment = NO_RESPONSE if comment.name in book.repaired.untouched else None


# -- late penalties ----------------------------------------------------------------------------


def late_plugin(parent: Any) -> Any:
    """Return the plugin that nbgrader_config.py names. ``parent`` is nbgrader's converter."""
    late: Any = AssignLatePenalties(parent=parent)
    late.init_plugin()
    return late.plugin_inst


class Penalties:
    """Sets late penalties like nbgrader's AssignLatePenalties. ``parent`` is nbgrader's converter."""

    def __init__(self, parent: Any) -> None:
        self._plugin = late_plugin(parent)

    def set(self, submission: Any) -> str:
        """Set the penalties of a late submission, and return the reason why the plugin failed, or "".

        After a failure the gradebook has no stamp of the notebook, so the next run tries again. The caller must commit
        the changes.

        Args:
            submission: nbgrader's SubmittedAssignment, with current sums of scores.
        """
        for notebook in submission.notebooks:
            if not written.read(notebook).stamp:
                continue  # the student did not submit this notebook
            score, late = notebook.score, submission.total_seconds_late
            try:
                penalty = self._plugin.late_submission_penalty(str(submission.student_id), score, late)
                notebook.late_submission_penalty = None if penalty is None else min(max(penalty, 0), score)
            except Exception as error:  # the plugin may be the staff's own
                written.write(notebook, replace(written.read(notebook), stamp=""))
                name = type(self._plugin).__name__
                return f"{name} cannot compute the late penalty: {type(error).__name__}: {error}"
        return ""
