"""The names of the nearest course that the shell offers when a user presses Tab."""

from __future__ import annotations

from grader.course.config import CourseError
from grader.course.finding import find_course


def modules(incomplete: str) -> list[str]:
    """Return the names of modules that begin with ``incomplete``."""
    return _beginning(incomplete, _names()[0])


def exercises(incomplete: str) -> list[str]:
    """Return the names of exercises that begin with ``incomplete``."""
    return _beginning(incomplete, _names()[1])


def modules_and_exercises(incomplete: str) -> list[str]:
    """Return the names of modules and exercises that begin with ``incomplete``."""
    return modules(incomplete) + exercises(incomplete)


def _beginning(incomplete: str, names: list[str]) -> list[str]:
    """Return the names that begin with the typed letters, in upper or lower case.

    Each name keeps the typed letters, such as ``C1_choose`` for ``C``, because Typer drops all other names.
    """
    typed = incomplete.lower()
    return [incomplete + name[len(typed) :] for name in names if name.lower().startswith(typed)]


def _names() -> tuple[list[str], list[str]]:
    """Return the modules and the exercises of the nearest course; none if there is no course."""
    try:
        course = find_course(None, packaged=True)
    except CourseError:
        return [], []
    return [module.id for module in course.config.modules], [*course.module_of]
