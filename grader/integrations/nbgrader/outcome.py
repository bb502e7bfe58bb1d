"""The outcome of grading a class, and the cases that need review."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

from grader.batch.late import span
from grader.common.result import HandIn, Report
from grader.common.text import a_few, looks, printable
from grader.integrations.nbgrader import handed_in
from grader.integrations.nbgrader.autograder import StudentNotebook
from grader.integrations.nbgrader.gradebook import broken_in
from grader.integrations.nbgrader.repair import ReleasedCell
from grader.reports.points import counted


@dataclass
class BatchOutcome:
    """The outcome for a class.

    Attributes:
        graded: students who were graded now.
        kept: students whose submissions had not changed.
        failures: the reason for each student who could not be graded.
        pending: students for whom the grader itself failed.
        attention: for each student, the reasons for review.
        late: for each late student, the time and nbgrader's penalty.
        names: the name of each student with a name in the gradebook.
        warnings: texts about the whole class.
        page: the path of the class page.
        no_secret: students without the file that release_feedback needs.
        tier: the kind of sandbox.
    """

    graded: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    attention: dict[str, list[str]] = field(default_factory=dict)
    late: dict[str, HandIn] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    page: str = ""
    no_secret: list[str] = field(default_factory=list)
    tier: str = ""

    def needs_review(self, student: str, *reasons: str) -> None:
        if reasons:
            self.attention.setdefault(student, []).extend(reasons)

    def note_look_alikes(self, submitted: Collection[str], known: Iterable[str]) -> None:
        """Note each submission of a student if another student's name looks like the student's name.

        Args:
            submitted: the students with a submission.
            known: the students in the gradebook.
        """
        groups: dict[str, set[str]] = {}
        for name in (*submitted, *known):
            groups.setdefault(looks(name), set()).add(name)
        for name in submitted:
            if others := groups[looks(name)] - {name}:
                alike = a_few([printable(other) for other in sorted(others)])
                self.needs_review(name, f"the name looks like that of another student, {alike}: are both one student?")

    def forget_blank(self, reports: Mapping[str, Sequence[Report]]) -> None:
        """Remove students who wrote nothing from ``late``, because an empty submission does not count as handed in.

        Args:
            reports: for each student, one report for each notebook.
        """
        blank = {student for student, of in reports.items() if of and not any(report.handed_in for report in of)}
        self.late = {student: late for student, late in self.late.items() if student not in blank}

    def look_at(
        self, submission: Any, checks: Mapping[str, str], words: Mapping[str, str], reports: Sequence[Report] = ()
    ) -> None:
        """Read a submission's gradebook rows: note how late it is, and the reasons why a person must review it.

        Args:
            submission: nbgrader's SubmittedAssignment.
            checks: the exercise of each check cell, by the cell's name.
            words: the question of each cell for an answer in words, by the cell's name.
            reports: the submission's reports, one for each notebook.
        """
        student = str(submission.student_id)
        if submission.total_seconds_late > 0:
            self.late[student] = _late(submission)
        grades = [grade for notebook in submission.notebooks for grade in notebook.grades if grade.needs_manual_grade]
        again, pending, unread = _sorted_out(grades, checks, None if not reports else broken_in(reports))
        names = {**checks, **words}
        if again:
            self.needs_review(
                student,
                "this submission was graded again, "
                f"but a person had set the score of {_named(again, names)}: check that score",
            )
        if pending:
            self.needs_review(
                student, f"points are pending, because the grader itself failed in {_named(pending, names)}"
            )
        if unread:
            self.needs_review(student, f"by hand: grade {_named(unread, names)} in the formgrader")


def _sorted_out(
    grades: Sequence[Any], checks: Mapping[str, str], broken: set[str] | None
) -> tuple[set[str], set[str], set[str]]:
    """Return the cells that wait for a person: cells with a person's score, pending cells, and all other cells.

    Args:
        grades: nbgrader's Grade of each cell that waits.
        checks: the exercise of each check cell, by the cell's name.
        broken: the exercises in which the grader itself failed; None if they are unknown.
    """
    scored = {str(grade.name) for grade in grades if grade.manual_score is not None}
    unscored = {str(grade.name) for grade in grades} - scored
    pending = {name for name in unscored & checks.keys() if broken is None or checks[name] in broken}
    # The grader gives every other check cell a score. So a person has changed the cell's extra credit.
    changed = unscored & checks.keys() - pending
    return scored | changed, pending, unscored - pending - changed


def _named(cells: set[str], names: Mapping[str, str]) -> str:
    return a_few(sorted(names.get(cell, cell) for cell in cells))


def _late(submission: Any) -> HandIn:
    """Return the time of a late submission, and the penalty that nbgrader's plugin gave."""
    late = timedelta(seconds=submission.total_seconds_late)
    penalty = sum(notebook.late_submission_penalty or 0.0 for notebook in submission.notebooks)
    cost = f": {counted(penalty, 'point')} off" if penalty else ""
    return HandIn(
        module=submission.name,
        submitted=submission.timestamp.replace(tzinfo=UTC).isoformat(timespec="seconds"),
        source="nbgrader",
        penalty=penalty,
        text=f"handed in {span(late)} late{cost}",
    )


def not_understood(
    notebooks: Mapping[str, StudentNotebook], known: Mapping[str, list[ReleasedCell]], place: Path
) -> list[str]:
    """Return the reasons why a person must look at notebooks: unread code, nothing to grade, a missing notebook.

    If the student wrote nothing in any notebook, also return a reason if the folder ``place`` has other notebooks.
    """
    if not notebooks:
        return []
    reasons = handed_in.why_incomplete(place, known, known.keys() - notebooks.keys())
    for name, book in notebooks.items():
        solutions = {k.name for k in known[name] if k.solution}
        reasons += book.repaired.unread
        if not book.repaired.submission.sources:
            is_odd = not book.repaired.untouched and not book.repaired.unread
            reasons += book.repaired.submission.notes[:1] if is_odd else []
        elif solutions and solutions <= book.repaired.missing:
            reasons.append(f"nothing of this assignment is in {name}.ipynb: is it another assignment's notebook?")
    is_blank = notebooks.keys() == known.keys() and all(book.repaired.is_blank for book in notebooks.values())
    return reasons + (handed_in.unread_beside(place, known) if is_blank else [])
