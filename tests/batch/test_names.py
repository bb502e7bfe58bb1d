"""Names and sections in the database. Pages show the current names, also after a killed run."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.batch import written
from grader.batch.folder import Folder
from grader.reports.people import Person
from grader.reports.summary import summarise
from grader.reports.tables import NOTHING
from tests.reports.example_reports import a_class


def run(out: Path, people: dict[str, Person] | None) -> None:
    with Folder(out) as folder:
        for report in a_class():
            if folder.current_report(report.student, report.fingerprint, ["c3_contracting"]) is None:
                folder.keep(report)
        folder.settle()
        folder.finish(summarise(folder.database.reports()), {"gil": NOTHING}, people)


def pages(out: Path, student: str) -> list[str]:
    return [(out / name / f"{student}.html").read_text(encoding="utf-8") for name in ("students", "")]


def test_pages_follow_a_changed_roster(tmp_path: Path) -> None:
    run(tmp_path, None)
    assert "name" not in (tmp_path / "grades.csv").read_text().splitlines()[0]
    run(tmp_path, {"bob": Person("Bob Hatter", "A"), "gil": Person("Gil Mock")})
    assert all("Bob Hatter, section A" in page for page in pages(tmp_path, "bob"))
    assert "gil" in (tmp_path / "grades.csv").read_text() and "Gil Mock" in (tmp_path / "grades.csv").read_text()
    run(tmp_path, None)  # a run without a roster keeps the names of the run before
    assert "Bob Hatter" in (tmp_path / "index.html").read_text(encoding="utf-8")
    run(tmp_path, {"bob": Person("Robert Hatter", "B")})
    assert all("Robert Hatter, section B" in page for page in pages(tmp_path, "bob"))
    run(tmp_path, {})
    assert not any("Hatter" in page for page in pages(tmp_path, "bob"))
    assert "Hatter" not in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_page_that_has_the_students_name_is_not_written_again(tmp_path: Path) -> None:
    run(tmp_path, {"bob": Person("Bob Hatter", "A")})
    before = (tmp_path / "bob.html").stat().st_mtime_ns
    run(tmp_path, {"bob": Person("Bob Hatter", "A"), "zoe": Person("Zoe Gryphon")})
    assert (tmp_path / "bob.html").stat().st_mtime_ns == before
    assert "Zoe Gryphon" in pages(tmp_path, "zoe")[0]


def test_the_next_run_writes_the_pages_that_an_interrupted_run_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, None)
    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr(written, "render_html", _interrupted)
        run(tmp_path, {"bob": Person("Bob Hatter")})
    assert "Hatter" not in pages(tmp_path, "bob")[0]
    run(tmp_path, None)
    assert all("Bob Hatter" in page for page in pages(tmp_path, "bob"))


def _interrupted(*_: object, **__: object) -> str:
    raise KeyboardInterrupt


def test_a_dropped_student_leaves_no_name(tmp_path: Path) -> None:
    run(tmp_path, {"bob": Person("Bob Hatter")})
    with Folder(tmp_path) as folder:
        folder.database.drop("bob")
        assert folder.database.people() == {}
