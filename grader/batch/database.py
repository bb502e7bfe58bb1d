"""``grades.sqlite``: the only record of a course's grades. The grader writes all reports and pages from this file.

The tables of the database:

- ``report``: a row for each student, with the grader's own report (``graded``) and the adjusted report, which decides
  the grade (``counts``; NULL if it is equal to ``graded``)
- ``made``: new reports, which do not count for the grade yet; the end of a run moves them into ``report``
- ``change``: the history of changed scores
- ``run``: a row for each run that changed something: time, summary, suspicious answers, students without a report
- ``roster``: the contents of the last class list (a CSV with a column ``id``) that a command used
- ``person``: students' names and sections from the class list; ``shown`` is 1 once the pages show them
- ``review``: the submissions that were set aside (``graded`` is 0), and the submissions and files that a person must
  review; ``paths`` is a JSON list: the paths relative to the database's folder, then the absolute paths

The database uses SQLite's rollback journal, which works on network disks and keeps everything in one file. A killed
process leaves at most a journal beside the database. With the journal, the next process undoes the unfinished write.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from grader.batch.older import report_of, set_aside_in
from grader.common.result import Report
from grader.course.config import CourseError
from grader.intake.submission import ReviewCase
from grader.reports.people import UNKNOWN, People, Person

FILE = "grades.sqlite"
SCHEMA = 3
VERSION_0_2 = 2  # the schema of shardlings 0.2
APPLICATION = 0x53484152  # "SHAR"
PATIENCE = 60.0
"""Seconds to wait while another program reads or writes the database."""
TOGETHER = 1.0
"""Seconds between two saves of new reports. A killed run loses the reports that are not saved yet."""

_REVIEW = (
    "CREATE TABLE review (student TEXT NOT NULL, reason TEXT NOT NULL, paths TEXT NOT NULL, graded INTEGER NOT NULL)"
)
_GRADED, _FOLLOWED = 1, 2  # the bits in the column ``graded`` of the table ``review``, see ``ReviewCase``
_TABLES = (
    "CREATE TABLE report (student TEXT PRIMARY KEY, graded BLOB NOT NULL, counts BLOB)",
    "CREATE TABLE made (student TEXT PRIMARY KEY, graded BLOB NOT NULL)",
    "CREATE TABLE change (id INTEGER PRIMARY KEY, regrade INTEGER NOT NULL, time TEXT NOT NULL, student TEXT NOT NULL, "
    "what TEXT NOT NULL, before REAL NOT NULL, after REAL NOT NULL, most REAL NOT NULL, why TEXT NOT NULL)",
    "CREATE TABLE run (id INTEGER PRIMARY KEY, time TEXT NOT NULL, summary TEXT NOT NULL, integrity TEXT NOT NULL, "
    "absent TEXT NOT NULL)",
    "CREATE TABLE roster (id INTEGER PRIMARY KEY CHECK (id = 1), file BLOB NOT NULL)",
    "CREATE TABLE person (student TEXT PRIMARY KEY, name TEXT NOT NULL, section TEXT NOT NULL, shown INTEGER NOT NULL)",
    _REVIEW,
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {SCHEMA}",
)


class CannotWrite(CourseError):
    """The output folder cannot be written. Everything that was written before is intact."""


@contextmanager
def resumable() -> Iterator[None]:
    """Turn an operating-system error in the block, such as a full disk, into a CannotWrite that says what to do."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"cannot write {error.filename}: {error.strerror}; {GO_ON}") from error


GO_ON = "mend the cause and run the same command again; finished reports are kept"
_DAMAGED = "restore the file from a copy, or move it away: the next run then reads the files in reports/"
_SAID = {
    "SQLITE_FULL": "No space left on device",
    "SQLITE_READONLY": "no permission to write",
    "SQLITE_CANTOPEN": "the file cannot be opened",
    "SQLITE_IOERR": "the disk failed, or a quota is used up",
}


@contextmanager
def _sqlite(path: Path) -> Iterator[None]:
    """Turn an error of SQLite in the block into a CourseError with a one-line message."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise CourseError(f"another program uses {path}; wait for it, then run the same command again") from error
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_ERROR")):  # ERROR: for example, no such table
            raise CourseError(f"{path} is damaged, or is not a database of grades; {_DAMAGED}") from error
        for kind, said in _SAID.items():
            if name.startswith(kind):
                raise CannotWrite(f"cannot write {path}: {said}; {GO_ON}") from error
        raise


@dataclass(frozen=True)
class Stored:
    """A student's two reports: the grader's own (``graded``), and the one that decides the grade (``counts``).

    Only ``counts`` includes late penalties and points given by a person. If there are none, both fields are one object.
    """

    graded: Report
    counts: Report


class Database:
    """The database in one folder of reports. Use each object from one thread only."""

    def __init__(self, path: Path, import_into: Callable[[Database], None] | None = None) -> None:
        """Open the database at ``path``, or create it.

        ``import_into`` fills a new database, in the transaction that creates the database.
        """
        self.path = path
        self._unsaved: dict[str, bytes] = {}  # Student -> a new report that is not yet written to the file.
        self._saved = -TOGETHER  # The time of the last save, by ``time.monotonic``.
        with _sqlite(path):
            self._connection = sqlite3.connect(
                f"file:{quote(str(path.absolute()))}?mode=rwc", uri=True, isolation_level=None, timeout=PATIENCE
            )
        try:
            self._prepare(import_into)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Save the new reports and close the file."""
        try:
            self._save()
        finally:
            self._connection.close()

    def _prepare(self, import_into: Callable[[Database], None] | None) -> None:
        version = self._one("PRAGMA user_version")[0]
        if version > SCHEMA:
            raise CourseError(
                f"{self.path} was written by a newer shardlings (schema {version}, and this version reads {SCHEMA}); "
                "install the newer version"
            )
        if version == SCHEMA and self._one("PRAGMA application_id")[0] == APPLICATION:
            return
        if version == VERSION_0_2 and self._one("PRAGMA application_id")[0] == APPLICATION:
            with self.transaction():
                self._convert()
            return
        if version or self._one("SELECT count(*) FROM sqlite_schema")[0]:
            raise CourseError(f"{self.path} is damaged, or is not a database of grades; {_DAMAGED}")
        with self.transaction():
            for table in _TABLES:
                self._do(table)
            if import_into is not None:
                import_into(self)

    def _convert(self) -> None:
        """Convert a database of version 0.2, which holds reports of schema version 1 and no table ``review``.

        Damaged reports stay, and later commands name them in errors.
        """
        self._do(_REVIEW)
        for table, column in (("report", "graded"), ("report", "counts"), ("made", "graded")):
            for (student,) in self._all(f"SELECT student FROM {table} WHERE {column} IS NOT NULL"):
                (data,) = self._one(f"SELECT {column} FROM {table} WHERE student = ?", student)
                with suppress(CourseError, ValidationError):
                    report = _packed(report_of(self._inflated(student, data)))
                    self._do(f"UPDATE {table} SET {column} = ? WHERE student = ?", report, student)
        if last := self.last_run():
            self.set_cases(set_aside_in(last[0]))
        self._do(f"PRAGMA user_version = {SCHEMA}")

    def _do(self, text: str, *values: Any) -> sqlite3.Cursor:
        with _sqlite(self.path):
            return self._connection.execute(text, values)

    def _one(self, text: str, *values: Any) -> Any:
        with _sqlite(self.path):
            return self._connection.execute(text, values).fetchone()

    def _all(self, text: str, *values: Any) -> list[Any]:
        with _sqlite(self.path):
            return self._connection.execute(text, values).fetchall()

    # -- transactions

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction: save all its changes, or none if it raises an exception."""
        self._save()
        with self._all_or_nothing():
            yield

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        try:
            self._do("BEGIN IMMEDIATE")
            yield
        except BaseException:
            self.roll_back()
            raise
        self.commit()

    def begin(self) -> None:
        self._save()
        self._do("BEGIN IMMEDIATE")

    def commit(self) -> None:
        try:
            self._do("COMMIT")
        except BaseException:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.rollback()

    # -- reports

    def students(self) -> list[str]:
        """Return the sorted names of the students who have a report in the table ``report``."""
        return [student for (student,) in self._all("SELECT student FROM report ORDER BY student")]

    def reports(self) -> Iterator[Report]:
        """Yield each student's report that counts for the grade, sorted by student, one at a time to save memory."""
        for student in self.students():
            if found := self.stored(student):
                yield found.counts

    def stored(self, student: str) -> Stored | None:
        """Return both reports of a student (see ``Stored``); None if the student has no report."""
        row = self._one("SELECT graded, counts FROM report WHERE student = ?", student)
        if row is None:
            return None
        graded = self._unpacked(student, row[0])
        return Stored(graded, graded if row[1] is None else self._unpacked(student, row[1]))

    def text(self, student: str) -> str:
        """Return the student's report that counts for the grade, as the JSON text of ``reports/STUDENT.json``."""
        (data,) = self._one("SELECT coalesce(counts, graded) FROM report WHERE student = ?", student)
        return self._inflated(student, data)

    def new_report(self, student: str) -> Report | None:
        """Return the student's new report, which does not count for the grade yet; None if it is missing or damaged."""
        self._save()
        row = self._one("SELECT graded FROM made WHERE student = ?", student)
        try:
            return self._unpacked(student, row[0]) if row else None
        except CourseError:
            return None

    def keep_new(self, graded: Report) -> None:
        """Save a new report, which does not count for the grade yet.

        One save can take longer than grading a submission. So new reports wait in memory, and a save at most every
        TOGETHER seconds writes all waiting reports.
        """
        self._unsaved[graded.student] = _packed(graded)
        if time.monotonic() - self._saved >= TOGETHER:
            self._save()

    def _save(self) -> None:
        """Write the unsaved reports in one transaction. If writing fails, the next call tries again."""
        if self._unsaved:
            with self._all_or_nothing():
                for student, graded in self._unsaved.items():
                    self._do("INSERT OR REPLACE INTO made VALUES (?, ?)", student, graded)
            self._unsaved.clear()
            self._saved = time.monotonic()

    def forget_new(self, student: str) -> None:
        self._save()
        self._do("DELETE FROM made WHERE student = ?", student)

    def replace_reports(self, student: str, new: Stored) -> None:
        """Replace both stored reports of the student (``graded`` and ``counts``) by the reports in ``new``."""
        graded = _packed(new.graded)
        counts = graded if new.counts is new.graded else _packed(new.counts)
        row = (graded, None if counts == graded else counts)
        if self._one("SELECT graded, counts FROM report WHERE student = ?", student) != row:
            self._do("INSERT OR REPLACE INTO report VALUES (?, ?, ?)", student, *row)

    def drop(self, student: str) -> None:
        self._save()
        for table in ("report", "made", "person", "review"):
            self._do(f"DELETE FROM {table} WHERE student = ?", student)

    # -- changes, runs, the roster

    def history(self, *, newest_first: bool = False) -> Iterator[tuple[Any, ...]]:
        """Yield each change, by default oldest first: the regrade's number and time, then the fields of ``Change``."""
        order = "regrade DESC, id" if newest_first else "id"
        with _sqlite(self.path):
            yield from self._do(
                f"SELECT regrade, time, student, what, before, after, most, why FROM change ORDER BY {order}"
            )

    def regrades(self) -> int:
        """Return the number of regrades: runs that changed a score."""
        return self._one("SELECT coalesce(max(regrade), 0) FROM change")[0]

    def add_change(self, *row: Any) -> None:
        self._do("INSERT INTO change VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", *row)

    def last_run(self) -> tuple[str, str, str] | None:
        """Return JSON texts about the last run (summary, suspicious answers, students without a report), or None."""
        return self._one("SELECT summary, integrity, absent FROM run ORDER BY id DESC LIMIT 1")

    def add_run(self, time: str, summary: str, integrity: str, absent: str) -> None:
        self._do("INSERT INTO run VALUES (NULL, ?, ?, ?, ?)", time, summary, integrity, absent)

    def roster(self) -> bytes | None:
        """Return the contents of the roster file (class list) that a command used last; None if there is no roster."""
        row = self._one("SELECT file FROM roster")
        return row[0] if row else None

    def keep_roster(self, file: bytes) -> None:
        self._do("INSERT OR REPLACE INTO roster VALUES (1, ?)", file)

    # -- cases that need review

    def cases(self) -> list[ReviewCase]:
        """Return the submissions and files that need review."""
        found = []
        for student, reason, paths, flags in self._all("SELECT * FROM review ORDER BY rowid"):
            there = [Path(path) for path in json.loads(paths)]
            absolute, relative = (tuple(p for p in there if p.is_absolute() == kind) for kind in (True, False))
            graded, followed = bool(flags & _GRADED), bool(flags & _FOLLOWED)
            found.append(ReviewCase(student, reason, absolute, graded, followed, relative))
        return found

    def set_cases(self, cases: Sequence[ReviewCase]) -> None:
        """Replace all submissions and files that need review."""
        if list(cases) == self.cases():
            return
        self._do("DELETE FROM review")
        for case in cases:
            paths = json.dumps([str(path) for path in (*case.relative, *case.paths)])
            flags = _GRADED * case.graded | _FOLLOWED * case.followed
            self._do("INSERT INTO review VALUES (?, ?, ?, ?)", case.student, case.reason, paths, flags)

    # -- names

    def people(self) -> dict[str, Person]:
        """Return the name and section of each student on the last roster (class list)."""
        rows = self._all("SELECT student, name, section FROM person WHERE name <> '' OR section <> '' ORDER BY student")
        return {student: Person(name, section) for student, name, section in rows}

    def set_people(self, people: People) -> None:
        """Replace all names and sections. For a student who left the roster, store an empty name and section."""
        for student, person in (dict.fromkeys(self.people(), UNKNOWN) | {**people}).items():
            self._do(
                "INSERT INTO person VALUES (?, ?, ?, 0) ON CONFLICT (student) DO UPDATE SET name = excluded.name, "
                "section = excluded.section, shown = 0 WHERE (name, section) <> (excluded.name, excluded.section)",
                student, person.name, person.section,
            )  # fmt: skip

    def not_shown(self) -> set[str]:
        """Return the students whose name or section on the roster changed after their pages were written."""
        return {student for (student,) in self._all("SELECT student FROM person WHERE shown = 0")}

    def all_shown(self) -> None:
        """Record that all pages show the current names and sections."""
        if self.not_shown():
            self._do("UPDATE person SET shown = 1 WHERE shown = 0")

    # -- rows

    def _unpacked(self, student: str, data: bytes) -> Report:
        try:
            return Report.loads(self._inflated(student, data))
        except ValidationError:
            raise self._damaged(student) from None

    def _inflated(self, student: str, data: bytes) -> str:
        try:
            return zlib.decompress(data).decode()
        except (zlib.error, UnicodeDecodeError, TypeError):
            raise self._damaged(student) from None

    def _damaged(self, student: str) -> CourseError:
        mend = f"delete this report with shardlings drop {self.path.parent} {shlex.quote(student)}, and grade again"
        return CourseError(f"{self.path} holds a damaged report of {student}; {mend}")


def _packed(report: Report) -> bytes:
    return zlib.compress(report.dumps().encode(), 1)
