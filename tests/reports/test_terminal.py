"""Output on narrow and simple terminals. No text in a report controls the terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from grader.reports.summary import Attention, summarise
from grader.reports.terminal import print_attention, print_report, print_summary
from tests.reports.example_reports import (
    a_class,
    ascii_console,
    evil_report,
    exercise,
    make_report,
    mixed,
    printed,
    result,
)


def test_the_terminal_report_shows_marks_hints_notes_and_score() -> None:
    text = printed(mixed())
    assert "C3 Both operands cut along the contracting dimension  2/6" in text
    assert "✓ matmul: value is right  2/2" in text
    assert "✗ matmul: layout is right  0/1" in text
    assert "– matmul: traffic is right  0/1" in text
    assert "! matmul: memory is right  0/2" in text
    assert "    hint: `psum_scatter` cuts dimension 0" in text
    assert "    this check needs an earlier check, which did not pass" in text
    assert "note: a cell was left out" in text
    assert "│ x=0, y=0..1 │" in text
    assert text.rstrip().splitlines()[-2:] == [
        "Score: 2 / 8 (25%)",
        "2 points are pending review by the staff",
    ]


def test_pending_points_are_mentioned_only_if_there_are_any() -> None:
    text = printed(make_report(exercise([result()])))
    assert text.rstrip().endswith("Score: 1 / 1 (100%)")


@pytest.mark.parametrize("width", [12, 20, 40, 60])
def test_a_narrow_terminal_loses_no_text(width: int) -> None:
    text = printed(mixed(), width=width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "pendingreviewbythestaff" in re.sub(r"\s", "", text)


def test_an_ascii_console_gets_ascii() -> None:
    console, raw = ascii_console()
    print_report(mixed(), console)
    print_summary(summarise([mixed()]), console)
    text = raw.getvalue().decode("ascii")
    assert "+ matmul: value is right  2/2" in text
    assert "x matmul: layout is right  0/1" in text
    assert "24 x 40 on mesh x=4, y=2" in text
    assert "+-------------+" in text


def test_a_terminal_obeys_nothing_in_a_report() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system="standard")
    print_report(evil_report(), console, audience="staff")
    print_summary(summarise([evil_report()]), console)
    file = console.file
    assert isinstance(file, io.StringIO)
    text = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())  # rich itself writes these escape sequences for colours
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "[bold]markup[/bold]" in text
    assert "\x1b[31mred" not in file.getvalue()


def test_the_terminal_summary_shows_counts_mean_and_cases_for_review() -> None:
    console = Console(file=io.StringIO(), width=100)
    print_summary(summarise(a_class()), console)
    file = console.file
    assert isinstance(file, io.StringIO)
    text = file.getvalue()
    for part in ["4 submissions", "mean 37.5%", "1 of 4", "psum_scatter", "dan", "reason of value"]:
        assert part in text


def test_cases_with_equal_reasons_share_a_line() -> None:
    console = Console(file=io.StringIO(), width=100)
    strangers = [Attention(student=f"s{i}", reason="is not in the roster", kind="class") for i in range(40)]
    print_attention([Attention(student="ada", reason="unreadable", kind="not graded"), *strangers], console)
    file = console.file
    assert isinstance(file, io.StringIO)
    rows = [line for line in file.getvalue().splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in row.strip("│").split("│")] for row in rows] == [
        ["ada", "unreadable"],
        ["s0, s1, s2, s3, s4 and 35 more", "is not in the roster"],
    ]
