"""A timeline as lines of text, readable without colour and at any width, and as Chrome trace JSON.

The text has a lane for the core and one for each link. Perfetto (ui.perfetto.dev) and chrome://tracing open the JSON.
Its format is Google's Trace Event Format (2016). It has complete events (``"ph": "X"``) with ``ts`` and ``dur`` in
microseconds, and metadata (``"ph": "M"``) that names processes and threads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from grader.clock.timeline import Timeline
from grader.reports.paper import Paper
from grader.reports.timelines import (
    US,
    Bar,
    Scale,
    alike,
    bar_word,
    bars,
    cut_text,
    cuts,
    kinds,
    lane_name,
    letter,
    short_us,
    totals,
    where_text,
    word,
)

# The characters that draw bars of matmuls ("matmul"), of other kernels and of collectives (""), idle time, omitted
# rounds ("cut"), and marks of the scale ("tick").
DRAWN = {"matmul": "═", "kernel": "─", "": "·", "idle": " ", "cut": "…", "tick": "│"}
PLAIN = {"matmul": "=", "kernel": "-", "": ".", "idle": " ", "cut": "~", "tick": "|"}
STYLES = {
    "matmul": "bold green", "kernel": "green", "permute": "cyan", "all_gather": "magenta", "reduce_scatter": "yellow",
    "all_reduce": "red", "all_to_all": "blue", "ragged_all_to_all": "blue", "broadcast": "bright_black",
}  # fmt: skip
LEAST, MOST = 12, 160  # narrowest and widest lanes, in terminal columns
GAP = 3

Cells = list[tuple[str, str]]  # (character, kind of span); the kind sets the style
LEFT_OUT = "left out"


def print_timeline(timeline: Timeline, console: Console) -> None:
    """Print the timeline's picture and legend, then the lines that ``totals`` returns."""
    paper = Paper(console)
    print_lanes({f"in time on {where_text(timeline)}": timeline}, console)
    for line in [legend([timeline]), *totals(timeline)]:
        paper.line(paper.text(line), indent=2)


def print_lanes(timelines: Mapping[str, Timeline], console: Console) -> None:
    """Print each timeline's name and lanes. A microsecond has equal width in all timelines."""
    paper = Paper(console)
    lanes = draw_lanes(list(timelines.values()), console.width, ascii_only=paper.ascii)
    for name, drawn in zip(timelines, lanes, strict=True):
        paper.line(paper.text(name, "bold"))
        for cells in drawn:
            line = Text()
            for character, kind in cells:
                line.append(character, STYLES.get(kind, ""))
            line.rstrip()
            console.print(line, no_wrap=True, crop=True, highlight=False)


def draw_lanes(timelines: Sequence[Timeline], width: int, *, ascii_only: bool = False) -> list[list[Cells]]:
    """Return each timeline's scale and lanes. A microsecond has equal width in all timelines."""
    columns = max(LEAST, min(MOST, width - max(map(_margin, timelines))))
    scales = alike(timelines, columns, GAP)
    return [_drawn_lanes(t, s, PLAIN if ascii_only else DRAWN) for t, s in zip(timelines, scales, strict=True)]


def draw_timelines(timelines: Sequence[Timeline], width: int) -> list[list[str]]:
    """Return each timeline's scale and lanes as plain text."""
    return [["".join(c for c, _ in cells).rstrip() for cells in lanes] for lanes in draw_lanes(timelines, width)]


def legend(timelines: Iterable[Timeline]) -> str:
    """Return a text such as ``D matmul, P permute; numbers beside the letters are lines of the code, ...``."""
    names = ", ".join(f"{letter(kind)} {word(kind)}" for kind in kinds(timelines))
    return f"{names}; numbers beside the letters are lines of the code, times are in us"


def _margin(timeline: Timeline) -> int:
    """Return the number of columns that the lanes' names need."""
    return max(len(lane_name(lane)) for lane in timeline.lanes) + 1


def _drawn_lanes(timeline: Timeline, scale: Scale, marks: dict[str, str]) -> list[Cells]:
    """Return a timeline's lines: the scale, then the lanes. Each lane begins with its name."""
    margin, columns = _margin(timeline), max(1, round(scale.width))
    lines = [[(c, "") for c in " " * margin + _scale_line(scale, columns, marks)]]
    for lane in timeline.lanes:
        head: Cells = [(c, "") for c in lane_name(lane).ljust(margin)]
        lines.append(head + _lane(bars(timeline, lane, scale), scale, columns, marks))
    return lines


def _scale_line(scale: Scale, columns: int, marks: dict[str, str]) -> str:
    """Return the scale's line. A tick's time is to its right. A tick without room for its time is left out."""
    line = ""
    for place, time in scale.ticks(len(short_us(scale.step)) + 3):
        text = marks["tick"] + short_us(time)
        at = round(place)
        if at >= len(line) and (at + len(text) <= columns or not line):
            line = line.ljust(at) + text
    return line


def _lane(found: Sequence[Bar], scale: Scale, columns: int, marks: dict[str, str]) -> Cells:
    cells: Cells = [(marks["idle"], "")] * columns
    for bar in sorted(found, key=lambda b: b.start - b.end):  # draw short bars last, because long bars would cover them
        first = min(round(bar.start), columns - 1)
        room = max(1, min(round(bar.end), columns) - first)
        cells[first : first + room] = [(c, bar.span.kind) for c in _bar(bar, room, marks)]
    for cut in scale.cuts:
        first = round(scale.at(cut.start))
        cells[first : first + GAP] = [(marks["cut"], "")] * len(cells[first : first + GAP])
    return cells


def _bar(bar: Bar, room: int, marks: dict[str, str]) -> str:
    """Return a bar as text of ``room`` columns: the operation's kind and line if there is room, else a letter."""
    span = bar.span
    fill = marks.get(span.kind, marks[""])
    line = f" {span.line}" if span.line else ""
    text = next(
        (t for t in (bar_word(span.kind) + line, letter(span.kind) + line.strip()) if len(t) < room), letter(span.kind)
    )
    return text.ljust(room, fill) if len(text) <= room else text[:room]


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
