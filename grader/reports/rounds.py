"""The data that permutes pass round a ring: for each round and device, the device where the held data started."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from grader.common.layout import coordinates
from grader.common.routes import Route
from grader.reports.svg import PALETTE
from grader.reports.untrusted import clean

CHAR, ROW = 6.7, 22.0
MOST_ROUTES = 4  # most routes of a program that the report shows
DEVICES, FIRST = 16, 16  # the most columns of the table, and the most rounds before the last round


@dataclass(frozen=True)
class Rounds:
    """A route of permuted data as a table: a row for each round, a column for each device.

    Attributes:
        caption: the axes, and the meaning of a cell.
        devices: names of the columns.
        rows: (name of the round, source line of the permute or None, cells). A cell is the column of the device where
            the data started, or None for zeros.
        left: the number of omitted rounds before the last one.
    """

    caption: str
    devices: list[str]
    rows: list[tuple[str, int | None, tuple[int | None, ...]]]
    left: int


def rounds_of(route: Route, mesh: Mapping[str, int]) -> Rounds | None:
    """Return the route on one ring if all rings are equal, else on all devices. None if there are too many columns."""
    points = coordinates(mesh)
    ring = _one_ring(route, points)
    shown = ring or list(range(len(points)))
    if len(shown) > DEVICES:
        return None
    named = route.axes if ring else tuple(mesh)
    devices = [",".join(str(points[d][axis]) for axis in named) for d in shown]
    column = {device: at for at, device in enumerate(shown)}
    held = [tuple(None if (source := h[d]) is None else column[source] for d in shown) for h in route.holds]
    names = ["at first", *(f"round {i}" for i in range(1, len(held)))]
    rows = list(zip(names, (None, *route.lines), held, strict=True))
    left = max(0, len(rows) - FIRST - 2)
    over = " and ".join(route.axes)
    rings = f"the ring along {over}" if ring else f"all rings along {over}"
    if len(shown) < len(points):
        rings = f"one ring along {over} (the others are the same)"
    return Rounds(
        caption=clean(
            f"{rings}: each cell shows the device ({', '.join(named)}) on which the data started; "
            "a sum adds more data on its way",
            300,
        ),
        devices=devices,
        rows=rows if not left else [*rows[: FIRST + 1], rows[-1]],
        left=left,
    )


def _one_ring(route: Route, points: Sequence[Mapping[str, int]]) -> list[int] | None:
    """Return the devices with coordinate 0 on all axes outside the ring, or None if other rings behave differently."""
    where = {tuple(p.items()): i for i, p in enumerate(points)}
    others = [axis for axis in points[0] if axis not in route.axes]

    def first(device: int) -> int:
        return where[tuple({**points[device], **dict.fromkeys(others, 0)}.items())]

    ring = [d for d in range(len(points)) if first(d) == d]
    for held in route.holds:
        for device, source in enumerate(held):
            alike = held[first(device)]
            if (None if source is None else first(source)) != alike:
                return None
            if source is not None and any(points[source][axis] != points[device][axis] for axis in others):
                return None
    return ring


def rounds_text(rounds: Rounds) -> list[str]:
    """Return the table as lines of text, the caption first."""
    margin = max(len(_name(name, line)) for name, line, _ in rounds.rows) + 2
    width = max(map(len, rounds.devices)) + 2
    lines = [rounds.caption, " " * margin + "".join(name.rjust(width) for name in rounds.devices).rstrip()]
    for at, (name, line, held) in enumerate(rounds.rows):
        if rounds.left and at == len(rounds.rows) - 1:
            lines.append(f"  … {rounds.left} more")
        cells = ("0s" if source is None else rounds.devices[source] for source in held)
        lines.append(_name(name, line).ljust(margin) + "".join(cell.rjust(width) for cell in cells).rstrip())
    return lines


def _name(name: str, line: int | None) -> str:
    return name if line is None else f"{name}, line {line}"


@dataclass(frozen=True)
class RoundCell:
    """A cell: the data that one device holds in one round. An empty colour means zeros."""

    x: float
    y: float
    text: str
    colour: str


@dataclass(frozen=True)
class RoundsSvg:
    """The table of rounds, ready to draw: cells, column heads and row names with their places.

    ``frames``: the rounds as escaped JSON, for ``player.js``.
    """

    width: float
    height: float
    cell: float
    heads: list[tuple[float, str]]
    names: list[tuple[float, str]]
    left: float
    cells: list[RoundCell]
    caption: str
    alt: str
    frames: Markup


def draw_rounds(rounds: Rounds) -> RoundsSvg:
    """Place a row for each round and a column for each device. A cell's colour shows the device where data started."""
    cell = round(max(26.0, max(map(len, rounds.devices)) * CHAR + 12), 1)
    names = [_name(name, line) for name, line, _ in rounds.rows]
    if rounds.left:
        names[-1] = f"… {names[-1]}"
    left = round(max(map(len, names)) * CHAR + 10, 1)
    tops = [ROW * (i + 1) for i in range(len(names))]
    cells = [
        RoundCell(
            round(left + cell * column, 1),
            y,
            "0s" if source is None else rounds.devices[source],
            "" if source is None else PALETTE[source % len(PALETTE)],
        )
        for y, (_, _, held) in zip(tops, rounds.rows, strict=True)
        for column, source in enumerate(held)
    ]
    held_text = "; ".join(
        f"{name}: {', '.join('zeros' if s is None else rounds.devices[s] for s in held)}"
        for name, _, held in rounds.rows
    )
    return RoundsSvg(
        width=round(left + cell * len(rounds.devices) + 2, 1),
        height=ROW * (len(names) + 1) + 2,
        cell=cell,
        heads=[(round(left + cell * (i + 0.5), 1), name) for i, name in enumerate(rounds.devices)],
        names=[(y, name) for y, name in zip(tops, names, strict=True)],
        left=left,
        cells=cells,
        caption=rounds.caption,
        alt=clean(f"{rounds.caption}. {held_text}", 2000),
        frames=_frames(rounds),
    )


def _frames(rounds: Rounds) -> Markup:
    rows = [{"name": name, "line": line, "held": list(held)} for name, line, held in rounds.rows]
    return escape(json.dumps({"devices": rounds.devices, "rows": rows, "colours": PALETTE}))
