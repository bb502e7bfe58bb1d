"""An amount beside the expected one, as two bars on one scale: traffic, memory and FLOPs against their budgets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from grader.common.result import Result
from grader.reports.svg import PALETTE

CHAR, LEFT, LONGEST, ROW = 6.7, 70.0, 240.0, 22.0


@dataclass(frozen=True)
class Row:
    """One bar, with its name to the left and its number to the right."""

    y: float
    name: str
    width: float
    number: str
    colour: str


@dataclass(frozen=True)
class Bars:
    """Two bars ready to draw."""

    width: float
    height: float
    left: float
    rows: list[Row]
    alt: str


def draw_bars(result: Result) -> Bars | None:
    """Return the bars of a failed check, or None if there are no two different amounts to compare.

    Results for students have no staff-only amounts, so these are not drawn for students.
    """
    due, got = result.expected, result.actual
    if result.kind != "check" or result.status != "failed" or not (_is_amount(due) and _is_amount(got)):
        return None
    most = max(due, got)
    if most == 0 or due == got:
        return None
    times = f" ({got / due:.3g} × as much)" if due else ""
    numbers = [("expected", due, _shown(due), PALETTE[7]), ("yours", got, _shown(got) + times, PALETTE[5])]
    rows = [
        Row(ROW * i, name, round(max(LONGEST * (value / most), 1), 1), number, colour)
        for i, (name, value, number, colour) in enumerate(numbers)
    ]
    ends = [LEFT + row.width + 8 + len(row.number) * CHAR for row in rows]
    numbers_text = ", ".join(f"{name} {number}" for name, _, number, _ in numbers)
    return Bars(round(max(ends), 1), ROW * len(rows), LEFT, rows, f"bars: {numbers_text}")


def _is_amount(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value < 1e300
    )


def _shown(value: float) -> str:
    """Return the number as ``7,680``, ``0.25`` or ``1.2e+15``."""
    return f"{int(value):,}" if value == int(value) and value < 1e15 else f"{value:.4g}"
