"""Timelines as Chrome trace JSON that Perfetto can open."""

from __future__ import annotations

import json
from typing import Any

from grader.reports.trace import trace_json
from tests.timelines import US, looped, ring


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
