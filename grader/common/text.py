"""Names as they may be printed, lists of names, and the name that was probably meant."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from grader.wire.text import closest

MAX_NOTES = 100
A_LINK = "is a link and was not followed"
PASSED_OVER = "is not graded for"


def printable(name: str) -> str:
    """A name as it may be printed: learners choose names, and terminals obey control characters."""
    shown = "".join(c if c.isprintable() else "?" for c in name)
    return shown if len(shown) <= 100 else shown[:97] + "..."


def composed(text: str) -> str:
    """Return the text in Unicode's composed form (NFC): macOS writes ``ë`` as two characters, other systems as one."""
    return unicodedata.normalize("NFC", text)


def a_few(names: Sequence[str], most: int = 5) -> str:
    """The first names of a list, and how many more there are."""
    text = ", ".join(names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


def first_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """As many notes as a person would read, and how many more there are."""
    if len(notes) <= MAX_NOTES:
        return tuple(notes)
    return (*notes[:MAX_NOTES], f"and {len(notes) - MAX_NOTES} more notes")


def near(name: str, names: Iterable[str]) -> str:
    """``; did you mean 'c3_contracting'?`` or nothing."""
    meant = closest(name, names, 0.5)
    return f"; did you mean {meant!r}?" if meant else ""


def nearest(name: str, names: Iterable[str]) -> str:
    """``; did you mean 'c3_contracting'?`` or all the names."""
    return near(name, names := list(names)) or f"; there are {', '.join(sorted(names))}"
