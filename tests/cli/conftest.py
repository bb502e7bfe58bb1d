"""Checkouts in which tests run commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.commands import ROOT
from tests.made_up import COURSE, EXERCISE, made_up


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return a checkout with one module of one solved exercise."""
    (tmp_path / "solutions" / "03_matmuls").mkdir(parents=True)
    for part in ("", "grading"):
        (tmp_path / "solutions" / "03_matmuls" / part).mkdir(exist_ok=True)
        name = Path("solutions", "03_matmuls", part, "c1_no_communication.py")
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "course.yaml").write_text(
        "name: small\nseed: a-secret-seed\nmodules:\n"
        "  - id: 03_matmuls\n    title: Matmuls\n    exercises: [c1_no_communication]\n"
    )
    return tmp_path


@pytest.fixture
def with_bad(tmp_path: Path) -> Path:
    """Return a checkout with one good exercise, and one with a wrong declaration."""
    made_up(tmp_path)
    (tmp_path / "solutions" / "02_bad").mkdir()
    bad = EXERCISE.replace('unit="us"', 'unit="furlong"')
    (tmp_path / "solutions" / "02_bad" / "x2_bad.py").write_text(bad)
    (tmp_path / "course.yaml").write_text(f"{COURSE}  - {{id: 02_bad, title: Bad, exercises: [x2_bad]}}\n")
    return tmp_path
