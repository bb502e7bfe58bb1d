"""Amounts beside their budgets, as bars on one scale: collectives, traffic, memory, FLOPs, time.

Behind each bar is a box whose length shows the budget. The part of the bar beyond the box is marked. An empty part of
the box shows how much of the budget the program left unused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader.common.result import Result
from grader.reports.untrusted import clean

CHAR, LONGEST = 6.7, 240.0
MOST_ROWS = 12


@dataclass(frozen=True)
class BudgetBar:
    """An amount's bar, drawn over a box whose length shows the budget.

    ``limit``: length of the box. ``within``, ``beyond``: lengths of the bar's parts inside the box and beyond it.
    """

    name: str
    limit: float
    within: float
    beyond: float
    number: str

    @property
    def length(self) -> float:
        """The length of the box or of the bar, whichever is longer."""
        return round(max(self.limit, self.within + self.beyond), 1)


@dataclass(frozen=True)
class Bars:
    """Bars ready to draw. ``left``: the x position at which all bars start."""

    width: float
    left: float
    rows: list[BudgetBar]
    alt: str


def draw_bars(result: Result) -> Bars | None:
    """Return a failed check's amounts as bars; None for no amounts, too many amounts, or only expected amounts."""
    if result.kind != "check" or result.status != "failed":
        return None
    compared = _compared(result.expected, result.actual)
    most = max((max(due, got) for _, due, got in compared), default=0)
    if most == 0 or len(compared) > MOST_ROWS or all(due == got for _, due, got in compared):
        return None
    rows = [_row(name, due, got, most, result.unit) for name, due, got in compared]
    left = round(max(len(row.name) for row in rows) * CHAR + 16, 1)
    ends = [left + row.length + 8 + len(row.number) * CHAR for row in rows]
    text = "; ".join(f"{row.name} {row.number}" for row in rows)
    return Bars(round(max(ends), 1), left, rows, clean(f"bars: {text}"))


def _compared(due: Any, got: Any) -> list[tuple[str, Any, Any]]:
    """Return (name, expected amount, actual amount) for each name in the data; [] if a value is not an amount."""
    found: list[tuple[str, Any, Any]] = [("yours", due, got)]
    if isinstance(due, Mapping) and isinstance(got, Mapping):
        found = [(clean(name, 60), due.get(name, 0), got.get(name, 0)) for name in dict.fromkeys((*due, *got))]
    return found if all(_is_amount(one) and _is_amount(other) for _, one, other in found) else []


def _row(name: str, due: float, got: float, most: float, unit: str) -> BudgetBar:
    limit, within, beyond = (
        round(max(LONGEST * (part / most), 1), 1) if part > 0 else 0.0 for part in (due, min(due, got), got - due)
    )
    return BudgetBar(name, limit, within, beyond, _text(due, got, f" {clean(unit, 20)}" if unit else ""))


def _text(due: float, got: float, unit: str) -> str:
    """Return a text such as ``1 of 2``, or ``9,000 B: 5,000 over 4,000 (2.25 × as much)`` for an exceeded budget."""
    if got <= due:
        return f"{_shown(got)} of {_shown(due)}{unit}"
    if not due:
        return f"{_shown(got)}{unit}: none expected"
    return f"{_shown(got)}{unit}: {_shown(got - due)} over {_shown(due)} ({got / due:.3g} × as much)"


def _is_amount(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value < 1e300
    )


def _shown(value: float) -> str:
    """Return the number as ``7,680``, ``0.25`` or ``1.2e+15``."""
    return f"{int(value):,}" if value == int(value) and value < 1e15 else f"{value:.4g}"
