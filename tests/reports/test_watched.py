"""The view of an exercise that is drawn again after each save."""

from __future__ import annotations

import io

from rich.console import Console

from grader.reports.watched import print_watched
from tests.reports.example_reports import evil_report, exercise, layout_failure, mixed, number, result


def shown(report, width: int = 80) -> str:
    file = io.StringIO()
    print_watched(report, Console(file=file, width=width))
    return file.getvalue()


def test_a_tick_for_each_check_and_one_failure_in_full() -> None:
    text = shown(exercise([result("value"), result("b", "blocked"), layout_failure(), number()]))
    lines = [line.rstrip() for line in text.splitlines()]
    assert "  ✓ matmul: value is right" in lines and "  – matmul: b is right" in lines
    assert text.count("expected P(None, 'x')") == 1 and "│" in text
    assert "Start with matmul:" in text and "one direction" not in text
    assert text.endswith("1 of 4 pass\n")


def test_a_learner_sees_nothing_hidden_and_a_terminal_obeys_nothing() -> None:
    for of in (*mixed().exercises, *evil_report().exercises):
        for width in (12, 40, 100):
            text = shown(of, width)
            assert "SECRET" not in text and "\x1b" not in text and "\u202e" not in text
            assert max(map(len, text.splitlines())) <= width


def test_an_exercise_that_passes_names_no_function_to_start_with() -> None:
    assert "Start with" not in shown(exercise([result("value")]))


def test_at_most_five_notes_are_shown() -> None:
    text = shown(exercise([result("value")], notes=[f"note {number}" for number in range(9)]))
    assert [number for number in range(9) if f"note: note {number}" in text] == [0, 1, 2, 3, 4]
