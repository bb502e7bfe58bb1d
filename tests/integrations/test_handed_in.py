"""The grader copies submissions but follows no links. It refuses an nbgrader without the methods that it replaces."""

from __future__ import annotations

import os
import socket
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nbgrader")

from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory

from grader.course.config import CourseError
from grader.integrations.nbgrader import handed_in
from grader.wire import limits


def test_an_nbgrader_that_copies_differently_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def init_assignment(self: Any, assignment_id: str) -> None: ...

    monkeypatch.setattr(BaseConverter, "init_assignment", init_assignment)
    with pytest.raises(CourseError, match=r"has no BaseConverter\.init_assignment\(self, assignment_id, student_id\)"):
        handed_in.guard()
    monkeypatch.undo()
    monkeypatch.delattr(BaseConverter, "init_assignment")
    with pytest.raises(CourseError, match=r"install nbgrader 0\.9\.6"):
        handed_in.guard()


def test_the_installed_nbgrader_copies_without_links(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # guard() replaces this method, and monkeypatch restores it after the test.
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
        coursedir=SimpleNamespace(
            ignore=[], source_directory="source", format_path=lambda *parts: str(tmp_path.joinpath(*parts))
        ),
        log=SimpleNamespace(warning=lambda form, *words: said.append(form % words), info=lambda *words: None),
    )
    BaseConverter.init_assignment(here, "a", "bo")  # type: ignore[arg-type]
    os.mkfifo(tmp_path / "timestamp.txt")
    assert CourseDirectory.get_existing_timestamp(here, str(tmp_path)) is None  # type: ignore[arg-type]
    assert [path.name for path in (tmp_path / "autograded" / "bo").iterdir()] == ["notes.txt"]
    assert [line.split(": ")[1] for line in said] == [
        "book.db is a link and was not followed",
        "pipe is neither a file nor a folder and was not read",
        "timestamp.txt is not a plain file, so the grader ignored it",
    ]


def test_copying_leaves_out_links_lists_them_and_keeps_the_original(tmp_path: Path) -> None:
    folder = tmp_path / "bo"
    (folder / "data").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "data" / "all").symlink_to(tmp_path)
    (folder / "gone").symlink_to("/nowhere")
    os.mkfifo(folder / "data" / "pipe")
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(str(folder / "s.sock"))
    with handed_in.without_links(folder) as (plain, links, _):
        assert sorted(p.relative_to(plain).as_posix() for p in plain.rglob("*")) == ["a.txt", "data"]
        assert links == {Path("data/all"): str(tmp_path), Path("gone"): "/nowhere"}
    assert not plain.exists() and (folder / "data" / "all").is_symlink()


def test_links_beyond_the_limits_are_not_copied_and_do_not_fill_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nbgrader's folders may have longer paths than the exchange, where such a link cannot be made."""
    deep = tmp_path / "bo" / Path(*["d" * 200] * 3)
    deep.mkdir(parents=True)
    (deep / "far").symlink_to("/nowhere")
    for number in range(30):
        (tmp_path / "bo" / f"l{number:02}").symlink_to("/nowhere")
    with handed_in.without_links(tmp_path / "bo") as (_, links, odd):
        assert len(links) == 30 and max(len(str(path)) for path in links) == 3
        assert len(odd) == 21 and odd[-1] == "11 more files, folders or links were not copied"
    assert handed_in.odd_files(tmp_path / "bo") == odd
    monkeypatch.setattr(limits, "MAX_ENTRIES", 5)
    with handed_in.without_links(tmp_path / "bo") as (_, links, _):
        assert len(links) == 4


def test_too_deep_or_unreadable_folders_are_reported_and_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise one such folder ends the grading, and later students are not graded."""
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
    allowed = os.access  # root may open every folder, so the test replaces os.access
    monkeypatch.setattr(
        "os.access", lambda path, mode: allowed(path, mode) and not (mode & os.X_OK and str(path).endswith("closed"))
    )
    closed, deep = handed_in.odd_files(folder)
    assert closed == "closed cannot be read by the grader"
    assert deep == f"{'d' * 200} holds a path of more than 500 characters, which was not copied"
    with handed_in.without_links(folder) as (plain, links, _):
        assert (plain / "a.txt").is_file() and not (plain / "closed").exists() and links == {}
    assert handed_in.why_ungraded(folder, ["x"], lambda name: True) == "handed in without a notebook"


def test_entries_over_a_limit_are_reported_and_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sparse file takes no space in a submission, but its copy can fill the disk."""
    folder = tmp_path / "bo"
    (folder / "sub").mkdir(parents=True)
    for name, size in {"a.txt": 1 << 20, "big.bin": 1 << 40, "big.ipynb": 1 << 40, "z.txt": 1}.items():
        (folder / name).touch()
        os.truncate(folder / name, size)
    for number in range(3):
        (folder / "sub" / f"{number}.bin").write_bytes(bytes(1 << 20))
    (folder.joinpath(*["d" * 200] * 3)).mkdir(parents=True)
    monkeypatch.setattr(limits, "MAX_READ", (3 << 20) + 1)
    deep = f"{'d' * 200} holds a path of more than 500 characters, which was not copied"
    omitted = [
        "big.bin is larger than 5 MiB and was not copied",
        "big.ipynb is larger than 64 MiB and was not copied",
        "sub/2.bin was not copied, because the submission has more than 3 MiB",
    ]
    assert sorted(handed_in.odd_files(folder)) == sorted([*omitted, deep])
    said: list[str] = []
    log = SimpleNamespace(warning=lambda form, *words: said.append(form % words))
    handed_in.copy(str(folder), str(tmp_path / "to"), [], log)
    files = ["a.txt", "sub/0.bin", "sub/1.bin", "z.txt"]
    assert sorted(p.relative_to(tmp_path / "to").as_posix() for p in (tmp_path / "to").rglob("*.*")) == files
    assert sorted(said) == [f"{folder}: {line}" for line in sorted([*omitted, deep])]
    with handed_in.without_links(folder) as (plain, _, odd):
        assert sorted(p.relative_to(plain).as_posix() for p in plain.rglob("*.*")) == files
        assert sorted(odd) == sorted([*omitted, deep])
    monkeypatch.setattr(limits, "MAX_ENTRIES", 3)
    assert handed_in.odd_files(folder)[-1] == "more than 3 files and folders were submitted; the rest was not copied"


@pytest.mark.parametrize("zone", ["+03", "+0300", "+03:00", "Europe/Istanbul"])
def test_a_timestamp_may_have_its_zone_as_a_number(zone: str, tmp_path: Path) -> None:
    """nbgrader writes +03 if it is configured for Istanbul. Its own parser reads +03 as 3 s, and ignores +03:00."""
    (tmp_path / "timestamp.txt").write_text(f"2026-11-01 12:00:00.5 {zone}")
    assert handed_in.time_in(tmp_path) == (datetime(2026, 11, 1, 9, 0, 0, 500_000), [])


def test_a_timestamp_that_holds_no_time_is_a_note_and_ends_no_batch(tmp_path: Path) -> None:
    """nbgrader would wait forever for a pipe and fail on other text. Then it would grade no later student."""
    made = {
        "none": lambda path: None,
        "time": lambda path: path.write_text("2026-11-01 10:00:00.5 UTC"),
        "empty": lambda path: path.write_text(""),
        "pipe": os.mkfifo,
        "folder": os.mkdir,
        "link": lambda path: path.symlink_to("/dev/zero"),
        "bytes": lambda path: path.write_bytes(b"\xff\0"),
        "words": lambda path: path.write_text("yesterday"),
        "year": lambda path: path.write_text("9" * 50 + "-01-01 10:00:00 UTC"),
        "long": lambda path: path.write_text("2026-11-01 10:00:00 UTC" + " x" * 100),
    }
    found = {}
    for name, make in made.items():
        (tmp_path / name).mkdir()
        make(tmp_path / name / "timestamp.txt")
        found[name] = handed_in.time_in(tmp_path / name)
    at = datetime(2026, 11, 1, 10, 0, 0, 500_000)
    assert found["none"] == found["empty"] == (None, []) and found["time"] == (at, [])
    end = ", so the grader ignored it"
    refused = {
        "pipe": f"timestamp.txt is not a plain file{end}",
        "folder": f"timestamp.txt cannot be read (is a directory){end}",
        "link": f"timestamp.txt is a link and was not followed; hand in the file itself{end}",
    }
    no_time = dict.fromkeys(["bytes", "words", "year", "long"], f"timestamp.txt holds no time{end}")
    assert {name: note for name, (_, (note,)) in list(found.items())[3:]} == refused | no_time


def test_a_submitted_entry_in_the_way_of_the_assignments_files_is_not_copied(tmp_path: Path) -> None:
    folder, given = tmp_path / "bo", frozenset({"course.yaml", f"m{os.sep}data.csv", f"k{os.sep}x{os.sep}y.csv"})
    (folder / "course.yaml").mkdir(parents=True)
    (folder / "course.yaml" / "a.txt").write_text("a")
    (folder / "m").write_text("a file")
    (folder / "k" / "x").mkdir(parents=True)
    (folder / "k" / "x" / "y.csv").write_text("replaced later")
    assert sorted(handed_in.odd_files(folder, given)) == [
        "course.yaml is a folder, but the assignment has a file of this name, so it was not copied",
        "m is a file, but the assignment has a folder of this name, so it was not copied",
    ]
    handed_in.copy(str(folder), str(tmp_path / "to"), [], SimpleNamespace(warning=lambda *words: None), given)
    assert [p.name for p in (tmp_path / "to").rglob("*") if p.is_file()] == ["y.csv"]


def test_notebooks_that_nbgrader_does_not_grade_are_named(tmp_path: Path) -> None:
    for name in ("hw.ipynb", "work/hw.ipynb", "hw-Copy1.ipynb", ".ipynb_checkpoints/hw.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    assert handed_in.unread_beside(tmp_path, ["hw"]) == [
        "the grader found no work in the graded notebook, and did not read these notebooks: "
        "hw-Copy1.ipynb, work/hw.ipynb"
    ]
    assert handed_in.unread_beside(tmp_path / "work", ["hw"]) == []
    assert handed_in.why_incomplete(tmp_path, ["hw", "essay"], ["essay"]) == [
        "essay.ipynb is missing; the grader did not read these notebooks: hw-Copy1.ipynb, work/hw.ipynb"
    ]
    assert handed_in.why_incomplete(tmp_path / "work", ["hw", "essay"], ["essay"]) == ["essay.ipynb is missing"]
    assert handed_in.why_incomplete(tmp_path, ["hw"], []) == []
