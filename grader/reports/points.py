"""Points, and shares of them, as they are written."""

from __future__ import annotations

import math

PENDING = "{} pending: a person will look"
UNJUDGED = "{} not judged: right on simulated devices, and there are not the devices here to see more"


def tidy(number: float) -> int | float:
    """Without the dust of floating-point sums, and without a useless ``.0``."""
    if not math.isfinite(number):
        return number
    short = round(number, 4)
    return int(short) if short == int(short) else short


def percentage(earned: float, points: float) -> float:
    """How much of the points was earned; 0 where there is nothing to earn."""
    return round(100 * earned / points, 2) if points > 0 else 0.0


def show_percent(value: float | None) -> str:
    """``87.5%``; a dash where there is nothing to take a percentage of."""
    return "-" if value is None else f"{tidy(round(value, 1))}%"


def score(earned: float, points: float) -> str:
    """``2 / 8``, where a score stands alone."""
    return f"{tidy(earned)} / {tidy(points)}"


def short_score(earned: float, points: float) -> str:
    """``2/8``, where it stands beside a title or a label."""
    return f"{tidy(earned)}/{tidy(points)}"


def counted(number: float, noun: str) -> str:
    """``1 point``, ``2.5 points``."""
    return f"{tidy(number)} {noun}" + ("" if number == 1 else "s")


def pending_text(points: float, unjudged: float = 0.0) -> str:
    """What is said of points that are pending, some of them perhaps for want of devices."""
    parts = [(text, n) for text, n in ((PENDING, points - unjudged), (UNJUDGED, unjudged)) if n > 0]
    return "; ".join(text.format(f"{counted(n, 'point')} {'is' if n == 1 else 'are'}") for text, n in parts)
