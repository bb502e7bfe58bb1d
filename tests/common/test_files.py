"""The grader writes a file completely or not at all, and never uses one file for two names."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grader.common.files import AT_WORK, RESERVED, clear_left_behind, file_name, write_atomic


def test_write_atomic_writes_utf8_and_keeps_line_ends(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "ä\nb\r\n")
    assert (tmp_path / "a").read_bytes() == "ä\nb\r\n".encode()


def test_write_atomic_replaces_an_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old and longer")
    write_atomic(str(path), b"\x00new")
    assert path.read_bytes() == b"\x00new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: object, target: object) -> None:
        raise OSError("no space left on device")

    path = tmp_path / "a"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_half_a_surrogate_pair_becomes_a_question_mark(tmp_path: Path) -> None:
    """The grader can write any text that a learner submits."""
    write_atomic(tmp_path / "a", "x\ud800y\udcff\U0001f600")
    assert (tmp_path / "a").read_bytes() == "x?y?\U0001f600".encode()


def test_a_write_error_names_the_requested_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's error for a full disk names no file, and its error for a refused write names the temporary file."""

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(FileNotFoundError) as refused:
        write_atomic(tmp_path / "none" / "a", "x")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as no_space:
        write_atomic(tmp_path / "a", "x")
    assert refused.value.filename == str(tmp_path / "none" / "a")
    assert no_space.value.filename == str(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_the_mode_of_a_written_file_follows_the_umask(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "x")
    (tmp_path / "b").write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_link_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("keep")
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    write_atomic(tmp_path / "link", "x")
    assert (tmp_path / "victim").read_text() == "keep"
    assert not (tmp_path / "link").is_symlink()


def test_write_atomic_into_a_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "none" / "a", "x")


def test_only_old_temporary_files_of_killed_writers_are_cleared(tmp_path: Path) -> None:
    old = tmp_path.stat().st_mtime - 2 * AT_WORK
    ours = tmp_path / (".tmp-" + "0a" * 8)
    others = [tmp_path / name for name in (".tmp-notes", ".tmp-" + "0a" * 9, "grades.csv")]
    at_work, deeper, link = (tmp_path / name for name in (".tmp-" + "b" * 16, "reports", ".tmp-" + "c" * 16))
    deeper.mkdir()
    others.append(deeper / ours.name)
    for path in (ours, at_work, *others):
        path.write_text("half")
        os.utime(path, (old, old))
    os.utime(at_work)
    link.symlink_to(others[0])
    clear_left_behind(tmp_path)
    assert not ours.exists() and all(path.exists() for path in (at_work, link, *others))
    clear_left_behind(tmp_path / "none")


NAMES = st.text(max_size=60) | st.text("aZ09.~- _\u00e4/", max_size=300)


@given(NAMES, NAMES)
@example("a b", "a-b-c8687a08aa5d")
@example("index", "~69ndex")
@example("\u00e4", "~c3~a4")
@example("x" * 201, "~~" + hashlib.sha256(b"x" * 201).hexdigest())
def test_two_names_never_share_a_file(one: str, other: str) -> None:
    assert (file_name(one) == file_name(other)) == (one == other)


@given(NAMES)
@example("..")
@example("\ud800")
@example("Index")
def test_a_file_name_is_plain_ascii_and_not_a_reserved_page(name: str) -> None:
    found = file_name(name)
    assert re.fullmatch(r"([A-Za-z0-9._@+~ -](?<!^\.)){0,200}", found) and found.lower() not in RESERVED
    assert file_name("alice.b-c_1@x +2") == "alice.b-c_1@x +2"


def test_a_file_has_its_permissions_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def with_mode(source: str, target: str) -> None:
        assert os.stat(source).st_mode & 0o777 == 0o444
        replace(source, target)

    monkeypatch.setattr(os, "replace", with_mode)
    write_atomic(tmp_path / "a", "x", mode=0o444)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o444
