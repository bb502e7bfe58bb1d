"""None of the grader's modules can be imported where learner code runs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from grader import learner

FILES = sorted(Path(learner.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_function_of_a_child_imports_the_grader(path: Path) -> None:
    """``_hide_grader`` removes this package from ``sys.modules``, so a later import inside a function would fail."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = [n for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)]
    named = [n.module or "" for n in inside if isinstance(n, ast.ImportFrom)]
    named += [a.name for n in inside if isinstance(n, ast.Import) for a in n.names]
    assert [name for name in named if name.split(".")[0] in ("", "grader")] == []
