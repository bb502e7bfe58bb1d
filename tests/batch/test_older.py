"""Databases and reports of older schemas are converted."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from pathlib import Path

import pytest

from grader.batch.database import FILE
from grader.batch.folder import Folder, drop
from grader.batch.opening import reading
from grader.batch.written import write_files
from grader.course.config import CourseError
from grader.intake.submission import ReviewCase
from tests.batch.test_database import BEFORE, grade, tree
from tests.reports.example_reports import exercise, make_report, result

SET_ASIDE = [
    {"student": "ian", "reason": "not graded: ian has two zips", "kind": "not graded"},
    {"student": "a", "reason": "a file is a link", "kind": "not found"},
]


def in_version_1(data: bytes | None) -> bytes | None:
    """Return a stored report as schema version 1 had it: every file counted as handed in."""
    if data is None:
        return None
    report = json.loads(zlib.decompress(data)) | {"schema_version": 1}
    report["exercises"] = [part | {"handed_in": True} for part in report["exercises"]]
    return zlib.compress(json.dumps(report).encode())


def test_a_database_of_version_0_2_is_converted_when_it_is_opened(tmp_path: Path) -> None:
    empty = exercise([result("v", "failed", points=2, reason="not written yet")], handed_in=False)
    reports = [*BEFORE, make_report(empty, student="ann", fingerprint="1"), make_report(empty, student="zed")]
    grade(tmp_path, reports)
    with Folder(tmp_path) as folder:
        folder.keep(make_report(empty, student="new"))
    before = tree(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.create_function("older", 1, in_version_1)
        connection.execute("UPDATE report SET graded = older(graded), counts = older(counts) WHERE student <> 'zed'")
        connection.execute("UPDATE report SET graded = x'00' WHERE student = 'zed'")
        connection.execute("UPDATE made SET graded = older(graded)")
        connection.execute("DROP TABLE review")
        connection.execute(
            "UPDATE run SET summary = json_set(summary, '$.attention', json(?))", (json.dumps(SET_ASIDE),)
        )
        connection.execute("PRAGMA user_version = 2")
    with reading(tmp_path) as database:
        assert database.students() == ["a", "ann", "b", "c", "d", "zed"]
        assert database.cases() == [ReviewCase("ian", "ian has two zips", ())]
        stored = [database.stored("ann"), database.stored("a")]
        assert [one.counts.exercises[0].handed_in for one in stored if one] == [False, True]
        assert [one.graded.schema_version for one in stored if one] == [2, 2]
        made = database.new_report("new")
        assert made is not None and not made.exercises[0].handed_in
        with pytest.raises(CourseError, match="damaged report of zed"):
            database.stored("zed")
    with Folder(tmp_path, dry=True) as folder:
        assert folder.database.new_report("new") is not None
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()
    assert version == (2,), "neither a reader nor a dry run changes the folder"
    drop(tmp_path, ["zed"])
    with Folder(tmp_path) as folder:
        write_files(tmp_path, folder.database)
    same = {"reports/a.json", "reports/ann.json", "ann.html", "students/ann.html"}
    assert {name: tree(tmp_path)[name] for name in same} == {name: before[name] for name in same}


def test_a_report_file_of_schema_version_1_is_converted(tmp_path: Path) -> None:
    grade(tmp_path, BEFORE)
    (tmp_path / FILE).unlink()
    path = tmp_path / "reports" / "a.json"
    older = in_version_1(zlib.compress(path.read_bytes()))
    assert older is not None
    path.write_bytes(zlib.decompress(older))
    with reading(tmp_path) as database:
        assert database.students() == ["a", "b", "c", "d"]
        found = database.stored("a")
    assert found is not None and found.counts == BEFORE[0]


def test_submissions_set_aside_are_read_from_the_summary_if_the_database_is_missing(tmp_path: Path) -> None:
    grade(tmp_path, BEFORE)
    summary = json.loads((tmp_path / "summary.json").read_text()) | {"attention": SET_ASIDE}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    (tmp_path / FILE).unlink()
    with Folder(tmp_path) as folder:
        assert folder.database.cases() == [ReviewCase("ian", "ian has two zips", ())]
