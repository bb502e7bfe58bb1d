"""Output of ``grade``: with --quiet only the summary line, with --verbose a line per submission."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.commands import GOOD, ROOT, shardlings

GRADE = ("grade", "class", "--out", "out", "--isolation", "none", "-j", "1")


@pytest.fixture
def two(small: Path) -> Path:
    """Return a class of two students."""
    for student in ("ada", "bob"):
        (small / "class" / student).mkdir(parents=True)
        shutil.copy(ROOT / GOOD, small / "class" / student)
    return small


def test_the_last_line_of_grade_is_the_summary_with_its_counts(two: Path) -> None:
    first = shardlings(*GRADE, "--verbose", cwd=two)
    assert first.returncode == 0, first.stderr
    lines = first.stdout.splitlines()
    assert lines[-1] == "summary: 2 graded, 0 unchanged, 0 not graded, 0 needs review, 0 absent"
    assert sorted(line.partition(": Score: ")[0] for line in lines if ": Score: " in line) == ["ada", "bob"]
    (two / "class" / "bob" / Path(GOOD).name).write_text("def matmul_local(a, b, *, mesh):\n    return a\n")
    again = shardlings(*GRADE, "--quiet", cwd=two)
    assert again.stdout == "summary: 1 graded, 1 unchanged, 0 not graded, 0 needs review, 0 absent\n"
    assert "note:" not in again.stderr
    assert "Score:" not in shardlings(*GRADE, cwd=two).stdout
