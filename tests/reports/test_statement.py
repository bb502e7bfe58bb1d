"""Statements on a terminal: tables fit, and no word in a table is cut."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from grader.reports.statement import print_markdown

TEXT = """# T

| | name | what |
|---|---|---|
| one | `with_sharding_constraint` | a few words that may be folded wherever they like |
| two | `reshard` | |
"""


def printed(width: int) -> str:
    file = io.StringIO()
    print_markdown(TEXT, Console(file=file, width=width))
    return file.getvalue()


@pytest.mark.parametrize("width", range(26, 90, 3))
def test_every_word_is_whole_at_any_width(width: int) -> None:
    text = printed(width)
    assert "…" not in text and max(map(len, text.splitlines())) <= width
    assert {"with_sharding_constraint", "reshard", "wherever"} <= {word.strip(":") for word in text.split()}


def test_cells_are_below_each_other_where_columns_have_no_room() -> None:
    lines = [line.rstrip() for line in printed(40).splitlines()]
    assert "  name: with_sharding_constraint" in lines and "  one" in lines
    assert "name" in printed(80).split("one")[0]


def test_a_terminal_narrower_than_a_word_folds_the_word() -> None:
    assert "with_sharding_constraint" in "".join(printed(12).split())
