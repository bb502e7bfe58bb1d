"""Timelines as SVG: well-formed, readable without colour, and on one scale."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from dataclasses import asdict
from typing import Any

import pytest
from rich.console import Console

from grader.clock.timeline import COMPUTE, Timeline
from grader.common.result import Result
from grader.reports.pages import render, render_fragment, render_html, render_timelines
from grader.reports.programs import timelines_of
from grader.reports.terminal import print_exercise
from grader.reports.timeline_svg import CHAR, LOOKS, NOTE, draw_chart
from grader.reports.timelines import LETTERS
from tests.reports.example_reports import Nesting, exercise, layout_failure, make_report
from tests.timelines import looped, ring, span, timeline

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<script>alert(1)</script>" onload="x'


def timelines_svg(timelines: dict[str, Timeline]) -> str:
    return render("timeline.svg.j2", chart=draw_chart(timelines), standalone=True)


def parsed(**drawn: object) -> ET.Element:
    return ET.fromstring(timelines_svg(drawn))  # type: ignore[arg-type]


def test_the_file_is_xml_with_a_title_and_no_script() -> None:
    root = parsed(right=ring(), late=looped())
    assert root.tag == f"{SVG}svg" and root.attrib["aria-label"] == "right: step 298.7 us; late: step 325 us"
    assert root.findtext(f"{SVG}title") == root.attrib["aria-label"]
    assert not list(root.iter(f"{SVG}script"))
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert {"right", "late", "compute", "link x+", "P permute", "D matmul"} <= set(texts)


def test_every_bar_has_a_description() -> None:
    titles = [t.text for t in parsed(late=looped()).iter(f"{SVG}title")]
    assert "permute over x: 5 to 35 us, round 1 of 8, e9.py:20" in titles
    assert (
        "loop of 8 rounds (line 19): rounds 3 to 7 are left out, because they equal the second round; 40 us each"
        in titles
    )


def test_kinds_differ_by_colour_or_by_pattern_and_by_letter() -> None:
    assert set(LOOKS) == set(LETTERS)
    tiles = [tile for _, tile in LOOKS.values()]
    assert len(set(tiles)) == len(tiles)


def test_bars_fit_in_the_picture_and_are_to_scale() -> None:
    chart = draw_chart({"a": ring(3, 10, 20), "b": ring(7, 10, 40)})
    for panel in chart.panels:
        for box in (b for lane in panel.lanes for b in lane.boxes):
            assert chart.left <= box.x and box.x + box.width <= chart.width
            assert box.y + box.height <= chart.height
    first, second = (panel.lanes[1].boxes[0].width for panel in chart.panels)
    assert second == pytest.approx(2 * first, rel=1e-2)


def test_the_same_timelines_give_the_same_bytes() -> None:
    assert timelines_svg({"a": ring()}) == timelines_svg({"a": ring()})


def test_a_page_shows_timelines_inline_with_their_totals() -> None:
    page = render_timelines({"": looped()})
    assert Nesting(page).tags.count("svg") == 1
    assert "xmlns" not in page and "<script" not in page and "style=" in page
    assert "step 325 us: core busy 35 us, idle 290 us" in page


@pytest.mark.parametrize(("line", "label"), [(14, "matmul 14"), (None, "matmul")])
def test_a_wide_bar_of_a_matmul_says_matmul(line: int | None, label: str) -> None:
    assert f">{label}</text>" in timelines_svg({"": timeline(span(COMPUTE, "matmul", 0, 100, line=line))})


def test_words_of_a_program_are_only_text() -> None:
    one = span(COMPUTE, "matmul", 0, 1, line=1, file=HOSTILE)
    for text in (timelines_svg({HOSTILE: timeline(one)}), render_timelines({HOSTILE: timeline(one)})):
        assert "<script" not in text and 'onload="x' not in text


def test_many_bars_stay_a_small_picture() -> None:
    spans = [span("x+", "permute", k, k + 1, k) for k in range(20_000)]
    assert len(timelines_svg({"": timeline(*spans)})) < 20_000


def failed_in_time(**more: Any) -> Result:
    picture = {"title": "actual timeline", "timeline": json.loads(json.dumps(asdict(ring(2))))}
    return layout_failure(pictures=[picture], **more)


def test_a_report_shows_the_timeline_of_a_failure_on_a_page_in_a_notebook_and_on_a_terminal() -> None:
    one = exercise([failed_in_time()])
    for fragment in (render_html(make_report(one)), render_fragment(one)):
        page = Nesting(fragment)
        assert "timeline of your program" in page.text and "permute: " in page.text
    screen = Console(file=io.StringIO(), width=100)
    print_exercise(one, screen)
    assert "link x+" in screen.file.getvalue() and "in time on v5e 2x4" in screen.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("broken", [{}, None, {"chip": 3}, {"chip": "v5e", "shape": "2x4"}])
def test_invalid_timelines_are_not_drawn(broken: Any) -> None:
    result = layout_failure(pictures=[{"title": "actual timeline", "timeline": broken}])
    assert timelines_of(result) == [] and "in time" not in render_html(make_report(exercise([result])))


@pytest.mark.parametrize("width", [300.0, 680.0, 760.0])
def test_the_note_fits_in_the_picture(width: float) -> None:
    chart = draw_chart({"": timeline(span(COMPUTE, "matmul", 0, 1))}, width)
    assert all(len(line) * CHAR <= width - 8 for line in chart.notes) and " ".join(chart.notes) == NOTE
    assert chart.height - 12 * len(chart.notes) >= max(b.y + b.height for b in chart.legend)
