"""Write the files of a folder of reports. All written files come from the database and can be written again."""

from __future__ import annotations

import json
from pathlib import Path

from grader.batch.changes import FILE as CHANGES
from grader.batch.changes import RecordedChange, by_regrade, history_csv
from grader.batch.database import Database, resumable
from grader.batch.opening import ROSTER, report_in
from grader.common.files import file_name, write_atomic
from grader.common.result import Report
from grader.course.config import CourseError
from grader.reports.pages import page_name, render_html, render_pieces, summary_html
from grader.reports.people import UNKNOWN, Person
from grader.reports.summary import Summary
from grader.reports.tables import write_grades_csv
from grader.reports.whole_class import WholeClass
from grader.reports.wording import Audience

AUDIENCES: tuple[Audience, ...] = ("student", "staff")
SUMMARY = "summary.json"


def write_files(folder: Path, database: Database, *, anew: bool = False) -> None:
    """Write all files of a report folder. Without ``anew``, leave out pages that are up to date.

    Raises CourseError if the database records no run.
    """
    found = database.last_run()
    if found is None:
        raise CourseError(f"{folder} has no summary by this version of shardlings; run shardlings grade again")
    summary, integrity, absent = found
    with resumable():
        for name in ("reports", "students"):
            (folder / name).mkdir(exist_ok=True)
        people, renamed = database.people(), database.not_shown()
        whole = WholeClass(people=people)
        for student in database.students():
            text = database.text(student)
            report = Report.loads(text)
            whole.add(report)
            person = people.get(student, UNKNOWN)
            _write_student(folder, report, text, person, anew=anew or student in renamed)
        _write_history(folder, database)
        if (roster := database.roster()) is not None:
            _write_if_other(folder / ROSTER, roster)
        write_atomic(folder / "integrity.json", integrity)
        write_grades_csv(whole, database.reports(), folder / "grades.csv", json.loads(absent))
        page = summary_html(Summary.model_validate_json(summary), whole, database.reports())
        write_atomic(folder / "index.html", page)
        database.all_shown()
        write_atomic(folder / SUMMARY, summary)


def unfinished(folder: Path, database: Database) -> str:
    """Return the summary of a run whose files were not all written, because it was killed; else ''."""
    found = database.last_run()
    path = folder / SUMMARY  # the last file that a run writes
    return found[0] if found is not None and not (path.is_file() and path.read_bytes() == found[0].encode()) else ""


def _write_student(folder: Path, report: Report, text: str, person: Person, *, anew: bool) -> None:
    """Write a student's pages, then the report, so that an up-to-date report proves that the pages are up to date."""
    path, pages = report_path(folder, report.student), pages_of(folder, report.student)
    current = path.is_file() and path.read_bytes() == text.encode()
    whole = all(page.is_file() and page.stat().st_size for page in pages)
    if not (current and whole) or anew:
        old = None if current or anew or not whole else report_in(path)
        if old is None or not shows_the_same(report, old):
            if not current:  # if the run is killed now, no report says that half-written pages are up to date
                path.unlink(missing_ok=True)
            for page, audience in zip(pages, AUDIENCES, strict=True):
                write_atomic(page, render_html(report, audience=audience, person=person), lasting=False)
    if not current:
        write_atomic(path, text, lasting=False)


def _write_history(folder: Path, database: Database) -> None:
    if database.regrades():
        write_atomic(folder / CHANGES, history_csv(map(RecordedChange.of, database.history())))
        newest_first = map(RecordedChange.of, database.history(newest_first=True))
        write_atomic(
            folder / "changes.html",
            render_pieces("changes.html.j2", regrades=by_regrade(newest_first), people=database.people()),
        )


def _write_if_other(path: Path, data: bytes) -> None:
    if not path.is_file() or path.read_bytes() != data:
        write_atomic(path, data)


def report_path(folder: Path, student: str) -> Path:
    """Return the file that holds the student's report."""
    return folder / "reports" / f"{file_name(student)}.json"


def pages_of(folder: Path, student: str) -> tuple[Path, Path]:
    """Return the paths of the student's page and of the staff's page."""
    page = page_name(student)
    return folder / "students" / page, folder / page


def remove_files(folder: Path, student: str) -> None:
    """Delete the report and the pages of a student."""
    with resumable():
        for path in (*pages_of(folder, student), report_path(folder, student)):
            path.unlink(missing_ok=True)


def shows_the_same(report: Report, other: Report) -> bool:
    """Return True if the grader writes identical pages for both reports."""

    def shown(of: Report) -> Report:
        drawn_by = [{"grader": e.basis.get("grader", "")} for e in of.exercises]
        exercises = [e.model_copy(update={"basis": b}) for e, b in zip(of.exercises, drawn_by, strict=True)]
        return of.model_copy(update={"fingerprint": "", "exercises": exercises})

    return all(e.basis for e in report.exercises) and shown(report).dumps() == shown(other).dumps()
