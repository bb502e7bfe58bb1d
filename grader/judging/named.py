"""The hint of one misconception, or of two misconceptions that explain a wrong answer or failure equally well."""

from __future__ import annotations

from collections.abc import Sequence

from grader.common.result import Result
from grader.exercise import Misconception

MOST_NAMED = 2
"""Largest number of misconceptions that a report names if all fit equally well. If more fit, the report names none."""


def named(misconceptions: Sequence[Misconception]) -> tuple[str, str]:
    """Return (hint, name) for one misconception. For two, return ("Either: hint Or: hint", "name or name")."""
    hints = list(dict.fromkeys(misconception.hint for misconception in misconceptions))
    hint = hints[0] if len(hints) == 1 else f"Either: {hints[0]}\n\nOr: {hints[1]}"
    return hint, " or ".join(misconception.known_as for misconception in misconceptions)


def with_hint(result: Result, misconceptions: Sequence[Misconception]) -> Result:
    """Return the result with the hint of one misconception, or the hints of two."""
    hint, name = named(misconceptions)
    return result.model_copy(update={"hint": hint, "misconception": name})
