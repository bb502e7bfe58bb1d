"""Roofline pictures: FLOP/s against FLOPs per byte, for a program's matmuls and whole step, with the chip's limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from grader.clock.timeline import Span, Timeline
from grader.hardware import CHIPS, Chip
from grader.reports.pictures import PALETTE
from grader.reports.timelines import place
from grader.reports.untrusted import clean

LEFT, TOP, WIDTH, HEIGHT = 84.0, 20.0, 430.0, 230.0
MOST = 12  # the picture shows at most this many matmuls


@dataclass(frozen=True)
class RooflinePoint:
    """A point of the roofline picture: one matmul, or the whole step.

    Attributes:
        what: name and source line.
        per: the bytes that ``intensity`` counts: "HBM byte", or "byte sent" for the bytes that a device sends.
        intensity: FLOPs per byte.
        rate: average FLOP/s during the matmul or step.
    """

    what: str
    per: str
    intensity: float
    rate: float


@dataclass(frozen=True)
class Roofline:
    """The contents of a roofline picture: points for a program's matmuls and step, and the chip with its limits.

    The limits are the chip's peak FLOP/s, the bytes/s of HBM, and the bytes/s of one ring in both directions.
    """

    chip: Chip
    points: tuple[RooflinePoint, ...]

    @property
    def roofs(self) -> dict[str, float]:
        return {"HBM byte": self.chip.hbm_bw, "byte sent": self.chip.ici_both}

    def bound(self, point: RooflinePoint) -> str:
        """Return the limit that bounds the rate of a point: "arithmetic", "HBM" or "links"."""
        if point.intensity >= self.chip.bf16 / self.roofs[point.per]:
            return "arithmetic"
        return "HBM" if point.per == "HBM byte" else "links"


def roofline_of(timeline: Timeline, sent: float) -> Roofline | None:
    """Return a program's roofline: at most MOST matmuls, and the step.

    Equal matmuls of one source line share a point.

    Args:
        sent: bytes that a device sends in the step. If this number is 0 or infinite, the step has no point.

    Returns:
        None if there are no matmuls, or if the chip is not in ``CHIPS``.
    """
    chip = CHIPS.get(timeline.chip)
    matmuls: dict[tuple, Span] = {}
    for span in timeline.spans:
        if span.kind == "matmul" and span.flops and span.bytes and span.duration:
            matmuls.setdefault((span.file, span.line, span.what, span.flops, span.bytes), span)
    if chip is None or not matmuls:
        return None
    found = [
        RooflinePoint(_name(s), "HBM byte", s.flops / s.bytes, s.flops / s.duration * 1e12)
        for s in list(matmuls.values())[:MOST]
    ]
    if 0 < sent < math.inf and timeline.flops and timeline.step:
        found.append(
            RooflinePoint("the whole step", "byte sent", timeline.flops / sent, timeline.flops / timeline.step * 1e12)
        )
    return Roofline(chip, tuple(found))


def _name(span: Span) -> str:
    where = place(span.file, span.line)
    return clean(f"{span.what}{', ' if where else ''}{where}", 80)


def roofline_text(roofline: Roofline) -> list[str]:
    chip = roofline.chip
    ridges = {per: chip.bf16 / bandwidth for per, bandwidth in roofline.roofs.items()}
    lines = [
        f"on the rooflines of {chip.name}: "
        f"the peak of {show_rate(chip.bf16)} needs at least {ridges['HBM byte']:,.0f} FLOPs per HBM byte, "
        f"and at least {ridges['byte sent']:,.0f} FLOPs per byte sent (one ring, both directions)"
    ]
    for point in roofline.points:
        part = point.rate / chip.bf16
        lines.append(
            f"{point.what}: {_short(point.intensity)} FLOPs per {point.per}, bounded by {roofline.bound(point)}; "
            f"{show_rate(point.rate)}, {part:.0%} of the peak"
        )
    return lines


def show_rate(rate: float) -> str:
    """Return the rate with three digits, as ``197 TFLOP/s``."""
    for unit, size in (("PFLOP/s", 1e15), ("TFLOP/s", 1e12), ("GFLOP/s", 1e9), ("MFLOP/s", 1e6), ("kFLOP/s", 1e3)):
        if rate >= 0.9995 * size:
            return f"{rate / size:.3g} {unit}"
    return f"{rate:.3g} FLOP/s"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


@dataclass(frozen=True)
class RooflineMark:
    """A drawn point: a circle for a matmul, a square for the step."""

    x: float
    y: float
    square: bool
    colour: str
    text: str


@dataclass(frozen=True)
class RooflineSvg:
    """The picture ready to draw. ``roofs``: SVG path and name of each roof, first the roof of HBM."""

    xs: list[tuple[float, str]]
    ys: list[tuple[float, str]]
    roofs: list[tuple[str, str]]
    marks: list[RooflineMark]
    lines: list[str]
    alt: str
    left: float = LEFT
    top: float = TOP
    right: float = LEFT + WIDTH
    bottom: float = TOP + HEIGHT


def draw_roofline(roofline: Roofline) -> RooflineSvg:
    peak, text = roofline.chip.bf16, roofline_text(roofline)
    ridges = [peak / bandwidth for bandwidth in roofline.roofs.values()]
    x_low, x_high = _decades([p.intensity for p in roofline.points] + [ridges[0] / 30, ridges[1] * 3])
    y_low, y_high = _decades([p.rate for p in roofline.points] + [peak / 100, peak * 1.2])

    def x(value: float) -> float:
        return round(LEFT + WIDTH * (math.log10(value) - x_low) / (x_high - x_low), 1)

    def y(value: float) -> float:
        return round(TOP + HEIGHT * (y_high - math.log10(value)) / (y_high - y_low), 1)

    roofs = []
    for name, bandwidth in zip(("roof of HBM", "roof of a ring's links"), roofline.roofs.values(), strict=True):
        start = max(10.0**x_low, 10.0**y_low / bandwidth)
        roofs.append((f"M{x(start)} {y(start * bandwidth)}L{x(peak / bandwidth)} {y(peak)}H{LEFT + WIDTH}", name))
    return RooflineSvg(
        xs=[(x(10.0**n), f"{10**n:,}" if n >= 0 else f"{10.0**n:g}") for n in _ticks(x_low, x_high)],
        ys=[(y(10.0**n), show_rate(10.0**n)) for n in _ticks(y_low, y_high)],
        roofs=roofs,
        marks=[
            RooflineMark(x(p.intensity), y(p.rate), p.per == "byte sent", PALETTE[i % len(PALETTE)], line)
            for i, (p, line) in enumerate(zip(roofline.points, text[1:], strict=True))
        ],
        lines=[text[0], *(f"{i}. {line}" for i, line in enumerate(text[1:], 1))],
        alt=clean("; ".join(text), 2000),
    )


def _decades(values: Sequence[float]) -> tuple[int, int]:
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))


def _ticks(low: int, high: int) -> range:
    return range(low, high + 1, math.ceil((high - low) / 8))
