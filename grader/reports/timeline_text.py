"""A timeline as lines of text: a lane for the core and one for each link, readable without colour and at any width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from grader.clock.timeline import Timeline
from grader.reports.paper import Paper
from grader.reports.timelines import (
    Bar,
    Scale,
    alike,
    bars,
    kinds,
    lane_name,
    letter,
    scaled,
    short_us,
    totals,
    where_text,
    word,
)

# Fills of matrix products, of other kernels, of collectives; nothing; what is left out; a corner of the scale.
DRAWN = {"product": "═", "kernel": "─", "": "·", "idle": " ", "cut": "…", "tick": "│"}
PLAIN = {"product": "=", "kernel": "-", "": ".", "idle": " ", "cut": "~", "tick": "|"}
STYLES = {
    "product": "bold green", "kernel": "green", "permute": "cyan", "all_gather": "magenta", "reduce_scatter": "yellow",
    "all_reduce": "red", "all_to_all": "blue", "ragged_all_to_all": "blue", "broadcast": "bright_black",
}  # fmt: skip
LEAST, MOST = 12, 160  # columns of the lanes
GAP = 3

Cells = list[tuple[str, str]]  # a character and the kind whose style it has


def print_timeline(timeline: Timeline, console: Console) -> None:
    """The picture with its legend and, below, what it comes to in words."""
    paper = Paper(console)
    paper.line(paper.text(f"in time on {where_text(timeline)}", "bold"))
    columns = max(LEAST, min(MOST, console.width - _margin(timeline)))
    _print_cells(drawn_lanes(timeline, scaled(timeline, columns, GAP), ascii_only=paper.ascii), console)
    for line in [legend(timeline), *totals(timeline)]:
        paper.line(paper.text(line), indent=2)


def print_lanes(timelines: Mapping[str, Timeline], console: Console) -> None:
    """The lanes of each under its name; a microsecond is as wide in all of them."""
    paper = Paper(console)
    found = list(timelines.values())
    columns = max(LEAST, min(MOST, console.width - max(map(_margin, found))))
    for (name, timeline), scale in zip(timelines.items(), alike(found, columns, GAP), strict=True):
        paper.line(paper.text(name, "bold"))
        _print_cells(drawn_lanes(timeline, scale, ascii_only=paper.ascii), console)


def _print_cells(lanes: Sequence[Cells], console: Console) -> None:
    for cells in lanes:
        line = Text()
        for character, kind in cells:
            line.append(character, STYLES.get(kind, ""))
        line.rstrip()
        console.print(line, no_wrap=True, crop=True, highlight=False)


def draw_timelines(timelines: Sequence[Timeline], width: int, *, ascii_only: bool = False) -> list[list[str]]:
    """The lanes of each under their scale, as plain text; a microsecond is as wide in all of them."""
    columns = max(LEAST, min(MOST, width - max(map(_margin, timelines))))
    scales = alike(timelines, columns, GAP)
    drawn = (drawn_lanes(t, s, ascii_only=ascii_only) for t, s in zip(timelines, scales, strict=True))
    return [["".join(c for c, _ in cells).rstrip() for cells in lanes] for lanes in drawn]


def legend(timeline: Timeline) -> str:
    """``D matrix product, P permute; numbers beside them are lines, times are in us``."""
    names = ", ".join(f"{letter(kind)} {word(kind)}" for kind in kinds([timeline]))
    return f"{names}; numbers beside them are lines, times are in us"


def _margin(timeline: Timeline) -> int:
    """Columns for the lanes' names."""
    return max(len(lane_name(lane)) for lane in timeline.lanes) + 1


def drawn_lanes(timeline: Timeline, scale: Scale, *, ascii_only: bool) -> list[Cells]:
    """The scale, then the lanes, each behind its name."""
    marks = PLAIN if ascii_only else DRAWN
    margin, columns = _margin(timeline), max(1, round(scale.width))
    lines = [[(c, "") for c in " " * margin + _scale_line(scale, columns, marks)]]
    for lane in timeline.lanes:
        head: Cells = [(c, "") for c in lane_name(lane).ljust(margin)]
        lines.append(head + _lane(bars(timeline, lane, scale), scale, columns, marks))
    return lines


def _scale_line(scale: Scale, columns: int, marks: dict[str, str]) -> str:
    """Ticks with their times to the right of them, each where it has room."""
    line = ""
    for place, time in scale.ticks(len(short_us(scale.step)) + 3):
        text = marks["tick"] + short_us(time)
        at = round(place)
        if at >= len(line) and (at + len(text) <= columns or not line):
            line = line.ljust(at) + text
    return line


def _lane(found: Sequence[Bar], scale: Scale, columns: int, marks: dict[str, str]) -> Cells:
    cells: Cells = [(marks["idle"], "")] * columns
    for bar in sorted(found, key=lambda b: b.start - b.end):  # short ones last, so that they are seen
        first = min(round(bar.start), columns - 1)
        room = max(1, min(round(bar.end), columns) - first)
        cells[first : first + room] = [(c, bar.span.kind) for c in _bar(bar, room, marks)]
    for cut in scale.cuts:
        first = round(scale.at(cut.start))
        cells[first : first + GAP] = [(marks["cut"], "")] * len(cells[first : first + GAP])
    return cells


def _bar(bar: Bar, room: int, marks: dict[str, str]) -> str:
    """Kind and line where they have room, else the kind's letter; the rest is filled."""
    span = bar.span
    fill = marks.get(span.kind, marks[""])
    line = f" {span.line}" if span.line else ""
    text = next((t for t in (span.kind + line, letter(span.kind) + line.strip()) if len(t) < room), letter(span.kind))
    return text.ljust(room, fill) if len(text) <= room else text[:room]
