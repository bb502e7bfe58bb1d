"""SECURITY.md names tests for each promise, and these tests exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(\w+)::(\w+)`", TEXT)) - {("hostile", "test_x")})


@pytest.mark.parametrize(("module", "test"), NAMED)
def test_every_test_in_the_document_exists(module: str, test: str) -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob(f"test_{module}.py")]
    assert test in {node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_file_and_command_in_the_document_exists() -> None:
    paths = re.findall(r"`((?:grader|tests|bench|docs)/[\w./]+)`", TEXT)
    assert paths and [path for path in paths if not (ROOT / path).exists()] == []


def test_every_promise_names_a_test() -> None:
    section = TEXT.split("## Which test would fail")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20 and [row for row in rows if "::test_" not in row] == []
