"""A submission as sources (files or notebooks) made of chunks (files or cells), and the errors of reading it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader import Mistake

Place = Path | tuple[Path, ...]  # the path or paths of one submission


@dataclass(frozen=True)
class CodeFacts:
    """Facts about a chunk's syntax. The defaults are right for code that Python cannot parse.

    Attributes:
        repeatable: False if the code uses a name, such as ``time``, that could give another answer in another run.
        pseudonym: the name for the leaderboard; "" if it is not a string, None if the code assigns no name.
        stubs: the number of stubs (definitions without content) in the chunk; None if the chunk has other definitions.
        left: functions at top level that are still stubs.
        places: for each name defined at top level, the first and last line of its last definition.
    """

    repeatable: bool = False
    pseudonym: str | None = None
    stubs: int | None = None
    left: tuple[str, ...] = ()
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Chunk:
    """One ``.py`` file, or one code cell of a notebook.

    Attributes:
        name: the name that tracebacks show for the code: "c3_contracting.py" or "cell 7".
        facts: facts about a submission's code; None for the grader's own code.
    """

    name: str
    text: str
    facts: CodeFacts | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Source:
    """Code that runs in one namespace: one ``.py`` file or one notebook.

    Attributes:
        name: the path relative to the submission.
        ends: pairs (exercise, name of a chunk). The grader reads a function or answer of the exercise as it was after
            this chunk, or after the last later chunk that defines it again.
    """

    name: str
    chunks: tuple[Chunk, ...]
    ends: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Submission:
    """One learner's submission.

    Attributes:
        sources: exercise id -> the source that holds its tasks.
        notes: remarks for the student and the staff.
        digest: SHA-256 over names and bytes of all files that were read, the choice of sources, and the notes.
        unread: the notes about files that could not be read, or that belong to no exercise.
    """

    student: str
    sources: Mapping[str, Source]
    notes: tuple[str, ...]
    digest: str
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReviewCase:
    """A submission or a file that a person must review.

    Attributes:
        student: the student's name, which may come from a file's name; "" if the file names no student.
        reason: why a person must review the submission or file, in one line.
        paths: the files and folders that the reason is about.
        graded: False if the grader set the submission aside.
        followed: True if a later run read another submission of the student.
        relative: ``paths`` relative to the folder of reports, in the same order, if the case is in the database. Cases
            that older versions stored have no ``paths``.
    """

    student: str
    reason: str
    paths: tuple[Path, ...]
    graded: bool = False
    followed: bool = False
    relative: tuple[Path, ...] = ()


def reasons_of(cases: Iterable[ReviewCase], *, graded: bool = False) -> dict[str, str]:
    """Return, for each student, the reasons of all cases with this value of ``graded``."""
    found: dict[str, dict[str, None]] = {}
    for case in cases:
        if case.graded == graded:
            found.setdefault(case.student, {})[case.reason] = None
    return {student: "; ".join(found[student]) for student in sorted(found)}


class SubmissionError(Mistake):
    """The paths to grade are not usable. The message is one line for the person who typed the paths."""


class Unreadable(SubmissionError):
    """A submission cannot be judged: the machine failed to read it, or nothing shows which of two zips counts."""


class NothingToGrade(SubmissionError):
    """No submission was found."""


class Refused(Exception):
    """The grader cannot use a file. The message continues a sentence that starts with the file's name."""


def paths_of(place: Place) -> tuple[Path, ...]:
    """Return the paths of a submission as a tuple."""
    return place if isinstance(place, tuple) else (place,)


def source_digest(source: Source) -> str:
    """Return SHA-256 of a source's code, without comment lines, trailing blanks, empty cells and names of cells."""
    chunks = ["\n".join(_code_lines(chunk.text)).strip("\n") for chunk in source.chunks]
    return hashlib.sha256("\0".join(c for c in chunks if c).encode()).hexdigest()


def exact_digest(source: Source) -> str:
    """Return the SHA-256 of a source with all names and comments: a program's results may depend on its own text."""
    parts = [source.name, source.ends, [(chunk.name, chunk.text) for chunk in source.chunks]]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _code_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n") if not line.lstrip().startswith("#")]


def by_source(submission: Submission, names: Sequence[str]) -> list[tuple[Source | None, list[str]]]:
    """Return each source with its exercises. Exercises without a submission have None instead of a source."""
    found: dict[tuple[Source | None, str], list[str]] = {}
    for name in dict.fromkeys(names):
        source = submission.sources.get(name)
        found.setdefault((source, "" if source else name), []).append(name)
    return [(source, members) for (source, _), members in found.items()]
