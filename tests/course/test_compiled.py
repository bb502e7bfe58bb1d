"""Data of the TPU compiler about the course's solutions.

Learners get only numbers, under the digest of a program.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from grader.course.compiled import PUBLISHED, SHIPPED, Compiled, compiled_of, key_of, published
from grader.wire.operations import Communication
from grader.wire.schedule import Instruction, Schedule, to_json

PROGRAM = "ab" * 32
ON = "v5e:2x4"
RING = tuple((i, (i + 1) % 8) for i in range(8))


def ship(root: Path, *names: str, program: str = PROGRAM) -> None:
    sent = Communication("permute", RING, ("x",), 4_500_000)
    body = (
        Instruction("start", "permute", number=0, communication=sent),
        Instruction("matmul", "dot_general", cycles=150_000, file="secret_solution.py", line=7),
        Instruction("done", "", number=0),
    )
    schedule = to_json(Schedule({"x": 8}, body, 100, 50, 30, by="a compiler", program=program))
    (root / "solutions").mkdir(exist_ok=True)
    (root / SHIPPED).write_bytes(lzma.compress(json.dumps({name: {"schedule": schedule} for name in names}).encode()))


def test_learners_get_numbers_by_digest_and_no_text_of_a_program(tmp_path: Path) -> None:
    ship(
        tmp_path,
        f"f1.ring x=8 I=8 on {ON}",
        f"sends_late as f1.ring x=8 I=8 on {ON}",
        f"docs_example.right x=8 I=8 on {ON}",
    )
    text = published(tmp_path, {"f1": "06"})
    assert list(json.loads(text)) == [key_of(PROGRAM, ON)], "of references alone"
    assert "secret" not in text and "sends_late" not in text and "ring" not in text
    (tmp_path / PUBLISHED).write_text(text)
    found = compiled_of(tmp_path, PROGRAM, ON)
    assert found == Compiled(100_000_000, 100_000_000, 0, 180, "a compiler", {"permute": (100_000_000, 100_000_000)})
    assert compiled_of(tmp_path, "cd" * 32, ON) is None and compiled_of(tmp_path, PROGRAM, "v6e:2x4") is None


def test_a_course_without_compiled_data_publishes_none(tmp_path: Path) -> None:
    assert published(tmp_path, {"f1": "06"}) == ""
    assert compiled_of(tmp_path, PROGRAM, ON) is None


def test_unreadable_data_is_reported_to_authors_and_ignored_for_learners(tmp_path: Path) -> None:
    ship(tmp_path, f"f1.ring x=8 I=8 on {ON}")
    (tmp_path / SHIPPED).write_bytes(b"rubbish")
    with pytest.raises(ValueError, match=r"cannot be read .*make the file again: python docs/make_chip_tables\.py"):
        published(tmp_path, {"f1": "06"})
    for text in (
        "rubbish",
        "[]",
        "{}",
        f'{{"{key_of(PROGRAM, ON)}": {{"step": "x"}}}}',
        f'{{"{key_of(PROGRAM, ON)}": 3}}',
    ):
        (tmp_path / PUBLISHED).write_text(text)
        assert compiled_of(tmp_path, PROGRAM, ON) is None
