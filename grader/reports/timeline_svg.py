"""Places of bars, labels and ticks in an SVG picture of timelines.

Several timelines are drawn one below the other on one scale, so that their times can be compared.

Kinds of operations differ in colour (Okabe and Ito's palette), in pattern, and in label. Each of these
differences alone is enough to distinguish the kinds.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grader.clock.timeline import Timeline
from grader.reports.pictures import PALETTE
from grader.reports.timelines import (
    Bar,
    Scale,
    alike,
    bar_word,
    bars,
    cut_text,
    describe_span,
    kinds,
    lane_name,
    letter,
    merged,
    short_us,
    show_us,
    totals,
    where_text,
    word,
)
from grader.reports.untrusted import clean

CHAR = 6.2  # the width of a character of a 10-pixel label
LANE, STRIDE, TICKS, HEAD, GAP = 22.0, 29.0, 16.0, 20.0, 26.0
NOTE = (
    "numbers in bars are lines of the source; bold outlines are on the critical path; "
    "… stands for rounds that are left out"
)
LEAST_BAR = 1.5  # narrower bars are merged with their neighbours
_BLUE, _ORANGE, _GREEN, _PINK, _SKY, _RED, _OLIVE, _GREY = PALETTE
# Each kind's colour, and the lines of its pattern in an 8 x 8 tile as an SVG path; '' is a plain fill.
LOOKS = {
    "matmul": (_GREEN, ""),
    "kernel": (_GREY, "M0 4h8"),
    "permute": (_BLUE, "M0 8L8 0"),
    "all_gather": (_ORANGE, "M2 0v8M6 0v8"),
    "reduce_scatter": (_PINK, "M0 0L8 8"),
    "all_reduce": (_RED, "M0 8L8 0M0 0L8 8"),
    "all_to_all": (_SKY, "M0 4h8M4 0v8"),
    "ragged_all_to_all": (_SKY, "M0 4h4"),
    "broadcast": (_OLIVE, "M0 2h8M0 6h8"),
}


@dataclass(frozen=True)
class Box:
    """A bar of a timeline or a colour sample of the legend, with place and size in the picture's units."""

    x: float
    y: float
    width: float
    height: float
    look: int
    label: str
    text: str
    critical: bool = False
    line: int | None = None
    file: str | None = None


@dataclass(frozen=True)
class Lane:
    name: str
    y: float
    boxes: list[Box]


@dataclass(frozen=True)
class CutMark:
    """The place where rounds of a loop are left out."""

    x: float
    width: float
    text: str


@dataclass(frozen=True)
class LimitMark:
    """The x position where the budget's time ends, and the width of the timeline's part beyond this position."""

    x: float
    width: float
    text: str


@dataclass(frozen=True)
class Panel:
    heading: str
    y: float
    bottom: float
    ticks: list[tuple[float, str]]
    lanes: list[Lane]
    marks: list[CutMark]
    end: float
    limit: LimitMark | None = None


@dataclass(frozen=True)
class Chart:
    """Timelines ready to draw. ``looks``: (colour, pattern) pairs; a box's ``look`` is an index into ``looks``."""

    width: float
    height: float
    left: float
    panels: list[Panel]
    legend: list[Box]
    looks: list[tuple[str, str]]
    ident: str
    alt: str
    details: list[tuple[str, list[str]]]
    notes: list[str]


def draw_chart(timelines: Mapping[str, Timeline], width: float = 760.0, *, limit: float = 0) -> Chart:
    """Place all timelines, each below its heading. A microsecond has equal width in all timelines.

    Args:
        limit: the picoseconds that a step may take; 0 for no limit. A timeline with a longer step shows the limit.
    """
    found = list(timelines.values())
    listed = kinds(found)
    left = round(max(len(lane_name(lane)) for t in found for lane in t.lanes) * CHAR + 10, 1)
    scales = alike(found, width - left - 12, GAP)
    panels: list[Panel] = []
    y = 0.0
    for (heading, timeline), scale in zip(timelines.items(), scales, strict=True):
        panel = _panel(clean(heading, 120), timeline, scale, listed, left, y, width)
        panels.append(replace(panel, limit=_limit(timeline, scale, left, limit)))
        y = panels[-1].bottom + 12
    legend = _legend(listed, width, y + 4)
    notes = textwrap.wrap(NOTE, int((width - 8) / CHAR))
    details = [
        (
            clean(heading, 120),
            [where_text(t), *totals(t), *([f"dashed line: {panel.limit.text}"] if panel.limit else [])],
        )
        for panel, (heading, t) in zip(panels, timelines.items(), strict=True)
    ]
    alt = "; ".join(f"{heading or 'timeline'}: step {show_us(t.step)}" for heading, t in timelines.items())
    alt += "".join(f"; {panel.limit.text}" for panel in panels if panel.limit)
    return Chart(
        width=width,
        height=round(max((b.y + b.height for b in legend), default=y) + 10 + 12 * len(notes), 1),
        left=left,
        panels=panels,
        legend=legend,
        looks=[LOOKS.get(kind, (_GREY, "M0 2h8")) for kind in listed],
        ident="t" + hashlib.sha256(repr((width, panels)).encode()).hexdigest()[:8],
        alt=clean(alt, 600),
        details=details,
        notes=notes,
    )


def _panel(
    heading: str, timeline: Timeline, scale: Scale, listed: Sequence[str], left: float, y: float, width: float
) -> Panel:
    top = y + (HEAD if heading else 2) + TICKS
    lanes = []
    for row, lane in enumerate(timeline.lanes):
        found = merged(bars(timeline, lane, scale), LEAST_BAR)
        at = round(top + row * STRIDE, 1)
        lanes.append(Lane(lane_name(lane), at, [_box(bar, listed, left, at) for bar in found]))
    room = len(short_us(timeline.step)) * CHAR + 24
    return Panel(
        heading=heading,
        y=round(y + 13, 1),
        bottom=round(top + len(lanes) * STRIDE, 1),
        ticks=[
            (round(left + at, 1), short_us(time)) for at, time in scale.ticks(room) if left + at + room < width + 20
        ],
        lanes=lanes,
        marks=[CutMark(round(left + scale.at(c.start), 1), GAP, cut_text(c)) for c in scale.cuts],
        end=round(left + scale.width, 1),
    )


def _limit(timeline: Timeline, scale: Scale, left: float, limit: float) -> LimitMark | None:
    if not 0 < limit < timeline.step:
        return None
    start, end = scale.at(round(limit)), scale.at(timeline.step)
    text = f"the budget is {show_us(round(limit))}; the step takes {show_us(round(timeline.step - limit))} more"
    return LimitMark(round(left + start, 1), round(max(end - start, 1), 1), text)


def _box(bar: Bar, listed: Sequence[str], left: float, y: float) -> Box:
    width = max(bar.end - bar.start, 0.5)
    span = bar.span
    line = f" {span.line}" if span.line else ""
    labels = (bar_word(span.kind) + line, letter(span.kind) + line, letter(span.kind))
    fitting = (t for t in labels if len(t) * CHAR + 4 <= width)
    return Box(
        x=round(left + bar.start, 2),
        y=y,
        width=round(width, 2),
        height=LANE,
        look=listed.index(span.kind),
        label=next(fitting, ""),
        text=describe_span(span),
        critical=bar.critical,
        line=span.line,
        file=span.file,
    )


def _legend(listed: Sequence[str], width: float, y: float) -> list[Box]:
    found: list[Box] = []
    x = 4.0
    for number, kind in enumerate(listed):
        text = f"{letter(kind)} {word(kind)}"
        room = 30 + len(text) * CHAR + 14
        if x + room > width and x > 4:
            x, y = 4.0, y + 20
        found.append(Box(round(x, 1), round(y, 1), 22, 12, number, text, ""))
        x += room
    return found
