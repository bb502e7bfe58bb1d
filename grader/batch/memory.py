"""The user's own cache: where what is remembered over runs is kept."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grader.common.cache import Cache

MOST = 1 << 30  # bytes on disk
VARIABLE = "SHARDLINGS_CACHE"
OFF = "off"


@contextmanager
def remembered(wanted: bool = True) -> Iterator[Cache | None]:
    """The user's cache; None where it is not ``wanted``, turned off, or nobody has a home."""
    place = folder() if wanted else None
    if place is None:
        yield None
        return
    with Cache(place, MOST) as cache:
        yield cache


def folder() -> Path | None:
    """Where it is kept: SHARDLINGS_CACHE, else the user's own cache; None where it says ``off``, or nobody has a home."""
    named = os.environ.get(VARIABLE, "")
    if named:
        return None if named == OFF else Path(named)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shardlings"
    except RuntimeError:
        return None
