"""The file of an exercise, restoring a file, and notifications of saved files."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from grader.course.config import CourseError
from grader.course.loading import load_course
from grader.intake.submission import Source
from grader.watching.files import _is_work, changes, path_of, reset
from tests.made_up import made_up

STUB = 'raise NotImplementedError("gather")'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a learner's file of a small course in ``tmp_path``."""
    made_up(tmp_path)
    path = tmp_path / "x1_gather.py"
    path.write_text("mine = 1\n")
    return path


def test_reset_restores_a_file_and_loses_no_backup(file: Path, tmp_path: Path) -> None:
    course = load_course(tmp_path / "course.yaml")
    first = reset(course, "x1_gather", file)
    assert first.name == "x1_gather.py.1.backup" and first.read_text() == "mine = 1\n"
    assert STUB in file.read_text()
    file.write_text("mine = 2\n")
    second = reset(course, "x1_gather", file)
    assert [first.read_text(), second.read_text()] == ["mine = 1\n", "mine = 2\n"]


@pytest.mark.parametrize("name", ["01_gather.ipynb", "01_gather.py"])
def test_reset_refuses_a_file_with_other_exercises(file: Path, tmp_path: Path, name: str) -> None:
    other = file.rename(tmp_path / name)
    with pytest.raises(CourseError, match=f"^{name} holds more than x1_gather, so it is not reset: make the cell or"):
        reset(load_course(tmp_path / "course.yaml"), "x1_gather", other)
    assert other.read_text() == "mine = 1\n"


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_reset_changes_no_file_in_a_read_only_folder(file: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OSError):
            reset(load_course(tmp_path / "course.yaml"), "x1_gather", file)
        assert file.read_text() == "mine = 1\n"
    finally:
        tmp_path.chmod(0o700)


def test_file_of_a_source_and_of_an_archive_member(file: Path, tmp_path: Path) -> None:
    assert path_of(tmp_path, Source("x1_gather.py", ())) == path_of(file, Source("x1_gather.py", ())) == file
    with pytest.raises(CourseError, match=r"^work\.zip/x1_gather\.py is in an archive; unpack it$"):
        path_of(tmp_path, Source("work.zip/x1_gather.py", ()))


def test_the_begin_of_the_watch_and_each_save_are_reported(file: Path) -> None:
    """A save just before the watch begins is seen too, because the watcher reports that it has begun."""
    heard = threading.Event()
    with changes(file, heard.set):
        for number in range(3):
            assert heard.wait(60)
            heard.clear()
            file.with_name("new.tmp").write_text(f"mine = {number}\n")
            file.with_name("new.tmp").replace(file)
        assert heard.wait(60)


@pytest.mark.parametrize(("path", "work"), [
    ("x1_gather.py", True), ("01_gather.ipynb", True), ("notes.txt", False), ("x1_gather.py~", False),
    (".ipynb_checkpoints/01_gather-checkpoint.ipynb", False),
])  # fmt: skip
def test_saves_of_other_files_are_ignored(path: str, work: bool) -> None:
    assert _is_work(None, path) is work
