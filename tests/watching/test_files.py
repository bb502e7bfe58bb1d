"""The file of an exercise, restoring a file, and notifications of saved files."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from grader.course.config import CourseError
from grader.course.loading import load_course
from grader.intake.submission import Source
from grader.watching.files import changes, path_of, reset
from tests.made_up import made_up

STUB = 'raise NotImplementedError("gather")'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a learner's file of a small course in ``tmp_path``."""
    made_up(tmp_path)
    path = tmp_path / "x1_gather.py"
    path.write_text("mine = 1\n")
    return path


def test_a_file_is_put_back_and_no_backup_is_ever_lost(file: Path, tmp_path: Path) -> None:
    course = load_course(tmp_path / "course.yaml")
    first = reset(course, "x1_gather", file)
    assert first.name == "x1_gather.py.1.backup" and first.read_text() == "mine = 1\n"
    assert STUB in file.read_text()
    file.write_text("mine = 2\n")
    second = reset(course, "x1_gather", file)
    assert [first.read_text(), second.read_text()] == ["mine = 1\n", "mine = 2\n"]


@pytest.mark.parametrize("name", ["01_gather.ipynb", "01_gather.py"])
def test_a_file_that_holds_more_is_left_alone(file: Path, tmp_path: Path, name: str) -> None:
    other = file.rename(tmp_path / name)
    with pytest.raises(CourseError, match=f"^{name} holds more than x1_gather, so it is not reset: make the cell or"):
        reset(load_course(tmp_path / "course.yaml"), "x1_gather", other)
    assert other.read_text() == "mine = 1\n"


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_where_nothing_may_be_written_all_stays_as_it_is(file: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OSError):
            reset(load_course(tmp_path / "course.yaml"), "x1_gather", file)
        assert file.read_text() == "mine = 1\n"
    finally:
        tmp_path.chmod(0o700)


def test_the_file_of_a_source_and_of_one_in_an_archive(file: Path, tmp_path: Path) -> None:
    assert path_of(tmp_path, Source("x1_gather.py", ())) == path_of(file, Source("x1_gather.py", ())) == file
    with pytest.raises(CourseError, match=r"^work\.zip/x1_gather\.py is in an archive; unpack it$"):
        path_of(tmp_path, Source("work.zip/x1_gather.py", ()))


def test_saves_are_heard_of_and_other_files_are_not(file: Path) -> None:
    """Polling, as on systems without notifications, reports the same saves. Other files beside the work are ignored."""
    heard = threading.Event()
    with changes(file, heard.set):
        for number in range(600):  # the first saves may come before the watch begins
            file.with_name("notes.txt").write_text(str(number))
            file.write_text(f"mine = {number}\n")
            if heard.wait(0.1):
                break
    assert heard.is_set()
