"""Tables that show how permutes move data: a row for each round of permutes, a column for each device.

On a ring (``Route``), devices pass data on, and a cell names the device where the data started. In a pipeline
(``Pipeline``), each device computes new data from the data that it received. A cell then names the parts of the
arguments from which the data were computed, such as x[3]. A round of a pipeline is also called a tick.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup, escape

from grader.common.drawing import each_drawn
from grader.common.layout import coordinates
from grader.common.pipelines import Pipeline, Span, Work
from grader.common.routes import Route
from grader.reports.explained import Explained
from grader.reports.pictures import TINTS
from grader.reports.points import counted
from grader.reports.untrusted import clean

CHAR = 6.7
MOST_ROUTES = 4  # A report shows at most this many rings and this many pipelines of a program.
# A table shows at most DEVICES columns, and at most FIRST rounds and the last round.
DEVICES, FIRST = 16, 24
MOST_SPANS = 3  # a cell names at most this many ranges of entries


@dataclass(frozen=True)
class Cell:
    """The data of one device in one round.

    Attributes:
        text: a few characters for a table.
        said: a phrase about the device and its data, such as "holds the data of 2".
        colour: the index in the palette; None for data without a colour.
        sources: the columns of the devices that the data came from in this round.
        used: True if a result of the program may depend on this data.
    """

    text: str
    said: str
    colour: int | None
    sources: tuple[int, ...] = ()
    used: bool = True

    @property
    def fill(self) -> str:
        return "none" if self.colour is None else TINTS[self.colour % len(TINTS)]


Row = tuple[str, int | None, tuple[Cell, ...]]


@dataclass(frozen=True)
class Rounds:
    """A table that shows how permutes move data: a row for each round, a column for each device.

    Attributes:
        caption: the axes, the direction if it never changes, the number of rounds, the meaning of a cell.
        devices: names of the columns.
        rows: a tuple for each round: its name, the source line of its permute (or None), and its cells.
        left: the number of rounds that a long table omits before its last row.
        line: True if the devices are in a line, not on a ring.
    """

    caption: str
    devices: list[str]
    rows: list[Row]
    left: int
    line: bool = False


Moves = Sequence[tuple[object, tuple[int, ...]]]


@dataclass(frozen=True)
class _Columns:
    """The columns of a table, one column per device.

    Attributes:
        shown: the devices' numbers.
        axes: the mesh axes whose coordinates name a device.
        names: the devices' names, such as ``0,1``.
        title: the ring or line that the table shows, in words.
        one: True if the devices are a single ring or line.
    """

    shown: list[int]
    axes: tuple[str, ...]
    names: list[str]
    title: str
    one: bool


def rounds_in(explained: Explained) -> list[Rounds]:
    """Return tables of a program's rings and pipelines, at most ``MOST_ROUTES`` tables of each."""
    found = each_drawn(lambda route: rounds_of(route, explained.mesh), explained.routes[:MOST_ROUTES])
    return found + each_drawn(lambda one: ticks_of(one, explained.mesh), explained.pipelines[:MOST_ROUTES])


def rounds_of(route: Route, mesh: Mapping[str, int]) -> Rounds | None:
    """Return the table of a ring; None if there are too many columns."""
    moves = [[(s is None, () if s is None else (s,)) for s in held] for held in route.holds]
    columns = _columns("ring", route.axes, mesh, moves)
    if len(columns.shown) > DEVICES:
        return None
    held = [
        [None if (source := h[d]) is None else columns.shown.index(source) for d in columns.shown] for h in route.holds
    ]
    cells = [
        tuple(_started(source, columns.names, held[max(at - 1, 0)], d) for d, source in enumerate(row))
        for at, row in enumerate(held)
    ]
    names = ["at first", *(f"round {i}" for i in range(1, len(held)))]
    way = _way(held) if columns.one else f"{counted(len(held) - 1, 'round')}."
    caption = (
        f"{columns.title} {way} Each cell shows the device ({', '.join(columns.axes)}) on which its data started. "
        "A running sum also contains data of the devices that it has passed."
    )
    return _rounds(caption, columns, list(zip(names, (None, *route.lines), cells, strict=True)))


def _way(held: Sequence[Sequence[int | None]]) -> str:
    """Return a sentence for a ring's caption, such as ``Data move 1 device back in each of 3 rounds.``

    Args:
        held: ``held[r][c]`` is the starting column of the data in column c after r rounds; None for zeros.
    """
    size, rounds = len(held[0]), len(held) - 1
    moved = {  # the numbers of columns by which a device's data moved to the right in a round
        (at - old.index(source)) % size
        for old, new in itertools.pairwise(held)
        for at, source in enumerate(new)
        if source is not None and source in old
    }
    if len(moved) != 1:
        return f"{counted(rounds, 'round')}."
    on = moved.pop()
    by, way = (on, "forward") if on <= size - on else (size - on, "back")
    return f"Data move {counted(by, 'device')} {way} in {'' if rounds == 1 else 'each of '}{counted(rounds, 'round')}."


def _started(source: int | None, names: Sequence[str], before: Sequence[int | None], device: int) -> Cell:
    """Return a cell of a ring's table: the device where the data started, and the device that sent the data."""
    if source is None:
        return Cell("0s", "holds zeros", None)
    count = len(before)
    had = [d for d, held in enumerate(before) if held == source]
    nearest = sorted(had, key=lambda d: min((d - device) % count, (device - d) % count))
    return Cell(names[source], f"holds the data of {names[source]}", source, tuple(nearest[:1]))


def ticks_of(pipeline: Pipeline, mesh: Mapping[str, int]) -> Rounds | None:
    """Return the table of a pipeline, with a row for each tick; None if there are too many columns."""
    moves = [[((work.entries, work.used), work.sources) for work in tick] for tick in pipeline.ticks]
    columns = _columns("line", pipeline.axes, mesh, moves)
    if len(columns.shown) > DEVICES:
        return None
    column = {device: at for at, device in enumerate(columns.shown)}
    cells = [tuple(_worked(pipeline.arguments, tick[d], column) for d in columns.shown) for tick in pipeline.ticks]
    names = [*(f"tick {i}" for i in range(len(pipeline.lines))), "received"]
    caption = (
        f"{columns.title} Each cell shows the entries of {' and '.join(pipeline.arguments)} from which the device "
        f"({', '.join(columns.axes)}) computed the data that it sends. No result needs the data in brackets."
    )
    return _rounds(caption, columns, list(zip(names, (*pipeline.lines, None), cells, strict=False)), line=True)


def _rounds(caption: str, columns: _Columns, rows: list[Row], *, line: bool = False) -> Rounds:
    left = max(0, len(rows) - FIRST - 2)
    shown = rows if not left else [*rows[: FIRST + 1], rows[-1]]
    return Rounds(clean(caption, 300), columns.names, shown, left, line)


def _worked(arguments: Sequence[str], work: Work, column: Mapping[int, int]) -> Cell:
    """Return the cell of one device's data, such as ``x3`` for data that the device computed from x[3]."""
    names: dict[str, list[str]] = {}
    for name, spans in zip(arguments, work.entries, strict=True):
        if spans != ():
            names.setdefault(_entries(spans), []).append(clean(name, 20))
    text = " ".join(f"{_together(of)}{entries}" for entries, of in names.items()) or "·"
    said = " and ".join(f"{name}[{entries}]" for entries, of in names.items() for name in of)
    first = next((spans[0][0] for spans in work.entries if spans), None)
    return Cell(
        text if work.used else f"({text})",
        f"has {said or 'nothing'}" + ("" if work.used else " (not needed)"),
        first if work.used else None,
        tuple(column[d] for d in work.sources),
        work.used,
    )


def _together(names: Sequence[str]) -> str:
    return ("" if all(len(name) == 1 for name in names) else ",").join(names)


def _entries(spans: Sequence[Span] | None) -> str:
    """Return the entries of an argument as ``3``, ``3:5`` or ``0,3:5``; ``?`` if they are unknown."""
    if spans is None:
        return "?"
    shown = [str(start) if stop == start + 1 else f"{start}:{stop}" for start, stop in spans]
    return ",".join(shown[:MOST_SPANS]) + ("…" if len(shown) > MOST_SPANS else "")


def _alike(row: Moves, first: Sequence[int], ring: Sequence[int]) -> bool:
    """Return True if, in this round, data move alike on all rings, and no data move between rings.

    Args:
        row: for each device, a description of its data, and the devices that the data came from.
        first: for each device, the corresponding device on the first ring.
        ring: for each device, a number that identifies its ring.
    """
    inside = all(ring[s] == ring[d] for d, (_, sources) in enumerate(row) for s in sources)
    moved = [(about, {first[s] for s in sources}) for about, sources in row]
    return inside and all(moved[d] == moved[first[d]] for d in range(len(row)))


def _columns(kind: str, axes: Sequence[str], mesh: Mapping[str, int], rows: Sequence[Moves]) -> _Columns:
    """Return the columns of a table: all devices, or only those of the first ring (or line) if data move alike on all.

    Args:
        kind: "ring" or "line".
        rows: a row for each round, see ``_alike``.
    """
    points = coordinates(mesh)
    where = {tuple(p.items()): i for i, p in enumerate(points)}

    def at_zero(device: int, zeros: Sequence[str]) -> int:
        return where[tuple({**points[device], **dict.fromkeys(zeros, 0)}.items())]

    others = [axis for axis in mesh if axis not in axes]
    # maps each device to the device in the same position on the ring that the picture shows
    first = [at_zero(d, others) for d in range(len(points))]
    ring = [at_zero(d, axes) for d in range(len(points))]
    one = all(_alike(row, first, ring) for row in rows)
    shown = sorted(set(first)) if one else list(range(len(points)))
    named = tuple(axes) if one else tuple(mesh)
    over = " and ".join(axes)
    title = f"The {kind} along {over}." if one else f"All {kind}s along {over}."
    if len(shown) < len(points):
        title = f"One {kind} along {over} (data move alike on all {kind}s along {over})."
    names = [",".join(str(points[d][axis]) for axis in named) for d in shown]
    return _Columns(shown, named, names, title, one)


def rounds_text(rounds: Rounds) -> list[str]:
    margin = max(len(_name(name, line)) for name, line, _ in rounds.rows) + 2
    width = _widest(rounds) + 2
    lines = [rounds.caption, " " * margin + "".join(name.rjust(width) for name in rounds.devices).rstrip()]
    for at, (name, line, held) in enumerate(rounds.rows):
        if rounds.left and at == len(rounds.rows) - 1:
            lines.append(f"  … {rounds.left} more")
        lines.append(_name(name, line).ljust(margin) + "".join(cell.text.rjust(width) for cell in held).rstrip())
    return lines


def _widest(rounds: Rounds) -> int:
    return max(*(len(cell.text) for _, _, cells in rounds.rows for cell in cells), *map(len, rounds.devices))


def _name(name: str, line: int | None) -> str:
    return name if line is None else f"{name}, line {line}"


@dataclass(frozen=True)
class RoundsSvg:
    """The table of rounds, ready to draw.

    Attributes:
        cell: the width of a cell.
        names: the names of the rows. They end left of the x position ``left``.
        frames: the rounds as escaped JSON, for ``player.js``.
    """

    rounds: Rounds
    cell: float
    names: list[str]
    left: float
    alt: str
    frames: Markup


def draw_rounds(rounds: Rounds) -> RoundsSvg:
    """Place a row for each round and a column for each device. Cells with equal data have equal colours."""
    names = [_name(name, line) for name, line, _ in rounds.rows]
    if rounds.left:
        names[-1] = f"… {names[-1]}"
    held_text = "; ".join(f"{name}: {', '.join(one.text for one in held)}" for name, _, held in rounds.rows)
    return RoundsSvg(
        rounds=rounds,
        cell=round(max(26.0, _widest(rounds) * CHAR + 12), 1),
        names=names,
        left=round(max(map(len, names)) * CHAR + 10, 1),
        alt=clean(f"{rounds.caption}. {held_text}", 2000),
        frames=_frames(rounds),
    )


def _frames(rounds: Rounds) -> Markup:
    """Return the rounds as JSON, escaped for HTML. Equal cells are written once, so that reports stay small."""
    kinds = list(dict.fromkeys(replace(cell, sources=()) for _, _, cells in rounds.rows for cell in cells))
    rows = [
        {
            "name": name,
            "line": line,
            "kinds": [kinds.index(replace(cell, sources=())) for cell in cells],
            "sources": [cell.sources for cell in cells],
        }
        for name, line, cells in rounds.rows
    ]
    shown = [{"text": k.text, "said": k.said, "colour": k.colour, "used": k.used} for k in kinds]
    about = {"devices": rounds.devices, "inLine": rounds.line, "colours": TINTS, "kinds": shown, "rows": rows}
    return escape(json.dumps(about, separators=(",", ":")))
