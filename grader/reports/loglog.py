"""A plot of predicted and measured times on logarithmic axes: places of points, ticks and labels for an SVG picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from grader.reports.pictures import PALETTE
from grader.reports.untrusted import clean

LEFT, TOP, SIDE = 70.0, 34.0, 400.0
SHAPES = ("M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0", "M-4.5 -4.5h9v9h-9z", "M0 -6L5.5 4.5H-5.5z", "M0 -6L6 0L0 6L-6 0z")
"""Outlines of points as SVG paths: circle, square, triangle, diamond. Each group of points has its own outline."""


@dataclass(frozen=True)
class MeasuredPoint:
    """A predicted and a measured time, in seconds."""

    group: str
    name: str
    predicted: float
    measured: float


@dataclass(frozen=True)
class PlotMark:
    """A drawn point. ``look``: the index of its colour and outline in ``Plot.looks``. ``text``: the point in words."""

    x: float
    y: float
    look: int
    text: str


@dataclass(frozen=True)
class Plot:
    """A picture ready to draw. ``groups``: the names of the groups of points. ``looks``: their colours and outlines."""

    heading: str
    ticks: list[tuple[float, float, str]]
    marks: list[PlotMark]
    groups: list[str]
    looks: list[tuple[str, str]]
    alt: str
    left: float = LEFT
    top: float = TOP
    side: float = SIDE


def draw_plot(points: Sequence[MeasuredPoint], heading: str) -> Plot:
    """Place the points. Both axes have equal scales, so points on the diagonal are exact predictions."""
    values = [v for p in points for v in (p.predicted, p.measured)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high += low == high
    unit = SIDE / (high - low)
    step = math.ceil((high - low) / 10)

    def x(value: float) -> float:
        return round(LEFT + (math.log10(value) - low) * unit, 1)

    def y(value: float) -> float:
        return round(TOP + SIDE - (math.log10(value) - low) * unit, 1)

    groups = list(dict.fromkeys(p.group for p in points))
    texts = [_in_words(point) for point in points]
    tens = [10.0**power for power in range(low, high + 1, step)]
    return Plot(
        heading=clean(heading, 100),
        ticks=[(x(ten), y(ten), show_seconds(ten)) for ten in tens],
        marks=[
            PlotMark(x(p.predicted), y(p.measured), groups.index(p.group), text)
            for p, text in zip(points, texts, strict=True)
        ],
        groups=[clean(group, 40) for group in groups],
        looks=[(PALETTE[i % len(PALETTE)], SHAPES[i % len(SHAPES)]) for i in range(len(groups))],
        alt=clean(f"{heading}, logarithmic axes. {'; '.join(texts)}", 4000),
    )


def _in_words(point: MeasuredPoint) -> str:
    times = f"predicted {show_seconds(point.predicted)}, measured {show_seconds(point.measured)}"
    return f"{point.group} {point.name}: {times}"


def show_seconds(seconds: float) -> str:
    """Return the time with three digits in a suitable unit, such as ``12.3 us``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:.3g} {unit}" if seconds < 1000 * size else f"{seconds / size:.2e} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
