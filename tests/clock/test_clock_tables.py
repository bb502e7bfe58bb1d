"""The page of the clock's tables, and its picture, are what the clock says today."""

from __future__ import annotations

import importlib.util
import sys

from tests.commands import ROOT


def test_the_page_and_its_picture_are_current() -> None:
    spec = importlib.util.spec_from_file_location("clock_tables", ROOT / "docs" / "clock_tables.py")
    assert spec is not None and spec.loader is not None
    tables = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    for path, text in tables.made().items():
        assert path.read_text(encoding="utf-8") == text, "run python docs/clock_tables.py"
