"""A timeline on a terminal: with and without colour, narrow, and with ASCII only."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from grader.clock.timeline import COMPUTE
from grader.reports.timeline_text import draw_timelines, print_timeline
from tests.timelines import looped, ring, span, timeline


def printed(drawn: object, width: int = 100, **more: object) -> str:
    console = Console(file=io.StringIO(), width=width, **more)  # type: ignore[arg-type]
    print_timeline(drawn, console)  # type: ignore[arg-type]
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_lanes_show_what_runs_when_and_on_which_line() -> None:
    (lines,) = draw_timelines([ring(3, 80, 42)], 76)
    assert lines == [
        "        │0         │50       │100       │150      │200       │250       │300",
        "compute matmul 14════════matmul 14════════matmul 14════════matmul 14════════",
        "link x+ P13······        P13······        P13······",
    ]


def test_rounds_left_out_are_marked_in_every_lane() -> None:
    (lines,) = draw_timelines([looped()], 76)
    marks = [line.index("…") for line in lines[1:]]
    assert len(lines) == 3 and marks[0] == marks[1]
    assert all(line.count("…") == 3 for line in lines[1:])
    assert "rounds 3 to 7 are left out, because they equal the second round; 40 us each" in " ".join(
        printed(looped(), 200).split()
    )


@pytest.mark.parametrize("width", [20, 40, 80, 300])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for drawn in (ring(), looped(), ring(30, 1, 1), timeline(span(COMPUTE, "kernel", 0, 1))):
        for line in printed(drawn, width).splitlines():
            assert len(line.rstrip()) <= width


def test_without_a_terminal_there_are_no_escapes_and_with_one_there_are_colours() -> None:
    assert "\x1b" not in printed(ring())
    assert "\x1b[" in printed(ring(), force_terminal=True, color_system="standard")
    assert "\x1b[3" not in printed(ring(), force_terminal=True, color_system="standard", no_color=True)


def test_an_ascii_terminal_gets_only_ascii() -> None:
    raw = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    print_timeline(looped(), Console(file=raw, width=60))
    raw.flush()
    text = raw.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]
    assert "permute" in text and "~~~" in text and "?" not in text


def test_two_timelines_have_one_scale() -> None:
    short, long = draw_timelines([ring(3, 10, 20), ring(7, 10, 40)], 76)
    assert max(map(len, long)) > 2.5 * max(map(len, short)) - 20


def test_a_span_shorter_than_a_column_is_seen_beside_long_ones() -> None:
    drawn = timeline(span(COMPUTE, "matmul", 0, 1000), span("x+", "all_reduce", 500, 500.001), step=1000)
    (lines,) = draw_timelines([drawn], 60)
    assert lines[2].strip() == "link x+" + " " * 27 + "R"


def test_an_empty_step_is_drawn() -> None:
    (lines,) = draw_timelines([timeline()], 40)
    assert lines == ["        │0", "compute"]
