"""Open the database of a folder of reports, for reading or as a copy.

Older versions of the grader kept no database. When the grader first opens an old folder for writing, it makes a
database with the contents of the folder's files.
"""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

from pydantic import ValidationError

from grader.batch.changes import read_history
from grader.batch.database import FILE, SCHEMA, CannotWrite, Database, Stored
from grader.batch.older import report_of, set_aside_in
from grader.batch.overrides import as_graded
from grader.common.files import file_name
from grader.common.result import Report
from grader.course.config import CourseError
from grader.reports.points import counted
from grader.reports.summary import Summary
from grader.reports.tables import NOT_GRADED, NOTHING
from grader.sandbox.temporary import home

ROSTER = "roster.csv"


@dataclass
class TakenOver:
    """How many reports and changes were copied from an older version's files into a new database."""

    reports: int = 0
    changes: int = 0

    def text(self, folder: Path) -> str:
        """Return one line for the staff about what was copied; '' if no report was copied."""
        if not self.reports:
            return ""
        found = f"{counted(self.reports, 'report')} and {counted(self.changes, 'line')} of changes.csv"
        into = f"{folder / FILE}, which the grader uses from now on"
        return f"{folder} is from an older version; {found} were copied into {into}"


def take_over(database: Database, folder: Path) -> TakenOver:
    """Fill a new database from the files of an older version. Raises CourseError for a damaged history of changes."""
    found = TakenOver()
    for path in sorted((folder / "reports").glob("*.json")):
        report = report_in(path)
        if report is not None:
            database.replace_reports(report.student, Stored(as_graded(report), report))
            found.reports += 1
    for told in read_history(folder):
        database.add_change(told.regrade, told.when, *astuple(told.change))
        found.changes += 1
    roster = folder / ROSTER
    if roster.is_file():
        database.keep_roster(roster.read_bytes())
    if found.reports:
        _take_over_run(database, folder)
    return found


def _take_over_run(database: Database, folder: Path) -> None:
    """Copy an older version's summary, suspicious answers and students without a report.

    If one of the three files is invalid, copy nothing.
    """
    try:
        summary = (folder / "summary.json").read_text(encoding="utf-8")
        Summary.model_validate_json(summary)
        integrity = (folder / "integrity.json").read_text(encoding="utf-8")
        with open(folder / "grades.csv", encoding="utf-8", newline="") as file:
            rows = [(row["student"].removeprefix("'"), row["remarks"]) for row in csv.DictReader(file)]
        there = {*database.students()}
        absent = {s: remark for s, remark in rows if remark in (NOTHING, NOT_GRADED) and s not in there}
    except (OSError, UnicodeDecodeError, ValidationError, KeyError, csv.Error):
        return
    database.add_run("", summary, integrity, json.dumps(absent))
    database.set_cases(set_aside_in(summary))


def report_in(path: Path) -> Report | None:
    """Return the report in a file; None if the report is incomplete or about another student than the file's name."""
    try:
        found = report_of(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
    return found if file_name(found.student) == path.stem else None


def has_database(folder: Path) -> bool:
    """Return True if the folder has a database that is not empty. A killed process may leave an empty file."""
    path = folder / FILE
    return path.is_file() and path.stat().st_size > 0


def _is_older(path: Path) -> bool:
    """Return True if a database has an older schema, as the file's header shows."""
    with open(path, "rb") as file:
        header = file.read(64)
    return header.startswith(b"SQLite format 3\0") and 0 < int.from_bytes(header[60:]) < SCHEMA


@contextmanager
def copied(folder: Path) -> Iterator[tuple[Database, TakenOver]]:
    """Yield a copy of the folder's database, in a temporary folder. Nothing is written to ``folder``."""
    taken = TakenOver()

    def fill(made: Database) -> None:
        nonlocal taken
        taken = take_over(made, folder)

    with tempfile.TemporaryDirectory(dir=home()) as place:
        _copy(folder, Path(place))
        database = Database(Path(place) / FILE, fill)
        try:
            yield database, taken
        finally:
            database.close()


def _copy(folder: Path, place: Path) -> None:
    try:
        with _shared(folder):
            for name in (FILE, f"{FILE}-journal"):  # SQLite uses the journal to undo a killed process's write
                if (folder / name).exists():
                    shutil.copyfile(folder / name, place / name)
    except OSError as error:
        raise CannotWrite(f"cannot copy {folder / FILE} to {place}: {error.strerror}") from error


@contextmanager
def _shared(folder: Path) -> Iterator[None]:
    """Keep graders from writing to the folder during the block. Raises CourseError if a grader is writing to it now."""
    import fcntl

    if not (folder / ".lock").exists():
        yield
        return
    with open(folder / ".lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CourseError(f"a grader is writing to {folder}; wait for it") from None
        yield


@contextmanager
def reading(folder: Path) -> Iterator[Database]:
    """Yield the folder's database for reading; for a folder of an older version, yield a converted copy.

    Only commands that write to the folder convert it.
    """
    if not has_database(folder) or _is_older(folder / FILE):
        with copied(folder) as (database, _):
            yield database
        return
    database = Database(folder / FILE)
    try:
        yield database
    finally:
        database.close()


def students_with_files(folder: Path) -> list[str]:
    """Return the names of the students with reports in a folder; [] if the folder does not exist.

    Without a database, the list also has students with damaged reports. Their names come from the reports' file names.
    """
    if not has_database(folder):
        paths = (folder / "reports").glob("*.json")
        return sorted(found.student if (found := report_in(path)) else path.stem for path in paths)
    with reading(folder) as database:
        return database.students()


def names_set_aside(folder: Path) -> list[str]:
    """Return the names of the students with submissions that earlier runs set aside; [] without a database."""
    if not has_database(folder):
        return []
    with reading(folder) as database:
        return [case.student for case in database.cases() if case.student and not case.graded]
