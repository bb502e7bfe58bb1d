"""A program's points on the rooflines of its chip."""

from __future__ import annotations

import math

import pytest

from grader.clock.timeline import COMPUTE, Span
from grader.hardware import CHIPS, hbm_intensity, link_intensity
from grader.reports.pages import render_roofline
from grader.reports.roofline import RooflinePoint, draw_roofline, roofline_of, roofline_text, show_rate
from tests.reports.example_reports import Nesting
from tests.timelines import ring, span, timeline

V5E = CHIPS["v5e"]


def matmul(intensity: float, *, flops: int = 10**12, number: int = 0, line: int = 14) -> Span:
    """Return the span of a matmul. Its time is the time by v5e's roofline."""
    bytes_ = round(flops / intensity)
    return span(
        COMPUTE, "matmul", 0, 1e6 * max(flops / V5E.bf16, bytes_ / V5E.hbm_bw), number, line=line, flops=flops, bytes=bytes_
    )  # fmt: skip


@pytest.mark.parametrize(("times", "bound"), [(0.5, "HBM"), (2.0, "arithmetic")])
def test_the_intensity_of_a_matmul_decides_what_bounds_it(times: float, bound: str) -> None:
    found = roofline_of(timeline(matmul(times * hbm_intensity("v5e"))), 0)
    assert found is not None
    (point,) = found.points
    assert found.bound(point) == bound and point.per == "HBM byte"
    assert point.rate == pytest.approx(V5E.bf16 * min(1.0, times), rel=1e-3)
    assert f"bounded by {bound}; {show_rate(point.rate)}, {min(1.0, times):.0%} of the peak" in roofline_text(found)[1]


@pytest.mark.parametrize(("times", "bound"), [(0.5, "links"), (2.0, "arithmetic")])
def test_the_step_is_under_the_roof_of_the_links(times: float, bound: str) -> None:
    flops = 10**12
    laid = timeline(matmul(500), flops=flops)
    found = roofline_of(laid, flops / (times * link_intensity("v5e")))
    assert found is not None
    assert found.points[-1].per == "byte sent" and found.bound(found.points[-1]) == bound
    assert found.points[-1].rate == pytest.approx(flops / (laid.step / 1e12))


def test_no_roofline_without_flops_or_on_an_unknown_chip() -> None:
    assert roofline_of(timeline(span("x+", "permute", 0, 5)), 10) is None
    assert roofline_of(timeline(matmul(5), chip="abacus"), 10) is None


@pytest.mark.parametrize("sent", [0, math.inf, math.nan])
def test_the_step_has_no_point_if_its_bytes_are_unknown(sent: float) -> None:
    found = roofline_of(timeline(matmul(5), flops=10), sent)
    assert found is not None and [p.per for p in found.points] == ["HBM byte"]


def test_rounds_of_a_loop_share_a_point_and_other_lines_have_their_own() -> None:
    spans = [matmul(50, number=1), matmul(50, number=2), matmul(50, number=3, line=20)]
    found = roofline_of(timeline(*spans), 0)
    assert found is not None and len(found.points) == 2


@pytest.mark.parametrize("intensity", [1e-3, 1.0, 240.0, 1e6])
def test_every_mark_is_inside_and_under_its_roof(intensity: float) -> None:
    found = roofline_of(timeline(matmul(intensity, flops=10**13), flops=10**13), 1e13 / intensity)
    assert found is not None
    drawn = draw_roofline(found)
    for mark in drawn.marks:
        assert drawn.left <= mark.x <= drawn.right and drawn.top <= mark.y <= drawn.bottom
    for x, _ in drawn.xs:
        assert drawn.left <= x <= drawn.right
    assert "roof of a ring's links" in Nesting(render_roofline(found)).text


def test_a_ring_without_recorded_bytes_has_no_roofline() -> None:
    plain = ring(2)
    assert roofline_of(plain, 5) is None  # the matmuls have no recorded bytes
    point = RooflinePoint("dot_general, e9.py:14", "HBM byte", 3, 1e12)
    assert show_rate(point.rate) == "1 TFLOP/s" and show_rate(999.9e9) == "1 TFLOP/s" and show_rate(12) == "12 FLOP/s"
