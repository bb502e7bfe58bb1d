"""Points and percentages as text."""

from __future__ import annotations

import math

PENDING = "{} pending review by the staff"
UNJUDGED = "{} not judged: right on simulated devices, but this machine lacks the real devices"


def tidy(number: float) -> int | float:
    """Return the number without floating-point noise and without a trailing ``.0``."""
    if not math.isfinite(number):
        return number
    short = round(number, 4)
    return int(short) if short == int(short) else short


def percentage(earned: float, points: float) -> float:
    """Return earned points as a percentage of all points, or 0 if there are no points to earn."""
    return round(100 * earned / points, 2) if points > 0 else 0.0


def show_percent(value: float | None) -> str:
    """Return a percentage as text, such as ``87.5%``; a dash for None."""
    return "-" if value is None else f"{tidy(round(value, 1))}%"


def score(earned: float, points: float) -> str:
    """Return a score as ``2 / 8``, for a line of its own."""
    return f"{tidy(earned)} / {tidy(points)}"


def short_score(earned: float, points: float) -> str:
    """Return a score as ``2/8``, for a place beside a title or a label."""
    return f"{tidy(earned)}/{tidy(points)}"


def counted(number: float, noun: str) -> str:
    """Return the number with its noun, such as ``1 point`` or ``2.5 points``."""
    return f"{tidy(number)} {noun}" + ("" if number == 1 else "s")


def pending_text(points: float, unjudged: float = 0.0) -> str:
    """Return a text about points that are not decided yet.

    ``unjudged``: the part of ``points`` that cannot be judged, because devices are missing.
    """
    parts = [(text, n) for text, n in ((PENDING, points - unjudged), (UNJUDGED, unjudged)) if n > 0]
    return "; ".join(text.format(f"{counted(n, 'point')} {'is' if n == 1 else 'are'}") for text, n in parts)
