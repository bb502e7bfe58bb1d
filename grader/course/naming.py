"""Names as people type them: in full, or a beginning that says which one is meant."""

from __future__ import annotations

from collections.abc import Sequence

from grader.common.text import near
from grader.course.config import CourseError

MANY = 20
"""Names that one line may list; of more the first are, and where to find the others."""


def meant_by(name: str, names: Sequence[str], what: str) -> list[str]:
    """Return the name itself, or names with these first words (``c3``, ``03``), or the one that begins so (``c3_con``).

    ``C3``, as titles have it, is ``c3``.

    Args:
        what: a name is of, for the message.

    Raises:
        CourseError: there is none, with the nearest; or the beginning is no whole word and of several, with these.
    """
    if name in names:
        return [name]
    typed = name.lower()
    if words := [n for n in names if name and n.lower().startswith(f"{typed}_")]:
        return words
    begun = [n for n in names if name and n.lower().startswith(typed)]
    if len(begun) > 1:
        raise CourseError(f"{name!r} could be {', '.join(begun)}: write more of it")
    if not begun:
        raise CourseError(f"no {what} {name!r}{near(name, names) or _some(names)}")
    return begun


def _some(names: Sequence[str]) -> str:
    """``; there are a, b``, of very many the first."""
    listed = sorted(names)
    more = f" and {len(listed) - MANY} more: shardlings list" if len(listed) > MANY else ""
    return f"; there are {', '.join(listed[:MANY])}{more}"


def only_one(name: str, names: Sequence[str], what: str) -> str:
    """The one that is meant. Raises CourseError where that could be several."""
    found = meant_by(name, names, what)
    if len(found) > 1:
        raise CourseError(f"{name!r} could be {', '.join(found)}: write more of it")
    return found[0]
