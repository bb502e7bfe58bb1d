"""The outcome of grading a class in an nbgrader course: the cases that need review, and the staff's class page."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from grader.batch.changes import ChangedRules
from grader.batch.late import span
from grader.batch.overrides import as_graded, with_sums
from grader.common.files import write_atomic
from grader.common.result import HandIn, Report
from grader.common.text import a_few, looks, printable
from grader.course.loading import Course
from grader.integrations.nbgrader import handed_in
from grader.integrations.nbgrader.autograder import StudentNotebook
from grader.integrations.nbgrader.gradebook import broken_in
from grader.integrations.nbgrader.repair import ReleasedCell
from grader.reports.pages import page_name, render_html, summary_html
from grader.reports.people import UNKNOWN, Person
from grader.reports.points import counted
from grader.reports.summary import Attention, Kind, summarise
from grader.reports.whole_class import WholeClass

SHOWN = "shown.json"
_BEGINS: list[tuple[str, Kind]] = [
    ("not graded", "not graded"),
    ("points are pending", "pending"),
    ("by hand", "by hand"),
    ("this submission was graded again", "handed in again"),
]


class _Shown(BaseModel, frozen=True):
    """Digests of a student's page and reports from the last run.

    Attributes:
        page: a digest of the student's page.
        reports: the fingerprints of the student's reports.
    """

    page: str
    reports: list[str]


_SHOWN = TypeAdapter(dict[str, _Shown])


def write(
    place: Path,
    course: Course,
    reports: Mapping[str, Sequence[Report]],
    outcome: BatchOutcome,
    kept: Callable[[str], Report | None],
) -> None:
    """Write the class page and students' pages to ``place``. Add the class page's path and warnings to ``outcome``.

    A student's page is written if it is missing, or if it differs from the page of the last run.

    Args:
        reports: for each student, one report for each notebook.
        kept: returns the stored report with a fingerprint, or None.
    """
    place.mkdir(parents=True, exist_ok=True)
    outcome.forget_blank(reports)
    people = {student: Person(name) for student, name in outcome.names.items()}
    whole = [_together(student, list(of), outcome.late.get(student)) for student, of in sorted(reports.items()) if of]
    before, rules, now = _read_shown(place), ChangedRules(), dict[str, _Shown]()
    for report in whole:
        shown, person = before.get(report.student), people.get(report.student, UNKNOWN)
        digest = hashlib.sha256(f"{person.text}\n{report.dumps()}".encode()).hexdigest()
        new = _Shown(page=digest, reports=[r.fingerprint for r in reports[report.student]])
        other = shown.reports if shown and shown.reports != new.reports else []
        old = [found for fingerprint in other if (found := kept(fingerprint))]
        rules.add(_together(report.student, old) if old else None, as_graded(report))
        now[report.student] = new
        page = place / page_name(report.student)
        if not page.is_file() or shown is None or shown.page != digest:
            write_atomic(page, render_html(report, audience="staff", person=person))
    seed = [course.seed_problem] if course.seed_problem else []
    summary = summarise(whole, warnings=[*rules.warnings(), *seed])
    outcome.warnings, outcome.page = summary.warnings, str(place / "index.html")
    summary = summary.model_copy(update={"attention": _attention(outcome)})
    write_atomic(place / "index.html", summary_html(summary, WholeClass(whole, people), whole))
    write_atomic(place / SHOWN, _SHOWN.dump_json(now, indent=2))


def _attention(outcome: BatchOutcome) -> list[Attention]:
    """Return the cases that need review. A late submission needs review if it lost no points."""
    late = {student: one.text for student, one in sorted(outcome.late.items()) if not one.penalty}
    return [
        *(Attention(student=s, reason=why, kind=_kind(why)) for s, of in outcome.attention.items() for why in of),
        *(Attention(student=s, reason=text, kind="late") for s, text in late.items()),
    ]


def _read_shown(place: Path) -> dict[str, _Shown]:
    """Return the digests from the last run, by student; {} if the file ``SHOWN`` is missing or invalid."""
    try:
        return _SHOWN.validate_json((place / SHOWN).read_bytes())
    except (OSError, ValidationError):
        return {}


def drop(place: Path, student: str) -> None:
    """Delete a student's page before new results are written, so that a killed batch leaves no outdated page."""
    (place / page_name(student)).unlink(missing_ok=True)


def _together(student: str, reports: list[Report], late: HandIn | None = None) -> Report:
    """Merge a student's reports on the notebooks of one assignment. ``late``: the late submission and its penalty."""
    if late:
        late = late.model_copy(update={"penalty": min(late.penalty, sum(r.earned for r in reports))})
    merged = reports[0].model_copy(
        update={
            "student": student,
            "points": sum(r.points for r in reports),
            "exercises": [e for r in reports for e in r.exercises],
            "notes": list(dict.fromkeys(note for r in reports for note in r.notes)),
            "hand_ins": [late] if late else [],
        }
    )
    return with_sums(merged)


def _kind(reason: str) -> Kind:
    for begins, kind in _BEGINS:
        if reason.startswith(begins):
            return kind
    return "look"


# -- the outcome of grading a class ------------------------------------------------------------


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
