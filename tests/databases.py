"""The content of a folder's ``grades.sqlite``. Not a test file."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from pathlib import Path

from grader.batch.database import FILE
from grader.common.result import Report

MARK = "marked by a test"


def graded_in(out: Path, table: str = "report") -> dict[str, bytes]:
    """Return each student's compressed report. ``table``: "report", or "made" for reports of an unfinished run.

    Return {} if the folder has no database.
    """
    if not (out / FILE).is_file():
        return {}
    with contextlib.closing(sqlite3.connect(out / FILE, timeout=60)) as connection:
        try:
            return dict(connection.execute(f"SELECT student, graded FROM {table} ORDER BY student"))
        except sqlite3.OperationalError:  # the writer has not created the tables yet
            return {}


def mark(out: Path, student: str) -> None:
    """Add a note to a student's report of an unfinished run. If the student is graded again, the note is lost."""
    report = Report.loads(zlib.decompress(graded_in(out, "made")[student]).decode())
    text = report.model_copy(update={"notes": [*report.notes, MARK]}).dumps()
    with contextlib.closing(sqlite3.connect(out / FILE, timeout=60)) as connection, connection:
        connection.execute("UPDATE made SET graded = ? WHERE student = ?", (zlib.compress(text.encode()), student))


def is_marked(out: Path, student: str) -> bool:
    return MARK in Report.loads((out / "reports" / f"{student}.json").read_text(encoding="utf-8")).notes
