"""Predicted against measured times as a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from grader.reports.loglog import MeasuredPoint, draw_plot, show_seconds
from grader.reports.pages import loglog_svg

POINTS = [
    MeasuredPoint("gather", "64 KiB", 2e-5, 3e-4),
    MeasuredPoint("gather", "8 MiB", 1e-3, 1e-3),
    MeasuredPoint("matmul", "512²", 1e-4, 5e-5),
]


def test_a_point_on_the_diagonal_was_predicted_right() -> None:
    plot = draw_plot(POINTS, "L2")
    _, right, _ = plot.marks
    assert right.x - plot.left == pytest.approx(plot.side - (right.y - plot.top))
    assert plot.marks[0].y < plot.top + plot.side - (
        plot.marks[0].x - plot.left
    )  # a program slower than predicted is above the diagonal
    assert all(
        plot.left <= m.x <= plot.left + plot.side and plot.top <= m.y <= plot.top + plot.side for m in plot.marks
    )
    assert [text for *_, text in plot.ticks] == ["10 us", "100 us", "1 ms"]


def test_the_picture_has_a_description() -> None:
    root = ElementTree.fromstring(loglog_svg(POINTS, "L2 on 4 x <TPU>"))
    assert root.get("role") == "img"
    alt = root.get("aria-label") or ""
    assert alt.startswith("L2 on 4 x <TPU>, logarithmic axes. gather 64 KiB: predicted 20 us, measured 300 us; ")
    assert len(set(draw_plot(POINTS, "L2").looks)) == 2


@pytest.mark.parametrize("seconds", [1e-300, 1e-3, 1e3, 1e250])
def test_a_single_point_of_any_size_is_drawn(seconds: float) -> None:
    ElementTree.fromstring(loglog_svg([MeasuredPoint("a", "b", seconds, seconds)], "L2"))
    assert len(draw_plot([MeasuredPoint("a", "b", seconds, 1.0)], "L2").ticks) <= 12


def test_seconds_have_the_unit_that_suits() -> None:
    times = (2.5e-9, 0.99996e-6, 1.234e-5, 0.0302, 1.5, 1234.5)
    assert [show_seconds(t) for t in times] == ["2.5 ns", "1 us", "12.3 us", "30.2 ms", "1.5 s", "1.23e+03 s"]
