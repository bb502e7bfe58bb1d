"""Links in submissions are never followed. An nbgrader whose copying cannot be replaced is refused."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nbgrader")

from nbgrader.converters.base import BaseConverter

from grader.course.config import CourseError
from grader.integrations.nbgrader import handed_in


def test_an_nbgrader_with_another_way_of_copying_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def init_assignment(self: Any, assignment_id: str) -> None: ...

    monkeypatch.setattr(BaseConverter, "init_assignment", init_assignment)
    with pytest.raises(CourseError, match=r"has no BaseConverter\.init_assignment\(self, assignment_id, student_id\)"):
        handed_in.guard()
    monkeypatch.undo()
    monkeypatch.delattr(BaseConverter, "init_assignment")
    with pytest.raises(CourseError, match=r"install nbgrader 0\.9\.6"):
        handed_in.guard()


def test_the_installed_nbgrader_copies_without_links(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # So that it is restored afterwards.
    monkeypatch.setattr(BaseConverter, "init_assignment", BaseConverter.init_assignment)
    handed_in.guard()
    (tmp_path / "submitted" / "bo").mkdir(parents=True)
    (tmp_path / "submitted" / "bo" / "notes.txt").write_text("my own")
    (tmp_path / "submitted" / "bo" / "book.db").symlink_to(tmp_path / "gradebook.db")
    (tmp_path / "gradebook.db").write_text("grades")
    os.mkfifo(tmp_path / "submitted" / "bo" / "pipe")
    said: list[str] = []
    here = SimpleNamespace(
        _format_source=lambda assignment, student: str(tmp_path / "submitted" / student),
        _format_dest=lambda assignment, student: str(tmp_path / "autograded" / student),
        coursedir=SimpleNamespace(ignore=[]),
        log=SimpleNamespace(warning=lambda form, *words: said.append(form % words), info=lambda *words: None),
    )
    BaseConverter.init_assignment(here, "a", "bo")  # type: ignore[arg-type]
    assert [path.name for path in (tmp_path / "autograded" / "bo").iterdir()] == ["notes.txt"]
    assert [line.split(": ")[1] for line in said] == [
        "book.db is a link and was not followed",
        "pipe is neither a file nor a folder and was not read",
    ]


def test_a_copy_without_links_names_them_and_leaves_the_original_alone(tmp_path: Path) -> None:
    folder = tmp_path / "bo"
    (folder / "data").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "data" / "all").symlink_to(tmp_path)
    (folder / "gone").symlink_to("/nowhere")
    os.mkfifo(folder / "data" / "pipe")
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(str(folder / "s.sock"))
    with handed_in.without_links(folder) as (plain, links):
        assert sorted(p.relative_to(plain).as_posix() for p in plain.rglob("*")) == ["a.txt", "data"]
        assert links == {Path("data/all"): str(tmp_path), Path("gone"): "/nowhere"}
    assert not plain.exists() and (folder / "data" / "all").is_symlink()


def test_what_is_too_deep_or_closed_is_named_and_ends_no_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without permissions, and one too deep for a path, ended grading for the students after it."""
    folder = tmp_path / "bo"
    (folder / "closed").mkdir(parents=True)
    (folder / "closed" / "x.txt").write_text("x")
    (folder / "a.txt").write_text("a")
    at = os.open(folder, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=at)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    allowed = os.access  # permissions do not restrict root
    monkeypatch.setattr(
        "os.access", lambda path, mode: allowed(path, mode) and not (mode & os.X_OK and str(path).endswith("closed"))
    )
    closed, deep = handed_in.odd_files(folder)
    assert closed == "closed cannot be read by the grader"
    assert deep.startswith("ddd") and deep.endswith("cannot be read by the grader")
    with handed_in.without_links(folder) as (plain, links):
        assert (plain / "a.txt").is_file() and not (plain / "closed").exists() and links == {}
    assert handed_in.why_ungraded(folder, ["x"], lambda name: True) == "handed in without a notebook"
