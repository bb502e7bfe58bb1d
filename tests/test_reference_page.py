"""docs/reference.md is equal to the page made from the docstrings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from grader import hardware

ROOT = Path(__file__).resolve().parents[1]


def test_the_page_is_current_and_has_every_function() -> None:
    made = [sys.executable, "-c", "import make_reference; print(make_reference.page(), end='')"]
    page = subprocess.run(made, cwd=ROOT / "docs", capture_output=True, text=True, check=True).stdout
    assert page == (ROOT / "docs" / "reference.md").read_text(encoding="utf-8"), "run: python docs/make_reference.py"
    assert all(f"`{name}`" in page or f"### {name}\n" in page for name in hardware.__all__ if name != "Model")
