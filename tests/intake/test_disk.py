"""The files that are read: links, odd names, special files, files of other types, limits, errors."""

from __future__ import annotations

import errno
import os
import re
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from grader.common.text import A_DOCUMENT
from grader.intake.submission import Unreadable
from grader.wire import limits
from tests.handed_in import names, read_, write, zipped


def test_control_characters_do_not_reach_notes_or_names(tmp_path: Path):
    name = "\x1b[2J c3_contracting\u202e.py"
    write(tmp_path / name)
    write(tmp_path / "\x1b]0;x\x07.py")
    found = read_(tmp_path)
    source = found.sources["c3_contracting"]
    assert source.name == source.chunks[0].name == "?[2J c3_contracting?.py"
    assert found.notes == ("these files are not named after an exercise, so they are not graded: ?]0;x?.py",)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_file_name_that_is_not_utf8(tmp_path: Path):
    write(tmp_path / os.fsdecode(b"c3_contracting-\xff.py"))
    assert names(read_(tmp_path)) == {"c3_contracting": "c3_contracting-?.py"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_refused_without_waiting(tmp_path: Path):
    os.mkfifo(tmp_path / "c3_contracting.py")
    found = read_(tmp_path)
    assert not found.sources
    assert found.notes == ("c3_contracting.py is not a plain file",)


def test_a_file_over_the_limit_is_refused(tmp_path: Path):
    write(tmp_path / "c1_local.py", b"#" * limits.MAX_FILE)
    write(tmp_path / "c3_contracting.py", b"#" * (limits.MAX_FILE + 1))
    write(tmp_path / "05_rings.ipynb", b" " * (limits.MAX_NOTEBOOK + 1))
    found = read_(tmp_path)
    assert names(found) == {"c1_local": "c1_local.py"}
    assert found.notes == (
        "c3_contracting.py is larger than 5 MiB and was not read; make it smaller and hand it in again",
        "05_rings.ipynb is larger than 64 MiB and was not read; clear its outputs and hand it in again",
    )


def test_no_byte_of_a_file_over_the_limit_is_read(tmp_path: Path):
    """Otherwise a submission of 500 notebooks over the limit delays the class while the grader reads 64 MiB of each."""
    path = write(tmp_path / "05_rings.ipynb")
    os.truncate(path, limits.MAX_NOTEBOOK + 1)
    tracemalloc.start()
    assert not read_(tmp_path).sources
    assert tracemalloc.get_traced_memory()[1] < limits.MIB
    tracemalloc.stop()


@pytest.mark.parametrize("fault", ["EACCES", "EPERM", "EIO", "ELOOP"])
@pytest.mark.parametrize("what", ["open", "scandir"])
def test_an_unreadable_file_costs_no_points(
    what: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "c3_contracting.py")
    write(tmp_path / "c1_local.py")
    (tmp_path / "sub").mkdir()
    number, real = getattr(errno, fault), getattr(os, what)

    def fails(path: Any, *rest: Any) -> Any:
        if Path(path).name in ("c3_contracting.py", "sub"):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, *rest)

    monkeypatch.setattr(os, what, fails)
    with pytest.raises(
        Unreadable, match=f"cannot be read: {re.escape(os.strerror(number))}; mend the cause and grade again"
    ):
        read_(tmp_path)


NO_CODE = "is not a .py file, a notebook (.ipynb) or a .zip, so it was not read"


def test_tool_folders_are_skipped_and_files_of_other_names_are_noted(tmp_path: Path):
    for folder in (".hidden", "__pycache__", ".ipynb_checkpoints", "_public", "venv", "__MACOSX"):
        write(tmp_path / folder / "c3_contracting.py")
    write(tmp_path / "._c3_contracting.py")
    write(tmp_path / "c1_local.py")
    write(tmp_path / "notes.txt")
    for i in range(7):
        write(tmp_path / f"helper{i}.py")
    found = read_(tmp_path)
    assert names(found) == {"c1_local": "c1_local.py"}
    assert found.notes == (
        "these files are not named after an exercise, so they are not graded: helper0.py, helper1.py, helper2.py, helper3.py, helper4.py and 2 more",
    )


def test_unusable_paths_are_notes(tmp_path: Path):
    assert read_(write(tmp_path / "a.txt")).notes[0] == "a.txt is not a .py file, a notebook (.ipynb) or a .zip"
    assert read_(Path("a\0b")).notes[0] == "a?b cannot be read (valueerror)"
    assert read_(tmp_path / ("a" * 999)).notes[0].endswith("aaa cannot be read (file name too long)")


def test_links_that_were_handed_in_are_not_followed(tmp_path: Path):
    write(tmp_path / "bob/c3_contracting.py", "secret = 1")
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice/c3_contracting.py").symlink_to(tmp_path / "bob/c3_contracting.py")
    (tmp_path / "alice/more").symlink_to(tmp_path / "bob")
    found = read_(tmp_path / "alice")
    assert not found.sources
    assert found.notes[:2] == (
        "c3_contracting.py is a link and was not followed",
        "more is a link and was not followed",
    )


def test_a_link_given_on_the_command_line_is_followed(tmp_path: Path):
    write(tmp_path / "bob/c3_contracting.py")
    (tmp_path / "current").symlink_to(tmp_path / "bob")
    assert names(read_(tmp_path / "current")) == {"c3_contracting": "c3_contracting.py"}


def test_the_number_of_files_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "MAX_FILES", 3)
    write(tmp_path / "c3_contracting.py")
    for i in range(5):
        write(tmp_path / "aaa" / f"h{i}.py")
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "c3_contracting.py"}
    assert found.notes[0] == "more than 3 .py files and notebooks were submitted; the rest was not read"


def test_the_number_of_entries_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "MAX_ENTRIES", 3)
    for i in range(5):
        write(tmp_path / f"h{i}.txt")
    assert read_(tmp_path).notes[0] == "more than 3 files and folders were submitted; the rest was not read"


def test_the_depth_is_limited(tmp_path: Path):
    folder = tmp_path.joinpath(*"12345678")
    write(folder / "c1_local.py")
    write(folder / "9/c3_contracting.py")
    found = read_(tmp_path)
    assert names(found) == {"c1_local": "1/2/3/4/5/6/7/8/c1_local.py"}
    assert found.notes == ("folders deeper than 8 levels were not read",)


def test_at_most_five_archives_of_a_folder_are_opened(tmp_path: Path):
    for i in range(7):
        write(tmp_path / f"{i}.zip", zipped({"c3_contracting.py": "a = 1"}))
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "0.zip/c3_contracting.py"}
    assert found.notes[0] == "7 .zip files were submitted; only the first 5 were opened"


def test_archives_larger_together_than_the_limit_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one = zipped({"c3_contracting.py": "a = 1"})
    monkeypatch.setattr(limits, "MAX_READ", 2 * len(one))
    for name in ("a", "b", "c"):
        write(tmp_path / f"{name}.zip", one)
    write(tmp_path / "0.zip", b"x" * (2 * len(one) + 1))  # a refused file does not count towards the limit
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "a.zip/c3_contracting.py"}
    assert any("b.zip/c3_contracting.py is not graded" in note for note in found.notes)
    assert not any("c.zip" in note for note in found.notes)
    assert "more than 0 MiB of .zip files were submitted, so the rest was not opened; make them smaller" in found.notes


@pytest.mark.parametrize("name", ["rest.tar.gz", "rest.RAR", "more/rest.7z"])
def test_an_archive_in_a_students_folder_that_is_not_read_is_named(tmp_path: Path, name: str) -> None:
    """Otherwise the exercises in the archive are missing, and no note says why."""
    write(tmp_path / "c1_local.py")
    write(tmp_path / name)
    found = read_(tmp_path)
    note = f"{name} is an archive that the grader does not read; unpack it, or make a .zip"
    assert found.notes == found.unread == (note,)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *((name, NO_CODE) for name in ("c3_contracting.py.txt", "more/03_matmuls.IPYNB.json", "c3.zip.part")),
        ("answers.PDF", f"{A_DOCUMENT}; write your answers into a .py file or a notebook (.ipynb)"),
    ],
)
def test_a_file_of_another_type_that_may_hold_exercises_is_named(tmp_path: Path, name: str, why: str) -> None:
    """Otherwise the exercises in such a file are missing, and no note says why."""
    write(tmp_path / "c1_local.py")
    write(tmp_path / name)
    note = f"{name} {why}"
    found = read_(tmp_path)
    assert found.notes == found.unread == (note,)
    path = tmp_path / "hand.zip"
    path.write_bytes(zipped({"c1_local.py": "x = 1", name: "x"}))
    assert read_(path).unread == (note.replace(name, f"{name} in hand.zip"),)


def test_a_file_that_vanishes_while_it_is_read_costs_no_points(tmp_path: Path) -> None:
    """For example, the file server is gone. The grader found the file, so the student handed it in."""
    gone = tmp_path / "no.py"
    with pytest.raises(Unreadable, match=f"^{gone} cannot be read: No such file or directory; mend the cause"):
        read_(gone)
