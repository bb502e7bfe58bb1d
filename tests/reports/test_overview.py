"""A learner's progress: begun exercises, results, and the first failure."""

from __future__ import annotations

import io

from rich.console import Console

from grader.reports.overview import print_first_failure, print_overview, print_watched
from grader.reports.wording import passing_text
from tests.reports.example_reports import (
    ascii_console,
    evil_report,
    exercise,
    layout_failure,
    make_report,
    mixed,
    number,
    result,
)

UNWRITTEN = "line 4: f: not written yet (it raises NotImplementedError)"
TITLES = {"03_matmuls": "Matmuls", "05_rings": "Rings", "06_more": "Nothing listed yet"}


def report():
    stub = [
        result("a", "failed", reason=UNWRITTEN),
        result("b", "blocked"),
        number(reason="not answered yet", actual=None),
    ]
    half = [result("a"), result("b", "failed", reason=UNWRITTEN), layout_failure()]
    return make_report(
        exercise([result("a"), result("b")]),
        exercise(half, exercise="c4_same_axis", title="C4 The same axis"),
        exercise(stub, exercise="c5_choose", extension=True),
        exercise(stub, exercise="e1_ring", module="05_rings"),
    )


def shown(width: int = 100) -> str:
    file = io.StringIO()
    print_overview(report(), TITLES, Console(file=file, width=width))
    return file.getvalue()


def test_a_line_for_each_exercise_of_a_module_that_is_begun() -> None:
    assert [line.rstrip() for line in shown().splitlines()] == [
        "03_matmuls Matmuls: 2 of 3 begun",
        "  ✓ c3_contracting 2 of 2 pass",
        "  ✗ c4_same_axis   1 of 3 pass",
        "    c5_choose      not begun",
        "05_rings Rings: not begun, 1 exercise",
        "1 done, 2 begun, of 4 exercises",
    ]


def test_a_narrow_terminal_loses_no_word() -> None:
    text = shown(24)
    assert max(map(len, text.splitlines())) <= 24 and "…" not in text
    assert "c3_contracting" in text


def test_no_word_is_cut_at_any_width() -> None:
    results = [result("a"), result("b"), number(reason="read as 3 us", actual=None, status="passed")]
    report = make_report(exercise(results, exercise="c1_no_communication"))
    outcome = "".join(passing_text(results).split())
    for width in range(28, 100):
        file = io.StringIO()
        print_overview(report, TITLES, Console(file=file, width=width))
        assert outcome in "".join(file.getvalue().replace("c1_no_communication", "").split()), width


def test_an_unreadable_file_is_reported() -> None:
    """Otherwise a file in a different encoding looks like an exercise that was not begun."""
    told = report().model_copy(update={"notes": ["c4_same_axis.py is not UTF-8 text (line 1); save it as UTF-8"]})
    file = io.StringIO()
    print_overview(told, TITLES, Console(file=file, width=100))
    assert file.getvalue().splitlines()[-2:] == [
        "note: c4_same_axis.py is not UTF-8 text (line 1); save it as UTF-8",
        "1 done, 2 begun, of 4 exercises",
    ]


def test_the_first_failure_skips_checks_of_unwritten_functions() -> None:
    console, raw = ascii_console()
    failing = print_first_failure(report(), console)
    assert failing is not None and failing.exercise == "c4_same_axis"
    text = raw.getvalue().decode("ascii")
    assert text.startswith("C4 The same axis\n  x matmul: layout is right  0/1") and "not written" not in text
    assert "24 x 40 on mesh x=4, y=2" in text and "a.txt" not in text


def test_no_first_failure_is_printed_where_all_begun_exercises_pass() -> None:
    console, raw = ascii_console()
    assert print_first_failure(make_report(exercise([result()])), console) is None and raw.getvalue() == b""


def watched(report, width: int = 80) -> str:
    file = io.StringIO()
    print_watched(report, Console(file=file, width=width))
    return file.getvalue()


def test_a_tick_for_each_check_and_one_failure_in_full() -> None:
    text = watched(exercise([result("value"), result("b", "blocked"), layout_failure(), number()]))
    lines = [line.rstrip() for line in text.splitlines()]
    assert "  ✓ matmul: value is right" in lines and "  – matmul: b is right" in lines
    assert text.count("expected P(None, 'x')") == 1 and "│" in text
    assert "Start with matmul:" in text and "one direction" not in text
    assert text.endswith("1 of 4 pass\n")


def test_a_learner_sees_nothing_hidden_and_a_terminal_obeys_nothing() -> None:
    for of in (*mixed().exercises, *evil_report().exercises):
        for width in (12, 40, 100):
            text = watched(of, width)
            assert "SECRET" not in text and "\x1b" not in text and "\u202e" not in text
            assert max(map(len, text.splitlines())) <= width


def test_an_exercise_that_passes_names_no_function_to_start_with() -> None:
    assert "Start with" not in watched(exercise([result("value")]))


def test_at_most_five_notes_are_shown() -> None:
    text = watched(exercise([result("value")], notes=[f"note {number}" for number in range(9)]))
    assert [number for number in range(9) if f"note: note {number}" in text] == [0, 1, 2, 3, 4]
