"""What somebody may have meant who typed a name that there is not."""

from __future__ import annotations

from collections.abc import Iterable

from grader.wire.text import closest


def near(name: str, names: Iterable[str]) -> str:
    """``; did you mean 'c3_contracting'?`` or nothing."""
    meant = closest(name, names, 0.5)
    return f"; did you mean {meant!r}?" if meant else ""


def nearest(name: str, names: Iterable[str]) -> str:
    """``; did you mean 'c3_contracting'?`` or all the names."""
    return near(name, names := list(names)) or f"; there are {', '.join(sorted(names))}"
