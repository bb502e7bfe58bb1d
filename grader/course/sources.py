"""Write tables into a README.md: the sources that a course cites, and the exercises that cover each source's points."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from grader.common.files import write_atomic
from grader.course.config import CourseError, Strict, read_yaml
from grader.course.loading import Course
from grader.exercise import Exercise

OPEN, CLOSE = "<!-- sources, by `shardlings build` -->", "<!-- end of sources -->"
NOTHING = "nothing to settle"  # an item's ``where`` starts with this text if no exercise covers the item
LETTER = re.compile(r"\b([A-Z])(\d{1,2})\b(?: to \1(\d{1,2})\b)?")  # matches C5 and "C2 to C4", but not H100
NAME = re.compile(r"`([a-z]+(?:_[a-z0-9]+)+)`")


class Item(Strict):
    """A point of a cited source, in the course's words.

    ``where``: the exercises that cover the point, such as "C5" for ``c5_choose``.
    """

    item: str
    where: str


class CitedSource(Strict):
    title: str
    about: str
    items: tuple[Item, ...] = Field(min_length=1)


class Sources(Strict):
    sources: tuple[CitedSource, ...] = Field(min_length=1)


def read_sources(course: Course) -> tuple[CitedSource, ...]:
    """Return the sources that the course cites; none without ``sources.yaml``.

    Raises CourseError for an invalid file.
    """
    path = _path(course)
    return read_yaml(path, Sources).sources if path.exists() else ()


def source_problems(course: Course) -> Iterator[str]:
    """Yield a problem for each item without an exercise, for each unknown name in an item, and for outdated tables."""
    try:
        sources = read_sources(course)
        current = not sources or _readme(course, sources) is None
    except CourseError as error:
        yield str(error)
        return
    by_letter = {name.split("_")[0].upper(): course.exercise(name) for name in course.module_of}
    for source in sources:
        for item in source.items:
            for problem in _item_problems(item, by_letter):
                yield f"{_path(course)}: {source.title}: {item.item[:60]!r}: {problem}"
    if not current:
        yield f"{_path(course).with_name('README.md')} is not current; run `shardlings build`"


def write_sources(course: Course) -> Path | None:
    """Update the tables of ``solutions/README.md``. Return the file's path if the file changed. Raises CourseError."""
    if not course.solved or not (sources := read_sources(course)):
        return None
    text, path = _readme(course, sources), _path(course).with_name("README.md")
    if text is not None:
        write_atomic(path, text)
    return path if text is not None else None


def _path(course: Course) -> Path:
    return course.root / "solutions" / "sources.yaml"


def _item_problems(item: Item, by_letter: dict[str, Exercise]) -> Iterator[str]:
    letters = named_exercises(item.where, {letter[0] for letter in by_letter})
    unknown = [letter for letter in letters if letter not in by_letter]
    if unknown:
        yield f"there is no exercise {unknown[0]}"
    if not letters and not item.where.startswith(NOTHING):
        yield f"names no exercise; write an exercise, such as C5, or {NOTHING!r} and the reason"
    of = [by_letter[letter] for letter in letters if letter in by_letter]
    for name in NAME.findall(item.where):
        if not any(name in _declared(exercise) for exercise in of):
            yield f"none of {', '.join(letters)} declares {name}" if letters else f"names {name} but no exercise"


def named_exercises(text: str, letters: set[str]) -> list[str]:
    """Return the exercises that a text names, such as C5, or C2 to C4.

    ``letters``: the first letters of the course's exercises. Other names are left out.
    """
    found = []
    for letter, first, last in LETTER.findall(text):
        if letter in letters:
            found += [f"{letter}{number}" for number in range(int(first), int(last or first) + 1)]
    return found


def _declared(exercise: Exercise) -> set[str]:
    kinds = (exercise.tasks, exercise.questions, exercise.checks, exercise.misconceptions, exercise.alternatives)
    return {name for kind in kinds for name in kind} | {task.name for task in exercise.tasks.values()}


def _readme(course: Course, sources: tuple[CitedSource, ...]) -> str | None:
    """Return README.md's text with its tables rewritten, or None if the tables are up to date.

    Raises CourseError if README.md lacks the two marker lines around the tables.
    """
    path = _path(course).with_name("README.md")
    try:
        text = path.read_text(encoding="utf-8")
        before, rest = text.split(OPEN)
        _, after = rest.split(CLOSE)
    except (OSError, ValueError):
        raise CourseError(
            f"{path}: write these two lines where the tables of sources belong: {OPEN} and {CLOSE}"
        ) from None
    made = f"{before}{OPEN}\n\n{tables(sources)}\n{CLOSE}{after}"
    return None if made == text else made


def tables(sources: tuple[CitedSource, ...]) -> str:
    """Return a heading, a paragraph and a table of numbered items for each source, in Markdown."""
    parts = []
    for source in sources:
        rows = [f"| {n} | {cell(i.item)} | {cell(i.where)} |" for n, i in enumerate(source.items, 1)]
        parts.append(
            "\n".join(
                [
                    f"### {source.title}",
                    "",
                    source.about.strip(),
                    "",
                    "| # | question or statement | where the course answers it |",
                    "|--:|---|---|",
                    *rows,
                    "",
                ]
            )
        )
    return "\n".join(parts)


def cell(text: str) -> str:
    """Return text escaped for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")
