"""A release in a plain folder is written completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import folders as folder
from grader.course.config import CourseError
from grader.course.folders import write_folder

FILES = {"README.md": "a\r\n", "x/y.py": "b\n"}


@pytest.mark.parametrize("there", [False, True])
def test_files_are_written_into_a_new_or_an_empty_folder(
    tmp_path: Path, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "deep" / "given"
    if there:
        place.mkdir(parents=True)
        monkeypatch.chdir(place)
    write_folder(Path("."), FILES) if there else write_folder(place, FILES)
    assert {p.relative_to(place).as_posix(): p.read_bytes().decode() for p in place.rglob("*") if p.is_file()} == FILES
    assert [p.name for p in place.parent.iterdir()] == ["given"]


def test_write_folder_refuses_a_place_that_is_not_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for name in ("full", "file", "link"):
        with pytest.raises(CourseError, match=f"{name} exists and is not an empty folder; name a new folder"):
            write_folder(tmp_path / name, FILES)


def test_write_folder_leaves_nothing_after_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(root: Path, files: dict[str, str]) -> None:
        root.mkdir()
        (root / "README.md").touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "write_files", full)
    with pytest.raises(OSError, match="No space left"):
        write_folder(tmp_path / "given", FILES)
    assert list(tmp_path.iterdir()) == []
