"""Timelines as Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

The format is Google's Trace Event Format (2016). It has complete events (``"ph": "X"``) with ``ts`` and ``dur`` in
microseconds, and metadata (``"ph": "M"``) that names processes and threads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from grader.clock.timeline import Timeline
from grader.reports.timelines import US, cut_text, cuts, lane_name, where_text

LEFT_OUT = "left out"


def trace_json(timelines: Mapping[str, Timeline]) -> str:
    """Return a trace with a process for each timeline, a thread for each lane, and a thread for omitted rounds."""
    events = [e for pid, (title, one) in enumerate(timelines.items(), 1) for e in _events(pid, title, one)]
    data = {"displayTimeUnit": "ns", "traceEvents": events}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _events(pid: int, title: str, timeline: Timeline) -> Iterator[dict[str, Any]]:
    yield _named("process_name", pid, 0, f"{title}: {where_text(timeline)}")
    threads = {lane: tid for tid, lane in enumerate(timeline.lanes)}
    for lane, tid in threads.items():
        yield _named("thread_name", pid, tid, lane_name(lane))
        yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}
    for span in timeline.spans:
        args = {"bytes": span.bytes, "flops": span.flops, "file": span.file, "line": span.line}
        args |= {"rounds": [f"{at} of {of}" for at, of in span.rounds], "critical": timeline.on_path(span)}
        shown = {name: value for name, value in args.items() if value or name == "critical"}
        about = {"name": span.what, "cat": span.kind, "args": shown}
        yield about | _while(pid, threads[span.lane], span.start, span.duration)
    if left_out := cuts(timeline):
        tid = len(threads)
        yield _named("thread_name", pid, tid, LEFT_OUT)
        for cut in left_out:
            yield {"name": cut_text(cut), "cat": LEFT_OUT, "args": {}} | _while(
                pid, tid, cut.start, cut.end - cut.start
            )


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _while(pid: int, tid: int, start: int, duration: int) -> dict[str, Any]:
    """Return the common fields of events with a duration. Times in picoseconds become microseconds."""
    return {"ph": "X", "pid": pid, "tid": tid, "ts": start / US, "dur": duration / US}
