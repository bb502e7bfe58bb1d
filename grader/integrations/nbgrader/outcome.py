"""The outcome of grading a class, and the cases that need review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

from grader.batch.late import span
from grader.common.result import HandIn, Report
from grader.common.text import a_few
from grader.integrations.nbgrader.autograder import StudentNotebook
from grader.integrations.nbgrader.handed_in import unread_beside
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

    def forget_blank(self, reports: Mapping[str, Sequence[Report]]) -> None:
        """Remove students who wrote nothing from ``late``, because an empty submission does not count as handed in.

        Args:
            reports: for each student, one report for each notebook.
        """
        blank = {student for student, of in reports.items() if of and not any(report.handed_in for report in of)}
        self.late = {student: late for student, late in self.late.items() if student not in blank}

    def look_at(self, submission: Any, checks: Mapping[str, str], words: Mapping[str, str]) -> None:
        """Read a submission's gradebook rows: note how late it is, and the reasons why a person must review it.

        Args:
            submission: nbgrader's SubmittedAssignment.
            checks: the exercise of each check cell, by the cell's name.
            words: the question of each cell for an answer in words, by the cell's name.
        """
        student = str(submission.student_id)
        if submission.total_seconds_late > 0:
            self.late[student] = _late(submission)
        waiting = [grade for notebook in submission.notebooks for grade in notebook.grades if grade.needs_manual_grade]
        scored = {grade.name for grade in waiting if grade.manual_score is not None}
        unscored = {grade.name for grade in waiting} - scored
        if again := _in(scored, {**checks, **words}):
            self.needs_review(
                student,
                "this submission was graded again, "
                f"but a person had set the score of {', '.join(again)}: check that score",
            )
        if pending := _in(unscored, checks):
            self.needs_review(student, f"points are pending, because the grader itself failed in {', '.join(pending)}")
        if unread := _in(unscored, words):
            self.needs_review(student, f"by hand: grade {a_few(unread)} in the formgrader")


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


def _in(names: set[str], of: Mapping[str, str]) -> list[str]:
    return sorted(of[name] for name in names & of.keys())


def not_understood(
    notebooks: Mapping[str, StudentNotebook], known: Mapping[str, list[ReleasedCell]], place: Path
) -> list[str]:
    """Return, for each notebook that contains nothing to grade, the reason why a person must look at it.

    If the student wrote nothing in any notebook, also return a reason if the folder ``place`` has other notebooks.
    """
    reasons: list[str] = []
    for name, book in notebooks.items():
        solutions = {k.name for k in known[name] if k.solution}
        if not book.repaired.submission.sources:
            reasons += book.repaired.submission.notes[:1] if not book.repaired.untouched else []
        elif solutions and solutions <= book.repaired.missing:
            reasons.append(f"nothing of this assignment is in {name}.ipynb: is it another assignment's notebook?")
    return reasons + (
        unread_beside(place, known) if notebooks and all(w.repaired.is_blank for w in notebooks.values()) else []
    )
