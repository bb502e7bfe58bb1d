"""Reports for people: terminal, HTML, CSV, and the summary of a class.

All text in a report may come from a learner. It passes ``clean`` once, on its way out: the
template environment applies it to every string a template prints (and escapes it), ``_Paper.text``
to every string for a terminal (as plain ``rich.text.Text``, never as markup), and ``csv_cell`` to
every cell. What only staff may see is taken away by ``for_student``, before any renderer looks.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
import statistics
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.common.files import write_atomic
from grader.common.layout import coordinates, show_device
from grader.common.result import ExerciseReport, Report, Result
from grader.common.text import A_LINK

Audience = Literal["student", "staff"]

PENDING = "{} pending: the grader itself failed there, a person will look"
BLOCKED = "an earlier check that this one needs did not pass"

# -- untrusted text ----------------------------------------------------------------------------

# What a terminal would obey: CSI (colours, cursor), OSC (titles, links; up to its end or the
# line's) and the two-character escapes.
_ANSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")
_HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs"}  # controls, bidi and zero-width, unassigned, private, lone surrogates


def clean(text: object, limit: int = 2000) -> str:
    """One line of visible characters, at most ``limit`` of them.

    Escape sequences, control characters, bidirectional overrides and other invisible characters
    are removed; white space, line ends included, becomes single spaces.
    """
    raw = str(text)[: 8 * limit]  # bounds the work, too
    visible = (c for c in _ANSI.sub("", raw) if c.isspace() or unicodedata.category(c) not in _HIDDEN)
    seen = " ".join("".join(visible).split())
    return seen if len(seen) <= limit else seen[: limit - 1] + "…"


def csv_cell(value: object, limit: int = 500) -> str | int | float:
    """A cell that no spreadsheet takes for a formula; numbers stay numbers."""
    if isinstance(value, int | float):
        return _tidy(value)
    raw = str(value)
    text = clean(raw, limit)
    if re.fullmatch(r"-?\d+(\.\d+)?", text, re.ASCII):
        return text
    # Spreadsheets fold full-width signs (U+FF1D and others) to ASCII ones.
    first = {raw[:1], unicodedata.normalize("NFKC", text[:1])}
    return "'" + text if first & set("=+-@\t\r") else text


def _tidy(number: float) -> int | float:
    """Without the dust of floating-point sums, and without a useless ``.0``."""
    if not math.isfinite(number):
        return number
    short = round(number, 4)
    return int(short) if short == int(short) else short


def show_data(value: Any, limit: int = 300) -> str:
    """Expected or actual data on one line."""
    if isinstance(value, dict):
        value = ", ".join(f"{k}: {show_data(v, limit)}" for k, v in list(value.items())[:limit]) or "none"
    elif not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return clean(value, limit)


def _percent(earned: float, points: float) -> float:
    return round(100 * earned / points, 2) if points > 0 else 0.0


def _score(earned: float, points: float) -> str:
    return f"{_tidy(earned)} / {_tidy(points)}"


def _short_score(earned: float, points: float) -> str:
    return f"{_tidy(earned)}/{_tidy(points)}"


def _counted(number: float, noun: str) -> str:
    return f"{_tidy(number)} {noun}" + ("" if number == 1 else "s")


def _pending(points: float) -> str:
    return PENDING.format(f"{_counted(points, 'point')} {'is' if points == 1 else 'are'}")


# -- who may see what --------------------------------------------------------------------------


def _exercise_for(exercise: ExerciseReport, audience: Audience) -> ExerciseReport:
    return exercise if audience == "staff" else exercise.for_student()


def _report_for(report: Report, audience: Audience) -> Report:
    return report if audience == "staff" else report.for_student()


def _word(result: Result, audience: Audience) -> str:
    """Students read what a broken check means for them: its points are pending."""
    return "pending" if result.status == "broken" and audience == "student" else result.status


def _reason(result: Result) -> str:
    return result.reason or (BLOCKED if result.status == "blocked" else "")


def _where(result: Result) -> str:
    """The place, unless the reason says it already."""
    return "" if result.where in result.reason else f"at {result.where}"


# -- layouts -----------------------------------------------------------------------------------


class Picture(BaseModel):
    """A layout to draw: the part ``(start, stop)`` of every dimension that each device holds."""

    title: str
    mesh: dict[str, Annotated[int, Field(ge=1)]]
    shape: list[Annotated[int, Field(ge=1)]]
    slices: list[list[tuple[int, int]]]

    @field_validator("mesh", mode="before")
    @classmethod
    def _pairs(cls, mesh: Any) -> Any:
        return dict(mesh) if isinstance(mesh, list) else mesh  # pairs survive the sorting of keys in a file

    @model_validator(mode="after")
    def _fits(self) -> Picture:
        if math.prod(self.mesh.values()) != len(self.slices) or len(self.slices) > 4096:
            raise ValueError("one entry of `slices` per device, at most 4096 devices")
        for part in self.slices:
            for (start, stop), size in zip(part, self.shape, strict=True):
                if not 0 <= start < stop <= size:
                    raise ValueError(f"{start}:{stop} is no part of a dimension of {size}")
        return self

    @property
    def heading(self) -> str:
        """The title, as said to the learner: what is actual is theirs."""
        return "yours" + self.title.removeprefix("actual") if self.title.startswith("actual") else self.title

    @property
    def caption(self) -> str:
        """``24 × 40 on mesh x=4, y=2``, and what is not drawn of it."""
        mesh = ", ".join(f"{a}={n}" for a, n in self.mesh.items())
        text = f"{' × '.join(map(str, self.shape)) or 'scalar'} on mesh {mesh}"
        drawn = drawn_dims(self)
        if len(self.shape) > 2:
            text += f"; drawn: dimensions {drawn[0]} and {drawn[1]}"
        more = [d for d in _cut_dims(self) if d not in drawn]
        return text + "".join(f"; dimension {d} is cut too" for d in more)


@dataclass(frozen=True)
class Block:
    """A part of the drawn dimensions, and the devices that hold it."""

    rows: tuple[int, int]
    cols: tuple[int, int]
    devices: tuple[int, ...]


def pictures(result: Result) -> list[Picture]:
    """The pictures of a failed result, expected first; what cannot be drawn is left out."""
    if result.status != "failed":
        return []
    found = [p for p in map(_picture, result.pictures[:8]) if p]
    return sorted(found, key=lambda p: not p.title.startswith("expected"))


def _picture(raw: dict[str, Any]) -> Picture | None:
    try:
        return Picture.model_validate(raw)
    except (TypeError, ValueError):  # pydantic's error is a ValueError
        return None


def _data_pairs(result: Result) -> list[tuple[str, str]]:
    """Expected and actual data as text, where a failed result has any."""
    pairs = (("expected", result.expected), ("yours", result.actual), ("for staff", result.staff or None))
    return [(name, show_data(data)) for name, data in pairs if result.status == "failed" and data is not None]


def _cut_dims(picture: Picture) -> list[int]:
    whole = [(0, n) for n in picture.shape]
    return [d for d in range(len(whole)) if any(part[d] != whole[d] for part in picture.slices)]


def drawn_dims(picture: Picture) -> list[int]:
    """At most two dimensions: the first that are cut, then the first of the others."""
    cut = _cut_dims(picture)
    rest = [d for d in range(len(picture.shape)) if d not in cut]
    return sorted((cut + rest)[:2])


def blocks(picture: Picture) -> list[Block]:
    """The distinct blocks of the drawn dimensions, from the top left."""
    dims = drawn_dims(picture)
    held: dict[tuple, list[int]] = defaultdict(list)
    for device, part in enumerate(picture.slices):
        seen = [part[d] for d in dims]
        rows, cols = [(0, 1)] * (2 - len(seen)) + seen  # a vector lies in one row
        held[rows, cols].append(device)
    return [Block(rows, cols, tuple(devices)) for (rows, cols), devices in sorted(held.items())]


def holders(picture: Picture, devices: tuple[int, ...]) -> list[str]:
    """Who holds a block, one short word per mesh axis: ``["x=1", "y=0..1"]``."""
    points = [coordinates(picture.mesh)[d] for d in devices]
    if len(points) == len(picture.slices) > 1:
        return ["all", f"{len(points)} devices"]
    spans = {axis: sorted({p[axis] for p in points}) for axis in picture.mesh}
    if math.prod(map(len, spans.values())) != len(points):  # no full sub-mesh: nothing short to say
        return [f"{len(points)} devices"]
    return [f"{axis}={_span(at)}" for axis, at in spans.items()]


def _span(at: list[int]) -> str:
    if len(at) > 1 and at[-1] - at[0] == len(at) - 1:
        return f"{at[0]}..{at[-1]}"
    return ",".join(map(str, at))


def describe(picture: Picture) -> list[tuple[str, str]]:
    """The picture in words: each block's range and the devices that hold it."""
    dims = len(drawn_dims(picture))
    return [
        (
            "[" + ", ".join(f"{a}:{b}" for a, b in (block.rows, block.cols)[2 - dims :]) + "]",
            _device_names(picture, block.devices),
        )
        for block in blocks(picture)
    ]


def _device_names(picture: Picture, devices: tuple[int, ...]) -> str:
    short = holders(picture, devices)
    if len(devices) == len(picture.slices) > 1:
        return " ".join(short)
    if len(devices) == 1:
        return show_device(coordinates(picture.mesh)[devices[0]])
    if "=" in short[0]:
        return f"{len(devices)} devices: {', '.join(short)}"
    return ", ".join(show_device(coordinates(picture.mesh)[d]) for d in devices[:16])


# -- terminal ----------------------------------------------------------------------------------

_MARKS = {"passed": ("✓", "+"), "failed": ("✗", "x"), "blocked": ("–", "-"), "broken": ("!", "!")}
_COLOURS = {"passed": "green", "failed": "red", "blocked": "bright_black", "broken": "yellow"}
_ASCII = str.maketrans({"×": "x", "·": "*", "–": "-", "—": "-", "…": "...", "‘": "'", "’": "'", "“": '"', "”": '"'})
_LINES = str.maketrans("┌┬┐├┼┤└┴┘─│", "+++++++++-|")


@dataclass(frozen=True)
class _Paper:
    """A console, and whether it can show more than ASCII."""

    console: Console

    @property
    def ascii(self) -> bool:
        return not self.console.encoding.lower().startswith("utf")

    def text(self, text: object, style: str = "", limit: int = 2000) -> Text:
        """Plain text, cleaned: markup and escapes in it mean nothing."""
        return Text(self.fit(clean(text, limit)), style=style, overflow="fold")

    def fit(self, text: str) -> str:
        """The same text with what the console can encode; also for text with drawn lines."""
        if not self.ascii:
            return text
        simple = unicodedata.normalize("NFKD", text.translate(_ASCII).translate(_LINES))
        return "".join(c for c in simple if not unicodedata.combining(c)).encode("ascii", "replace").decode()

    def line(self, *parts: Text, indent: int = 0) -> None:
        self.console.print(Padding(Text("", overflow="fold").join(parts), (0, 0, 0, indent), expand=False))


def print_report(report: Report, console: Console, *, audience: Audience = "student") -> None:
    """The report on a terminal: a heading per exercise, a line per result, the score last."""
    paper = _Paper(console)
    report = _report_for(report, audience)
    for exercise in report.exercises:
        _print_exercise(paper, exercise, audience)
    for note in report.notes[:50]:
        paper.line(paper.text(f"note: {note}", "italic"))
    _print_score(paper, report)


def print_exercise(exercise: ExerciseReport, console: Console) -> None:
    """One exercise as its learner reads it, and its score."""
    paper, shown = _Paper(console), _exercise_for(exercise, "student")
    _print_exercise(paper, shown, "student")
    _print_score(paper, shown)


def _print_score(paper: _Paper, scored: Report | ExerciseReport) -> None:
    percent = _tidy(round(_percent(scored.earned, scored.points), 1))
    paper.line(paper.text(f"Score: {_score(scored.earned, scored.points)} ({percent}%)", "bold"))
    if scored.pending > 0:
        paper.line(paper.text(_pending(scored.pending), "yellow"))


def _print_exercise(paper: _Paper, exercise: ExerciseReport, audience: Audience) -> None:
    score = f"  {_short_score(exercise.earned, exercise.points)}"
    paper.line(paper.text(exercise.title, "bold", 200), Text(score, style="bold cyan"))
    if not exercise.handed_in:
        paper.line(paper.text("nothing was handed in for this exercise"), indent=2)
        return
    for result in exercise.results:
        _print_result(paper, result, audience)
    for note in exercise.notes[:50]:
        paper.line(paper.text(f"note: {note}", "italic"), indent=4)
    paper.console.print()


def _print_result(paper: _Paper, result: Result, audience: Audience) -> None:
    colour = _COLOURS[result.status]
    mark = _MARKS[result.status][paper.ascii]
    row = Table.grid(padding=(0, 1, 0, 0))  # a label of several lines hangs beside its mark
    worth = Text(f"  {_short_score(result.earned, result.points)}", style="bright_black")
    row.add_row(Text(mark, style=f"bold {colour}"), paper.text(result.label, limit=400).append_text(worth))
    paper.console.print(Padding(row, (0, 0, 0, 2), expand=False))
    if result.status == "passed":
        return
    if audience == "staff" and not result.public:
        paper.line(paper.text("hidden check", "bright_black"), indent=4)
    if _reason(result):
        paper.line(paper.text(_reason(result), colour), indent=4)
    if result.hint:
        paper.line(paper.text(f"hint: {result.hint}", "cyan"), indent=4)
    if _where(result):
        paper.line(paper.text(_where(result), "bright_black", 200), indent=4)
    for name, data in _data_pairs(result):
        paper.line(paper.text(f"{name + ':':<9} {data}"), indent=4)
    _print_pictures(paper, pictures(result))


def _print_pictures(paper: _Paper, shown: list[Picture]) -> None:
    """Side by side where the console is wide enough, else one below the other."""
    room = paper.console.width - 4
    drawn = [_drawing(p, room) for p in shown]
    wide = [max(map(len, lines)) for lines in drawn]
    if drawn and sum(wide) + 4 * (len(wide) - 1) <= room:
        rows = zip_longest(*drawn, fillvalue="")
        drawn = [["    ".join(part.ljust(w) for part, w in zip(row, wide, strict=True)).rstrip() for row in rows]]
    for lines in drawn:
        for line in lines:
            paper.line(Text(paper.fit(line)), indent=4)


def _drawing(picture: Picture, room: int) -> list[str]:
    """The layout as lines of text: a grid with one-line labels, a tighter grid, or a list."""
    head = [f"{clean(picture.heading, 60)}:", clean(picture.caption, 200)]
    parts = {(b.rows, b.cols): [clean(w, 40) for w in holders(picture, b.devices)] for b in blocks(picture)}
    rows, cols = (sorted({key[i] for key in parts}) for i in (0, 1))
    if len(parts) == len(rows) * len(cols) <= 64:
        for separator in (" " if next(iter(parts.values()))[0] == "all" else ", ", None):
            cells = {k: [separator.join(words)] if separator else words for k, words in parts.items()}
            grid = _grid(rows, cols, cells, drawn_dims(picture))
            if max(map(len, grid)) <= room:
                return head + grid
    listed = [f"{part}: {clean(who, 100)}" for part, who in describe(picture)]
    return head + listed[:16] + ([f"and {len(listed) - 16} more blocks"] if len(listed) > 16 else [])


def _grid(rows: list, cols: list, cells: dict[tuple, list[str]], dims: list[int]) -> list[str]:
    """Boxes with their bounds along the top and, for two dimensions, down the left side."""
    width = max([len(line) for lines in cells.values() for line in lines] + [len(str(c[1])) for c in cols]) + 2
    height = max(map(len, cells.values()))
    bounds = [str(r[0]) for r in rows] + [str(rows[-1][1])] if len(dims) == 2 else [""] * (len(rows) + 1)
    margin = max(map(len, bounds)) + (1 if len(dims) == 2 else 0)
    ticks = "".join(f"{c[0]!s:<{width + 1}}" for c in cols) + str(cols[-1][1])
    lines = [" " * margin + ticks] if dims else []
    for i, row in enumerate(rows):
        edges = "┌┬┐" if i == 0 else "├┼┤"
        lines.append(_edge(bounds[i], margin, edges, width, len(cols)))
        for k in range(height):
            texts = (cells[row, col][k] if k < len(cells[row, col]) else "" for col in cols)
            lines.append(" " * margin + "│" + "│".join(t.center(width) for t in texts) + "│")
    return [*lines, _edge(bounds[-1], margin, "└┴┘", width, len(cols))]


def _edge(bound: str, margin: int, corners: str, width: int, count: int) -> str:
    left, middle, right = corners
    return f"{bound + ' ' if bound else '':>{margin}}" + left + middle.join(["─" * width] * count) + right


# -- HTML --------------------------------------------------------------------------------------

# Devices keep their colour from one picture to the next (Okabe and Ito's palette: safe for the
# colour-blind). Laid on thinly, it goes with a light and with a dark page.
_PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7a7a7a")

# The fragment's looks: it lives in pages that are not ours, so it brings its own and is legible on
# any ground. In the page, the same names are classes.
_PILL = "display:inline-block;white-space:nowrap;border-radius:1em;padding:0 .6em;font-size:.85em;font-weight:600;"
_BOX = "margin:.4em 0;padding:.45em .75em;border-radius:4px;"
_INLINE = {
    "exercise": "margin:1em 0;font-family:system-ui,sans-serif;line-height:1.5;max-width:60em",
    "exercise-head": "display:flex;flex-wrap:wrap;align-items:baseline;justify-content:space-between;margin:0 0 .5em",
    "exercise-title": "margin:0;font-size:1.2em",
    "exercise-score": "font-weight:700;white-space:nowrap",
    "results": "border-collapse:collapse;width:100%;color:inherit;font:inherit",
    "offscreen": "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap",
    "row": "background:transparent;border-top:1px solid rgba(128,128,128,.35)",
    "status": "text-align:left;vertical-align:top;padding:.5em .75em .5em 0;width:1%",
    "what": "text-align:left;vertical-align:top;padding:.5em .75em .5em 0",
    "worth": "text-align:right;vertical-align:top;padding:.5em 0;white-space:nowrap;width:1%",
    "pill passed": _PILL + "background:#d5f2dc;color:#0b5a23",
    "pill failed": _PILL + "background:#fde0dd;color:#9b1c13",
    "pill blocked": _PILL + "background:#e4e6ea;color:#454b54",
    "pill broken": _PILL + "background:#fdeec2;color:#6b4a00",
    "tag": "font-size:.75em;opacity:.75;border:1px solid;border-radius:3px;padding:0 .35em;margin-left:.4em",
    "label": "font-weight:600",
    "reason": "margin:.25em 0",
    "where": "opacity:.7;white-space:nowrap",
    "hint": _BOX + "background:#fff4d6;color:#4a3500",
    "note": _BOX + "background:#e4e6ea;color:#2b3038",
    "pending-note": _BOX + "background:#fdeec2;color:#5c4000",
    "data": "display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;margin:.4em 0;font-size:.9em",
    "datum": "margin:0",
    "pictures": "display:flex;flex-wrap:wrap;gap:1em 2em;margin:.75em 0",
    "picture": "margin:0;min-width:0;max-width:100%;overflow-x:auto",
    "picture-title": "font-size:.9em",
    "picture-caption": "font-size:.8em;opacity:.8",
    "holders": "font-size:.8em",
}


def render_html(report: Report, *, audience: Audience = "student") -> str:
    """One page with nothing outside it: no scripts, no fonts, no images to fetch."""
    report = _report_for(report, audience)
    return _environment().get_template("report.html").render(report=report, audience=audience, look=_class, heading=2)


def render_fragment(exercise: ExerciseReport, *, audience: Audience = "student") -> str:
    """One exercise as an HTML fragment with inline styles, for a notebook's output."""
    template = _environment().get_template("exercise.html")
    return template.render(exercise=_exercise_for(exercise, audience), audience=audience, look=_inline, heading=3)


def _class(name: str) -> Markup:
    return Markup('class="{}"').format(name)


def _inline(name: str) -> Markup:
    return Markup('style="{}"').format(_INLINE[name])


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(
        word=_word,
        reason=_reason,
        where=_where,
        pictures=pictures,
        drawing=_svg,
        describe=describe,
        data_pairs=_data_pairs,
    )
    environment.globals.update(score=_score, percent=_percent, counted=_counted, pending_text=_pending)
    environment.globals.update(page_name=page_name, quote=quote, show_percent=show_percent, notes_of=_notes)
    environment.filters.update(prose=_prose, tidy=_tidy, clean=clean)
    for name in environment.list_templates(extensions=["html"]):
        environment.get_template(name)
    return environment


def load_templates() -> None:
    """Compile the templates now. To do so while other threads parse can fail, see ``syntax.parse``."""
    _environment()


def _finalize(value: Any) -> Any:
    """Every string a template prints is cleaned here; escaping follows."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _prose(text: str, limit: int = 2000) -> Markup:
    """Escaped text, in which `code` between backticks is set as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(clean(text, limit)))))


@dataclass(frozen=True)
class _Cell:
    """One block of an SVG picture, in its units."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    lines: list[str]
    text: str


@dataclass(frozen=True)
class _Svg:
    """A picture ready to draw: the array's rectangle at (left, top), bounds along two sides."""

    width: float
    height: float
    left: float
    top: float
    cells: list[_Cell]
    columns: list[tuple[float, int]]
    rows: list[tuple[float, int]]
    stroke: float
    labelled: bool
    alt: str


_CHAR, _LINE, _PAD = 6.7, 14, 12  # of an 11-pixel label: a character's width, a line's height, room around it
_LARGEST = 740.0


def _svg(picture: Picture) -> _Svg:
    """Place the blocks to scale, large enough for their labels where that is possible."""
    parts = blocks(picture)
    labels = [_label_lines(picture, b.devices) for b in parts]
    dims = drawn_dims(picture)
    row_cuts, col_cuts = (sorted({n for b in parts for n in getattr(b, side)}) for side in ("rows", "cols"))
    rows, cols = row_cuts[-1], col_cuts[-1]
    width, height = _size(parts, labels, rows, cols, flat=len(dims) < 2)
    labelled = width <= _LARGEST and height <= _LARGEST
    if not labelled:
        width, height = _size(parts, [], rows, cols, flat=len(dims) < 2)
    left, top = (len(str(rows)) * _CHAR + 8 if len(dims) == 2 else 4), (18 if dims else 2)
    cells = [
        _Cell(
            x=round(left + width * b.cols[0] / cols, 1),
            y=round(top + height * b.rows[0] / rows, 1),
            width=round(width * (b.cols[1] - b.cols[0]) / cols, 1),
            height=round(height * (b.rows[1] - b.rows[0]) / rows, 1),
            colour=_PALETTE[b.devices[0] % len(_PALETTE)],
            lines=_joined(lines, width * (b.cols[1] - b.cols[0]) / cols) if labelled else [],
            text=_device_names(picture, b.devices),
        )
        for b, lines in zip(parts, labels, strict=True)
    ]
    held = "; ".join(f"{part} on {who}" for part, who in describe(picture)[:64])
    return _Svg(
        width=round(left + width + 4 + len(str(cols)) * _CHAR / 2, 1),
        height=round(top + height + 8, 1),
        left=round(left, 1),
        top=top,
        cells=cells,
        columns=_ticks(col_cuts, left, width, _CHAR * len(str(cols)) + 4) if dims else [],
        rows=_ticks(row_cuts, top, height, 12) if len(dims) == 2 else [],
        stroke=round(min([1.0, *(side / 8 for c in cells for side in (c.width, c.height))]), 2),
        labelled=labelled,
        alt=f"{clean(picture.heading, 100)}: array {picture.caption}. {held}",
    )


def _size(parts: list[Block], labels: list[list[str]], rows: int, cols: int, flat: bool) -> tuple[float, float]:
    """Width and height of the array: about its own shape, then stretched until the smallest block has room."""
    need_w = max((len(line) for lines in labels for line in lines), default=0) * _CHAR + _PAD
    need_h = max(map(len, labels), default=0) * _LINE + _PAD
    width = 250.0
    height = 44.0 if flat else max(width * min(rows / cols, 0.75), 96)
    if labels:
        width = max(width, need_w * cols / min(b.cols[1] - b.cols[0] for b in parts))
        height = max(height, need_h * rows / min(b.rows[1] - b.rows[0] for b in parts))
    return width, height


def _joined(lines: list[str], room: float) -> list[str]:
    """One device's name on one line, where that fits."""
    whole = " ".join(lines)
    return [whole] if whole.startswith("(") and len(whole) * _CHAR + _PAD / 2 <= room else lines


def _label_lines(picture: Picture, devices: tuple[int, ...]) -> list[str]:
    """A block's label: ``(x=1, y=0)``, or the fixed axes above ``2 devices: y=0..1``."""
    words = [clean(w, 40) for w in holders(picture, devices)]
    if len(devices) == len(picture.slices) > 1:
        return [" ".join(words)]
    if len(devices) == 1:
        return _wrapped("(" + ", ".join(words) + ")", many=len(picture.slices) > 4)
    fixed = [w for w in words if "=" in w and ".." not in w and "," not in w]
    spread = [w for w in words if w not in fixed and "=" in w]
    count = f"{len(devices)} devices"
    return [*([", ".join(fixed)] if fixed else []), *([f"{count}:", ", ".join(spread)] if spread else [count])]


def _wrapped(label: str, many: bool) -> list[str]:
    """On a large mesh, one axis a line keeps the blocks narrow."""
    words = label.split(" ")
    return words if many else [label]


def _ticks(cuts: list[int], start: float, length: float, gap: float) -> list[tuple[float, int]]:
    """Where the bounds are written: both ends, and between them those that have room."""
    placed = [(round(start + length * cut / cuts[-1], 1), cut) for cut in cuts]
    ticks = placed[:1]
    for tick in placed[1:-1]:
        if tick[0] - ticks[-1][0] >= gap and placed[-1][0] - tick[0] >= gap:
            ticks.append(tick)
    return [*ticks, placed[-1]]


# -- CSV ---------------------------------------------------------------------------------------


def write_grades_csv(reports: Iterable[Report], path: str | os.PathLike[str]) -> None:
    """One line per submission, ordered by student; one column per exercise, in course order.

    A cell is empty where a submission has no such exercise.
    """
    ordered = _ordered(reports)
    names = list(dict.fromkeys(e.exercise for r in ordered for e in r.exercises))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header = ["student", *names, "earned", "points", "percent", "pending", "notes"]
    writer.writerow([csv_cell(name) for name in header])
    for report in ordered:
        writer.writerow([csv_cell(value) for value in _grades(report, names)])
    write_atomic(path, text.getvalue())


def _grades(report: Report, names: list[str]) -> list[object]:
    earned = {e.exercise: e.earned for e in report.exercises}
    percent = _percent(report.earned, report.points)
    totals = [report.earned, report.points, percent, report.pending, _notes(report)]
    return [report.student, *(earned.get(name, "") for name in names), *totals]


def _notes(report: Report) -> int:
    return len(report.notes) + sum(len(e.notes) for e in report.exercises)


def _ordered(reports: Iterable[Report]) -> list[Report]:
    return sorted(reports, key=lambda r: (r.student, r.fingerprint, r.dumps()))


# -- the class ---------------------------------------------------------------------------------


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AssignmentRate(_Row):
    """How a class did on one module: ``mean`` is a percentage of those who handed it in, None without any."""

    module: str
    submissions: int
    handed_in: int
    mean: float | None
    full: int


class Attention(_Row):
    """A student whom a person must look after, and why."""

    student: str
    reason: str


class ExerciseRate(_Row):
    """How a class did on one exercise: mean percent, and how many have full marks."""

    exercise: str
    title: str
    submissions: int
    mean: float
    full: int


class CheckRate(_Row):
    """How many passed one check, of those who handed the exercise in.

    ``rate`` is a percentage of those judged: broken ones are left out.
    """

    exercise: str
    name: str
    label: str
    public: bool
    passed: int
    failed: int
    blocked: int
    broken: int
    rate: float | None


class MisconceptionCount(_Row):
    """How many students have one misconception."""

    exercise: str
    name: str
    hint: str
    students: int


class BrokenResult(_Row):
    """A result a person must look at, because the grader failed."""

    student: str
    exercise: str
    name: str
    label: str
    points: float
    reason: str


class Summary(_Row):
    """A class: ``mean`` to ``maximum`` are percentages, None without submissions.

    ``attention`` is who needs a person, ``warnings`` what is wrong with the course itself.
    """

    attention: list[Attention]
    warnings: list[str]
    assignments: list[AssignmentRate]
    submissions: int
    mean: float | None
    median: float | None
    minimum: float | None
    maximum: float | None
    exercises: list[ExerciseRate]
    checks: list[CheckRate]
    misconceptions: list[MisconceptionCount]
    broken: list[BrokenResult]


def summarise(
    reports: Iterable[Report],
    *,
    not_graded: Mapping[str, str] | None = None,
    extensions: Collection[str] = (),
    warnings: Iterable[str] = (),
) -> Summary:
    """What a class knows and does not; the same for any order of the reports.

    Args:
        not_graded: student -> why.
        extensions: exercises that count as extra credit.
        warnings: what is wrong with the course.
    """
    ordered = _ordered(reports)
    percents = [_percent(r.earned, r.points) for r in ordered]
    return Summary(
        attention=_attention(ordered, not_graded or {}, extensions),
        warnings=list(warnings),
        assignments=_assignment_rates(ordered, extensions),
        submissions=len(ordered),
        mean=round(statistics.fmean(percents), 2) if percents else None,
        median=round(statistics.median(percents), 2) if percents else None,
        minimum=min(percents, default=None),
        maximum=max(percents, default=None),
        exercises=_exercise_rates(ordered, extensions),
        checks=_check_rates(ordered),
        misconceptions=_misconceptions(ordered),
        broken=[
            BrokenResult(
                student=report.student,
                exercise=exercise.exercise,
                name=result.name,
                label=result.label,
                points=result.points,
                reason=result.reason,
            )
            for report, exercise, result in _results(ordered)
            if result.status == "broken"
        ],
    )


def _attention(reports: list[Report], not_graded: Mapping[str, str], extensions: Collection[str]) -> list[Attention]:
    """Who was not graded, whose points are pending, over whose programs XLA ended, and whose work may not have been found."""
    found = [(student, f"not graded: {reason}") for student, reason in sorted(not_graded.items())]
    found += [(r.student, _whats_pending(r)) for r in reports if r.pending > 0]
    found += [(r.student, told) for r in reports if (told := ended_xla(r))]
    found += [(r.student, reason) for r in reports if (reason := _not_found(r, extensions))]
    return [Attention(student=clean(student, 100), reason=clean(reason, 600)) for student, reason in found]


ENDED = "XLA ended the process twice"


def ended_xla(report: Report) -> str:
    """The exercises whose programs XLA itself could not stand, which honest work can meet with; '' for none."""
    names = dict.fromkeys(e.exercise for e in report.exercises for r in e.results if ENDED in r.reason)
    return f"{ENDED} over {', '.join(names)}: look whether it is honest work" if names else ""


def _whats_pending(report: Report) -> str:
    broken = [(e.exercise, r.reason) for e in report.exercises for r in e.results if r.status == "broken"]
    names = ", ".join(dict.fromkeys(exercise for exercise, _ in broken))
    return f"{_counted(report.pending, 'point')} pending in {names}: {broken[0][1]}" if broken else ""


def _not_found(report: Report, extensions: Collection[str]) -> str:
    """What was handed in and could not be used, where something is missing; and links, which nobody means well by."""
    asked = [e for e in report.exercises if e.exercise not in extensions]
    missing = [e.exercise for e in asked if not e.handed_in]
    notes = report.notes if missing else [note for note in report.notes if A_LINK in note]
    if report.exercises and not any(e.handed_in for e in report.exercises):
        return "; ".join(["nothing was found that can be graded", *notes[:3]])
    told = [f"nothing was found for {', '.join(missing)}"] if missing else []
    return "; ".join([*told, *notes[:3]]) if notes else ""


def _assignment_rates(reports: list[Report], extensions: Collection[str]) -> list[AssignmentRate]:
    """By module, in the order of their ids."""
    modules = sorted({e.module for r in reports for e in r.exercises})
    return [_assignment_rate(module, reports, extensions) for module in modules]


def _assignment_rate(module: str, reports: list[Report], extensions: Collection[str]) -> AssignmentRate:
    asked = [[e for e in r.exercises if e.module == module] for r in reports]
    done = [exercises for exercises in asked if any(e.handed_in for e in exercises)]
    percents = [
        _percent(sum(e.earned for e in es), sum(e.points for e in es if e.exercise not in extensions)) for es in done
    ]
    return AssignmentRate(
        module=module,
        submissions=sum(1 for exercises in asked if exercises),
        handed_in=len(done),
        mean=round(statistics.fmean(percents), 2) if percents else None,
        full=sum(percent >= 100 for percent in percents),
    )


def _results(reports: list[Report]) -> Iterable[tuple[Report, ExerciseReport, Result]]:
    return ((r, e, result) for r in reports for e in r.exercises for result in e.results)


def _exercise_rates(reports: list[Report], extensions: Collection[str]) -> list[ExerciseRate]:
    """Extensions are of those who handed them in: nobody has to."""
    groups: dict[str, list[ExerciseReport]] = defaultdict(list)
    for report in reports:
        for exercise in report.exercises:
            if exercise.handed_in or exercise.exercise not in extensions:
                groups[exercise.exercise].append(exercise)
    return [
        ExerciseRate(
            exercise=name,
            title=group[0].title,
            submissions=len(group),
            mean=round(statistics.fmean(_percent(e.earned, e.points) for e in group), 2),
            full=sum(e.earned >= e.points for e in group),
        )
        for name, group in groups.items()
    ]


def _check_rates(reports: list[Report]) -> list[CheckRate]:
    groups: dict[tuple[str, str, bool], list[Result]] = defaultdict(list)  # a check may have a hidden twin
    for _, exercise, result in _results(reports):
        if exercise.handed_in:
            groups[exercise.exercise, result.name, result.public].append(result)
    return [_check_rate(exercise, group) for (exercise, _, _), group in groups.items()]


def _check_rate(exercise: str, group: list[Result]) -> CheckRate:
    states = [r.status for r in group]
    passed, broken = states.count("passed"), states.count("broken")
    return CheckRate(
        exercise=exercise,
        name=group[0].name,
        label=group[0].label,
        public=group[0].public,
        passed=passed,
        failed=states.count("failed"),
        blocked=states.count("blocked"),
        broken=broken,
        rate=_percent(passed, len(group) - broken) if len(group) > broken else None,
    )


def _misconceptions(reports: list[Report]) -> list[MisconceptionCount]:
    """The most common first."""
    students: dict[tuple[str, str], set[str]] = defaultdict(set)
    hints: dict[tuple[str, str], str] = {}
    for report, exercise, result in _results(reports):
        if result.misconception:
            key = exercise.exercise, result.misconception
            students[key].add(report.student)
            hints.setdefault(key, result.hint)
    ranked = sorted(students, key=lambda key: (-len(students[key]), key))
    return [MisconceptionCount(exercise=e, name=n, hint=hints[e, n], students=len(students[e, n])) for e, n in ranked]


def page_name(student: str) -> str:
    """The file name of a student's page: ``<student>.html`` where that is safe in a folder and a link.

    Other names keep their safe characters and get a part of their digest, so that no two collide.
    """
    if re.fullmatch(r"(?!index$)[A-Za-z0-9][A-Za-z0-9._-]{0,99}", student):
        return f"{student}.html"
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", student)[:60].strip("-")
    digest = hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{safe or 'student'}-{digest}.html"


def print_summary(summary: Summary, console: Console) -> None:
    """The class on a terminal."""
    paper = _Paper(console)
    paper.line(paper.text(_counted(summary.submissions, "submission"), "bold"))
    if summary.mean is not None:
        stats = {"mean": summary.mean, "median": summary.median, "min": summary.minimum, "max": summary.maximum}
        paper.line(paper.text("   ".join(f"{name} {show_percent(value)}" for name, value in stats.items())))
    parts = [
        [a.module, f"{a.handed_in} of {a.submissions}", show_percent(a.mean), str(a.full)] for a in summary.assignments
    ]
    _print_table(paper, "Assignments", ["assignment", "handed in", "mean of these", "full marks"], parts)
    rates = [[e.exercise, show_percent(e.mean), f"{e.full} of {e.submissions}"] for e in summary.exercises]
    _print_table(paper, "Exercises", ["exercise", "mean", "full marks"], rates)
    checks = [[c.exercise, c.label, show_percent(c.rate)] for c in summary.checks]
    _print_table(paper, "Checks", ["exercise", "check", "passed"], checks)
    wrong = [[str(m.students), m.exercise, m.hint] for m in summary.misconceptions]
    _print_table(paper, "Misconceptions", ["students", "exercise", "hint"], wrong)
    print_attention(summary.attention, console)


def print_attention(attention: Sequence[Attention], console: Console) -> None:
    """Who needs a person: a table on a terminal, last, where it is seen."""
    rows = [[a.student, a.reason] for a in attention]
    _print_table(_Paper(console), "These need a person", ["student", "why"], rows)


def show_percent(value: float | None) -> str:
    """``87.5%``; a dash where there is nothing to take a percentage of."""
    return "-" if value is None else f"{_tidy(round(value, 1))}%"


def _print_table(paper: _Paper, title: str, columns: list[str], rows: list[list[str]]) -> None:
    if not rows:
        return
    table = Table(title=Text(title, style="bold"), title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(paper.text(cell, limit=300) for cell in row))
    paper.console.print(table)


def render_summary_html(summary: Summary, reports: Iterable[Report]) -> str:
    """The class page; it links to each student's page, named by ``page_name``, in the same folder."""
    template = _environment().get_template("class.html")
    ordered = _ordered(reports)
    return template.render(summary=summary, reports=ordered, graded={r.student for r in ordered})
