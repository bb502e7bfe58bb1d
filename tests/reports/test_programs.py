"""The learner's program in a failed result: on a page, in a notebook and on a terminal."""

from __future__ import annotations

import io
import json
import math
from dataclasses import asdict
from typing import Any

import pytest
from rich.console import Console

from grader.clock.timeline import COMPUTE
from grader.common.result import Result
from grader.reports.pages import render_fragment, render_html
from grader.reports.programs import rings_of, rooflines_of
from grader.reports.terminal import print_exercise
from tests.reports.example_reports import Nesting, exercise, layout_failure, make_report, result
from tests.reports.test_rounds import ring
from tests.timelines import span, timeline

MESH = {"x": 8}


def in_rounds(**more: Any) -> Result:
    """Return the failure of a program that moves data round a ring, with its timeline."""
    matmul = span(COMPUTE, "matmul", 0, 10, line=3, file="f1.py", flops=1 << 30, bytes=1 << 22)
    timed = timeline(matmul, span("x+", "permute", 0, 4, 1, line=4), flops=1 << 30)
    pictures = [
        {"title": "actual timeline", "timeline": asdict(timed), "sent": 1 << 20},
        {"title": "actual rounds", "mesh": [["x", 8]], "rounds": asdict(ring(MESH, "x", 7))},
    ]
    return layout_failure(pictures=json.loads(json.dumps(pictures)), **more)


def test_rings_and_the_roofline_are_shown_alike_wherever_a_report_is_read() -> None:
    one = exercise([in_rounds()])
    screen = Console(file=io.StringIO(), width=100)
    print_exercise(one, screen)
    shown = [Nesting(page).text for page in (render_html(make_report(one)), render_fragment(one))]
    for text in [*shown, screen.file.getvalue()]:  # type: ignore[attr-defined]
        assert "round 7, line 12" in text and "on the rooflines of v5e" in text
        assert "the whole step: 1,024 FLOPs per byte sent, bounded by links" in " ".join(text.split())
    assert 'aria-label="The ring along x' in render_html(make_report(one))


def test_a_timeline_marks_the_time_beyond_its_budget() -> None:
    timed = timeline(span(COMPUTE, "matmul", 0, 10, line=3, file="f1.py"))
    pictures = json.loads(json.dumps([{"title": "actual timeline", "timeline": asdict(timed)}]))
    step = timed.step / 1e12
    late = layout_failure(pictures=pictures, expected=step * 0.8, actual=step)
    page = Nesting(render_html(make_report(exercise([late]))))
    assert "dashed line: the budget is 8 us; the step takes 2 us more" in page.text
    other = late.model_copy(update={"actual": step * 0.9})
    assert "dashed line" not in render_html(make_report(exercise([other])))


def test_a_page_with_rounds_stays_small() -> None:
    whole = len(render_html(make_report(exercise([in_rounds()]))))
    assert whole - len(render_html(make_report(exercise([layout_failure(pictures=[])])))) < 25_000


@pytest.mark.parametrize(
    "broken",
    [
        {"mesh": [["x", 4]]},
        {"mesh": [["y", 8]]},
        {"mesh": None},
        {"mesh": [4, 2]},
        {"rounds": {"axes": ["x"], "lines": [1, 2], "holds": [[0] * 8] * 2}},
        {"rounds": {"axes": ["x"], "lines": [1], "holds": [[0] * 8, [8] * 8]}},
        {"rounds": {"axes": ["x"], "lines": [1], "holds": [[0] * 8, [-1] * 8]}},
        {"rounds": 3},
    ],
)
def test_rounds_that_do_not_fit_their_mesh_are_not_drawn(broken: dict[str, Any]) -> None:
    one = in_rounds()
    one.pictures[1].update(broken)
    assert rings_of(one) == [] and "on which the data started" not in render_html(make_report(exercise([one])))


@pytest.mark.parametrize("sent", [None, -1, math.inf, "much"])
def test_a_step_that_sends_no_number_of_bytes_is_not_drawn(sent: Any) -> None:
    one = in_rounds()
    one.pictures[0]["sent"] = sent
    assert rooflines_of(one) == []


def test_passed_results_have_no_pictures_of_the_program() -> None:
    passed = result("value", pictures=in_rounds().pictures)
    assert rings_of(passed) == [] and rooflines_of(passed) == []
