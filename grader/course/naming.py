"""Resolve names as people type them: full names or prefixes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from grader.common.text import near
from grader.course.config import CourseError

MANY = 20
"""One line lists at most this many names. A longer list shows the first names, and the command that lists all names."""


def meant_by(name: str, names: Sequence[str], what: str) -> list[str]:
    """Return the names that ``name`` means. Upper and lower case do not matter.

    These rules apply in order, until one finds a name:

    - ``name`` is one of ``names``, and means this name.
    - ``name`` means all names that begin with ``name`` and an underscore: ``03`` means ``03_matmuls``.
    - ``name`` means the only name that begins with ``name``: ``c3_c`` means ``c3_contracting``.

    Raises CourseError if no rule finds a name. ``what`` is the kind of the names, such as "exercise", for the error's
    message.
    """
    if name in names:
        return [name]
    typed = name.lower()
    if words := [n for n in names if name and n.lower().startswith(f"{typed}_")]:
        return words
    begun = [n for n in names if name and n.lower().startswith(typed)]
    if len(begun) > 1:
        raise CourseError(f"{name!r} could be {', '.join(begun)}: write more of the name")
    if not begun:
        raise CourseError(f"no {what} {name!r}{_of_path(Path(name), names) or near(name, names) or _some(names)}")
    return begun


def _of_path(path: Path, names: Sequence[str]) -> str:
    """Return what to write in place of the path of an exercise's file, or ''."""
    if path.stem not in names:
        return ""
    return f"; write the name {path.stem}; check, explain and watch take your folder as --work {path.parent}"


def _some(names: Sequence[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - MANY} more: shardlings list" if len(listed) > MANY else ""
    return f"; there are {', '.join(listed[:MANY])}{more}"


def only_one(name: str, names: Sequence[str], what: str) -> str:
    """Return the only name that ``name`` means (see ``meant_by``). Raises CourseError for several names or none."""
    found = meant_by(name, names, what)
    if len(found) > 1:
        raise CourseError(f"{name!r} could be {', '.join(found)}: write more of the name")
    return found[0]


def check_named(where: str, exercises: Sequence[str], names_of: Callable[[str], Sequence[str]]) -> tuple[str, str]:
    """Return (exercise, check or question) for ``EXERCISE/CHECK``, ``CHECK`` or ``EXERCISE``; each may be a prefix.

    The check is '' for an exercise as a whole. Without an exercise, a check's name must occur in only one exercise.

    Args:
        exercises: ids of all exercises.
        names_of: returns the names of an exercise's checks and questions.

    Raises:
        CourseError: ``where`` means no check and no exercise, or several.
    """
    name, slash, check = where.partition("/")
    if slash:
        exercise = only_one(name, exercises, "exercise")
        return exercise, only_one(check, names_of(exercise), "check or question")
    owners: dict[str, list[str]] = {}
    for exercise in exercises:
        for one in names_of(exercise):
            owners.setdefault(one, []).append(exercise)
    found = only_one(name, [*dict.fromkeys([*exercises, *owners])], "exercise, check or question")
    if found in exercises:
        return found, ""
    if len(owners[found]) > 1:
        several = ", ".join(owners[found])
        raise CourseError(f"several exercises have {found}: {several}; name the exercise too: EXERCISE/{found}")
    return owners[found][0], found
