"""Names and lists of names, as they may be printed."""

from __future__ import annotations

from collections.abc import Sequence

MAX_NOTES = 100
A_LINK = "is a link and was not followed"
PASSED_OVER = "is not graded for"


def printable(name: str) -> str:
    """A name as it may be printed: learners choose names, and terminals obey control characters."""
    shown = "".join(c if c.isprintable() else "?" for c in name)
    return shown if len(shown) <= 100 else shown[:97] + "..."


def a_few(names: Sequence[str], most: int = 5) -> str:
    """The first names of a list, and how many more there are."""
    text = ", ".join(names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


def first_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """As many notes as a person would read, and how many more there are."""
    if len(notes) <= MAX_NOTES:
        return tuple(notes)
    return (*notes[:MAX_NOTES], f"and {len(notes) - MAX_NOTES} more notes")
