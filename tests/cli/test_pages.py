"""``shardlings pages`` writes the class's pages again, with names or with pseudonyms."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader import cli
from grader.batch.folder import Folder
from grader.cli.pages import NAMES
from grader.reports.summary import summarise
from tests.reports.example_reports import a_class


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    """Return a folder as ``grade`` writes it for a class of four students and one that was not graded."""
    with Folder(tmp_path) as folder:
        for report in a_class():
            folder.keep(report)
        folder.settle()
        folder.finish(summarise(a_class(), not_graded={"zed": "zed.rar is no zip"}))
    return tmp_path


def run(*words: object):
    return CliRunner().invoke(cli.app, ["pages", *map(str, words)])


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.html")}


def test_pages_restores_deleted_pages_unchanged(graded: Path) -> None:
    def files() -> dict[Path, bytes]:
        left_out = (".lock", "grades.sqlite")
        return {path: path.read_bytes() for path in graded.rglob("*") if path.is_file() and path.name not in left_out}

    before = files()
    for path in before:
        path.unlink()
    done = run(graded)
    assert done.exit_code == 0 and "the pages of 4 students" in done.stdout
    assert files() == before


def test_anonymous_pages_have_no_names_and_are_equal_each_time(graded: Path) -> None:
    assert run(graded, "--anonymous").exit_code == 0
    first = texts(graded / "anonymous")
    table = json.loads((graded / NAMES).read_text())
    assert sorted(table.values()) == ["bob", "carol", "dan", "zed", "zoe"]
    assert len(first) == 5
    for name, page in first.items():
        for student in ("bob", "carol", "dan", "zed", "zoe"):
            assert student not in name
            assert f">{student}<" not in page and f"{student}." not in page
    assert run(graded, "--anonymous").exit_code == 0
    assert texts(graded / "anonymous") == first
    assert not any(NAMES in path.name for path in (graded / "anonymous").iterdir())


def test_anonymous_pages_are_refused_in_a_folder_with_names(graded: Path) -> None:
    for words in (["--to", graded], ["--to", graded / "anonymous" / ".."]):
        (graded / "anonymous").mkdir(exist_ok=True)
        assert "already has reports that name students; choose a different folder with --to" in str(
            run(graded, "--anonymous", *words).exception
        )
    assert "--to needs --anonymous" in str(run(graded, "--to", "x").exception)


def test_a_damaged_pseudonym_table_or_summary_gives_a_one_line_error(graded: Path) -> None:
    (graded / NAMES).write_text("[]")
    assert f"{NAMES} is damaged" in str(run(graded, "--anonymous").exception)
    with contextlib.closing(sqlite3.connect(graded / "grades.sqlite")) as connection:
        connection.execute("DELETE FROM run")
        connection.commit()
    assert "has no summary by this version of shardlings; run shardlings grade again" in str(run(graded).exception)
    assert "no reports in" in str(run(graded / "students").exception)
