"""One learner's work as text: a ``Submission`` of sources, in chunks. And the errors that reading one may end in."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.common.syntax import parse

Place = Path | tuple[Path, ...]  # of one student's work


@dataclass(frozen=True)
class Chunk:
    """One ``.py`` file, or one code cell of a notebook.

    ``name`` is shown in messages and is the file name when compiled: "c3_contracting.py" or "cell 7".
    """

    name: str
    text: str


@dataclass(frozen=True)
class Source:
    """What is executed in one namespace: one ``.py`` file or one notebook.

    ``name`` is the path relative to the submission. ``ends`` says after which chunk of a notebook an exercise is checked,
    as (exercise, chunk's name): a run from top to bottom would check it there, whatever later cells define anew.
    """

    name: str
    chunks: tuple[Chunk, ...]
    ends: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Submission:
    """One learner's work.

    Attributes:
        sources: exercise id -> the source in which its tasks are looked for.
        notes: what was found that a person may want to know.
        digest: SHA-256 over names and bytes of all files that were read, and over what was chosen and
            noted: of equal digests, sources and notes are equal.
    """

    student: str
    sources: Mapping[str, Source]
    notes: tuple[str, ...]
    digest: str


class SubmissionError(Exception):
    """The paths to grade are not usable; the message is one line for the person who typed them."""


class Unreadable(SubmissionError):
    """The machine failed while work was read: nothing can be said about it, good or bad."""


class NothingToGrade(SubmissionError):
    """No work was found."""


class Refused(Exception):
    """A file is not used; the message goes on after its name."""


def paths_of(place: Place) -> tuple[Path, ...]:
    """The files or folders that a place is."""
    return place if isinstance(place, tuple) else (place,)


def fingerprint(source: Source) -> str:
    """SHA-256 of the code; blanks at line ends, empty cells, file and cell names do not count."""
    chunks = ["\n".join(line.rstrip() for line in c.text.split("\n")).strip("\n") for c in source.chunks]
    return hashlib.sha256("\0".join(c for c in chunks if c).encode()).hexdigest()


def by_source(submission: Submission, names: Sequence[str]) -> list[tuple[Source | None, list[str]]]:
    """Return each source with the exercises that it holds; exercises that were not handed in have no source."""
    found: dict[tuple[Source | None, str], list[str]] = {}
    for name in dict.fromkeys(names):
        source = submission.sources.get(name)
        found.setdefault((source, "" if source else name), []).append(name)
    return [(source, members) for (source, _), members in found.items()]


VARIABLE = "leaderboard_name"
LONGEST = 80


def pseudonym_of(source: Source) -> str:
    """The text of the last ``leaderboard_name = "..."`` in a source; "" if there is none, or it is not a literal."""
    name = ""
    for chunk in source.chunks:
        if VARIABLE not in chunk.text:
            continue
        try:
            statements = parse(chunk.text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for statement in statements:
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            if any(isinstance(target, ast.Name) and target.id == VARIABLE for target in targets):
                value = getattr(getattr(statement, "value", None), "value", None)
                name = value[:LONGEST] if isinstance(value, str) else ""
    return name
