"""Bars of a program's cost against its budget."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.reports.bars import CHAR, LONGEST, draw_bars
from grader.reports.pages import render_html
from tests.reports.example_reports import Nesting, exercise, layout_failure, make_report

AMOUNTS = st.floats(0, 1e299) | st.integers(0, 10**40)


def result(due: Any, got: Any, **more: Any) -> Any:
    return layout_failure(expected=due, actual=got, pictures=[], **more)


@given(due=AMOUNTS, got=AMOUNTS)
def test_bars_and_their_numbers_fit_and_share_one_scale(due: float, got: float) -> None:
    drawn = draw_bars(result(due, got))
    if drawn is None:
        assert due == got
        return
    (row,) = drawn.rows
    assert row.limit <= LONGEST and row.within <= LONGEST and row.within + row.beyond <= LONGEST + 1
    assert drawn.left + row.length + 8 + len(row.number) * CHAR <= drawn.width + 0.1
    assert (row.beyond > 0) == (got > due) and (row.limit > 0) == (due > 0)
    assert len(row.name) * CHAR <= drawn.left - 8


def test_each_collective_has_a_bar_with_its_limit() -> None:
    drawn = draw_bars(result({"permute x": 6, "psum x": 0}, {"permute x": 2, "all_gather x": 1}))
    assert drawn is not None
    assert [(r.name, r.limit, r.within, r.beyond) for r in drawn.rows if r.name != "psum x"] == [
        ("permute x", 240.0, 80.0, 0.0),
        ("all_gather x", 0.0, 0.0, 40.0),
    ]
    assert drawn.alt == "bars: permute x 2 of 6; psum x 0 of 0; all_gather x 1: none expected"


def test_an_unknown_count_is_shown_as_text_without_a_bar() -> None:
    assert draw_bars(result({"permute x": 6}, {"permute x": "1 to 6"})) is None


@pytest.mark.parametrize(
    ("due", "got"),
    [
        (None, 3),
        (3, None),
        ("3", 4),
        (True, 2),
        (float("nan"), 1),
        (1, float("inf")),
        (-1, 2),
        ([1], [2]),
        (2, 2),
        (0, 0),
    ],
)
def test_values_that_are_not_amounts_are_not_drawn(due: Any, got: Any) -> None:
    assert draw_bars(result(due, got)) is None


def test_a_page_shows_bars_and_states_the_excess() -> None:
    page = Nesting(render_html(make_report(exercise([result(3840.0, 7680).model_copy(update={"unit": "FLOPs"})]))))
    assert "7,680 FLOPs: 3,840 over 3,840 (2 × as much)" in page.text
    assert ("aria-label", "bars: yours 7,680 FLOPs: 3,840 over 3,840 (2 × as much)") in page.attributes


def test_students_see_no_budget_of_a_hidden_check() -> None:
    report = make_report(exercise([result(3840.0, 7680, public=False)]))
    page = render_html(report)
    assert "3,840" not in page and "bars:" not in page and "7680" in page
    assert "3,840" in render_html(report, audience="staff")


def test_notes_for_staff_are_beside_the_bars() -> None:
    report = make_report(exercise([result(1, 2, staff="only for them")]))
    assert "only for them" in render_html(report, audience="staff") and "only for them" not in render_html(report)
