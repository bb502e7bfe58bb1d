"""What is kept on disk: found again, bounded, never believed when it is damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.batch.kept import Kept


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "new" / "folder")
    assert kept.get("a") is None
    kept.put("a", {"schedule": [1, 2]})
    assert Kept(kept.folder).get("a") == {"schedule": [1, 2]}
    assert kept.get("b") is None


@pytest.mark.parametrize("damage", [b"", b"rubbish", b"\n\n", b"0" * 64 + b"\n{}"])
def test_a_damaged_file_is_as_none(tmp_path: Path, damage: bytes) -> None:
    kept = Kept(tmp_path)
    kept.put("a", 1)
    (tmp_path / "a").write_bytes(damage)
    assert kept.get("a") is None
    kept.put("a", 2)
    assert kept.get("a") == 2


def test_a_bit_that_changed_is_seen(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.put("a", list(range(50)))
    whole = (tmp_path / "a").read_bytes()
    for i in range(0, len(whole), 7):
        (tmp_path / "a").write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        assert kept.get("a") is None


def test_an_answer_under_another_key_is_not_taken(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.put("a", 1)
    (tmp_path / "a").rename(tmp_path / "b")
    assert kept.get("b") is None


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path) -> None:
    kept = Kept(tmp_path, most=1500)
    for n in range(20):
        kept.put(f"k{n}", [os.urandom(100).hex()])
        os.utime(tmp_path / f"k{n}", (n, n))
    held = list(tmp_path.iterdir())
    assert sum(p.stat().st_size for p in held) <= 1500
    assert kept.get("k0") is None and kept.get("k19") is not None


def test_one_that_is_too_large_is_not_kept(tmp_path: Path) -> None:
    kept = Kept(tmp_path, most=200)
    kept.put("a", os.urandom(1000).hex())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file" / "below", None):
        kept = Kept(folder)
        kept.put("a", 1)
        assert kept.get("a") is None
