"""What a folder's ``grades.sqlite`` holds. Not a test file."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from grader.batch.database import FILE


def graded_in(out: Path, table: str = "report") -> dict[str, bytes]:
    """Return each student's report as graded, packed; of ``made``, those that do not count yet. Empty without a database."""
    if not (out / FILE).is_file():
        return {}
    with contextlib.closing(sqlite3.connect(out / FILE, timeout=60)) as connection:
        try:
            return dict(connection.execute(f"SELECT student, graded FROM {table} ORDER BY student"))
        except sqlite3.OperationalError:  # the tables are not there yet
            return {}
