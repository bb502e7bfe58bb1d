"""A timeline on a terminal (with and without colour, narrow, with ASCII only), and as a Chrome trace."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from grader.clock.timeline import COMPUTE
from grader.reports.timeline_text import draw_timelines, print_timeline, trace_json
from tests.timelines import US, looped, ring, span, timeline


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


def events(**drawn: Any) -> list[dict[str, Any]]:
    return json.loads(trace_json(drawn))["traceEvents"]


def test_every_span_is_a_complete_event_in_the_thread_of_its_lane() -> None:
    drawn = ring(3, 10, 20)
    found = events(ring=drawn)
    names = {e["tid"]: e["args"]["name"] for e in found if e["name"] == "thread_name"}
    assert names == {0: "compute", 1: "link x+"}
    complete = [e for e in found if e["ph"] == "X"]
    assert [(names[e["tid"]].split()[-1], round(e["ts"] * US), round(e["dur"] * US)) for e in complete] == [
        (s.lane, s.start, s.duration) for s in drawn.spans
    ]
    hop = next(e for e in complete if e["cat"] == "permute")
    assert hop["name"] == "permute over x"
    assert hop["args"] == {"bytes": 1 << 20, "file": "e9.py", "line": 13, "critical": False}


def test_events_of_one_thread_do_not_overlap() -> None:
    complete = [e for e in events(late=looped()) if e["ph"] == "X"]
    for tid in {e["tid"] for e in complete}:
        ends = 0.0
        for e in sorted((e for e in complete if e["tid"] == tid), key=lambda e: e["ts"]):
            assert e["ts"] >= ends - 1e-6
            ends = e["ts"] + e["dur"]


def test_omitted_rounds_have_an_event_that_names_them() -> None:
    found = events(late=looped())
    left_out = [e for e in found if e.get("cat") == "left out"]
    assert [(e["ts"], e["dur"]) for e in left_out] == [(85.0, 200.0)]
    assert "rounds 3 to 7" in left_out[0]["name"]
    assert {"late: v5e 2x4, x on slice axes 0 and 1, profile ideal"} == {
        e["args"]["name"] for e in found if e["name"] == "process_name"
    }


def test_each_timeline_is_a_process() -> None:
    assert {e["pid"] for e in events(a=ring(), b=looped())} == {1, 2}
