"""Find leaks in an nbgrader course folder: solutions, hidden checks, answers, the seed, and data of other students.

Students get ``release/`` (made from ``source/``) and ``feedback/`` (made from ``autograded/``). Files in ``submitted/``
come from students, and may contain only text that students could write. Every link is reported, because a program that
copies a link may copy the link's target.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from grader.authoring.leaks import hidden_lines, normal_form
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.exercise import Quantity, Question, Table
from grader.intake.disk import bytes_of
from grader.intake.parsers import Parsers
from grader.intake.submission import Refused, Unreadable
from grader.judging.answers import kind_of, wanted
from grader.judging.units import unit_of
from grader.wire import limits

STEPS = ("source", "release", "submitted", "autograded", "feedback")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])", re.IGNORECASE)
GRADEBOOK = "gradebook.db"
SQLITE = b"SQLite format 3\0"
COMMENTS = """
select s.student_id, c.text from
  (select notebook_id, auto_comment as text from comment union all select notebook_id, manual_comment from comment) c
  join submitted_notebook n on n.id = c.notebook_id join submitted_assignment s on s.id = n.assignment_id
where c.text is not null
"""
TELLING_LINE = 30  # The shortest line to search for, in characters. Shorter lines occur in any file.
TELLING_DIGITS = 5  # The least number of digits of a number to search for. Shorter numbers occur by chance.


def scan(course: Course, folder: Path, parsers: Parsers) -> Iterator[tuple[Path, str]]:
    """Yield (file, leak) for each leak in the folders of nbgrader's steps (``STEPS``) below ``folder``.

    Also yield each unreadable file with the reason. Text of a student's own submission is no leak.
    """
    lines = dict(hidden_lines(course))
    checks = {n: what for n, what in lines.items() if _of_check(course, what)}
    read = _Texts(folder, parsers)
    others = _Others(folder, read)
    # All files of a student come one after another, and are compared with the whole submission of the student.
    own_of = lru_cache(1)(partial(_own, read=read))
    for step in STEPS:
        for path in _files_and_links(folder / step):
            if os.path.islink(path):
                yield path, f"a link, to {os.readlink(path)}"
                continue
            text = read.text(path)
            if why := read.refused.get(path):
                yield path, f"the file was not scanned, because it {why}"
            own = own_of(_submission_of(folder, path)) if step in ("autograded", "feedback") else _Own()
            leaks = [*others.leaks(path), *_lines_in(text, checks if step == "submitted" else lines, own.lines)]
            if len(course.config.seed) > 3 and course.config.seed in text:
                leaks.append("the course's seed")
            if step != "submitted":
                student = path.relative_to(folder).parts[1] if own.lines else None
                leaks += _answers_in(course, text, own.numbers, student)
            yield from ((path, leak) for leak in leaks)


def _lines_in(text: str, hidden: dict[str, str], own: Collection[str]) -> Iterator[str]:
    """Yield hidden lines that are in ``text`` and not in the student's own submission."""
    for line in dict.fromkeys(text.splitlines()):
        form = normal_form(line)
        if form in hidden and form not in own:
            yield f"a line of {hidden[form]}: {line.strip()[:80]}"


class _Others:
    """Finds data that a student must not see: files of other students, lines of these files, and the gradebook."""

    def __init__(self, folder: Path, read: _Texts) -> None:
        self.folder, self._read = folder, read
        self.owners: dict[str, set[str]] = defaultdict(set)  # file's digest or line -> students who submitted it
        self.released = {read.digest(p) for step in ("source", "release") for p in _files(folder / step)}
        given = {_line(t) for step in ("source", "release") for p in _files(folder / step) for t in read.lines(p)}
        for path in _files(folder / "submitted"):
            student = path.relative_to(folder).parts[1]
            self.owners[read.digest(path)].add(student)
            for line in {_line(t) for t in read.lines(path)} - given:
                self.owners[line].add(student)
        for student, comment in _comments(folder / GRADEBOOK):
            for line in map(_line, comment.splitlines()):
                self.owners[line].add(student)

    def leaks(self, path: Path) -> Iterator[str]:
        """Yield a message for each leak in a file.

        A database is a leak, because it may be the gradebook. In a student's file in ``autograded/`` or ``feedback/``,
        a copy of another student's file is a leak. A long line is a leak if exactly one student has this line (in files
        or comments), and the file is not this student's.
        """
        if self._read.data(path).startswith(SQLITE):
            yield "a database, such as the gradebook"
            return
        step, student, *_ = path.relative_to(self.folder).parts
        if step not in ("autograded", "feedback"):
            return
        digest = self._read.digest(path)
        owners = self.owners.get(digest, set()) if digest else set()
        if owners and student not in owners and digest not in self.released:
            yield f"a copy of a file that {_names(owners)} handed in"
            return
        for text in dict.fromkeys(self._read.lines(path)):
            owners = self.owners.get(_line(text), set()) if len(_line(text)) >= TELLING_LINE else set()
            if len(owners) == 1 and student not in owners:
                yield f"a line of {_names(owners)}: {text.strip()[:80]}"


def _names(students: set[str]) -> str:
    return " and ".join(sorted(students)[:3])


def _files_and_links(folder: Path) -> list[Path]:
    """Return all files, links and unreadable folders in a folder. A path may be longer than the system allows."""
    found: list[Path] = []
    if folder.is_dir():
        for place, folders, files in os.walk(folder, onerror=lambda error: found.append(Path(error.filename))):
            paths = [os.path.join(place, name) for name in [*folders, *files]]
            found.extend(Path(path) for path in paths if os.path.isfile(path) or os.path.islink(path))
    return sorted(found)


def _files(folder: Path) -> list[Path]:
    return [path for path in _files_and_links(folder) if not os.path.islink(path)]


def _line(text: str) -> str:
    return " ".join(text.split())


def _comments(gradebook: Path) -> list[tuple[str, str]]:
    """Return (student, comment) for all comments in the gradebook, by people and by the grader."""
    if not gradebook.is_file():
        return []
    with contextlib.closing(sqlite3.connect(f"{gradebook.resolve().as_uri()}?mode=ro", uri=True)) as database:
        try:
            return database.execute(COMMENTS).fetchall()
        except sqlite3.Error as error:
            raise CourseError(f"cannot read {gradebook}: {error}") from None


class _Texts:
    """Reads the text of files. ``refused`` has the unreadable files with reasons. They are not parsed again."""

    def __init__(self, folder: Path, parsers: Parsers) -> None:
        self._folder, self._parsers = folder, parsers
        self.refused: dict[Path, str] = {}

    def text(self, path: Path) -> str:
        if path in self.refused:
            return ""
        data = self.data(path)
        try:
            parsers = self._parsers.for_submission(_submission_of(self._folder, path))
            return parsers.strings(data, path.suffix) if data else ""
        except (Refused, Unreadable) as error:
            self.refused[path] = str(error)
            return ""

    def data(self, path: Path) -> bytes:
        """Return the bytes of a file; b"" if the file is unreadable or too large."""
        try:
            return bytes_of(path, limits.MAX_READ)
        except (Refused, Unreadable) as error:
            self.refused[path] = str(error)
            return b""

    def digest(self, path: Path) -> str:
        """Return a digest of a file; "" if the file is empty, unreadable or too large."""
        data = self.data(path)
        return hashlib.sha256(data).hexdigest() if data else ""

    def lines(self, path: Path) -> list[str]:
        return self.text(path).splitlines()


@dataclass(frozen=True)
class _Own:
    """A student's submission for an assignment: its lines (see ``normal_form``) and its numbers."""

    lines: frozenset[str] = frozenset()
    numbers: frozenset[float] = frozenset()


def _own(place: Path, read: _Texts) -> _Own:
    """Read all files of the submission in the folder ``place``."""
    texts = [read.text(path) for path in _files(place)]
    lines = (normal_form(line) for text in texts for line in text.splitlines())
    return _Own(frozenset(lines), frozenset(number for text in texts for number in _numbers(text)))


def _submission_of(folder: Path, path: Path) -> Path:
    """Return the folder of the submission from which a file comes; the file itself if no student submitted it."""
    step, *place = path.relative_to(folder).parts
    return path if step in ("source", "release") else folder.joinpath("submitted", *place[:2])


def _of_check(course: Course, what: str) -> bool:
    exercise, _, name = what.partition("/")
    return name in course.exercise(exercise).checks


def _answers_in(course: Course, text: str, own: Collection[float], student: str | None) -> Iterator[str]:
    """Yield each answer (in SI units or in the question's unit) that is in ``text`` and not in the submission."""
    found = [n for n in _numbers(text) if n not in own]
    for exercise in course.exercises.values():
        for question in exercise.questions.values():
            if course.config.variants.mode == "per_student" and student is None:
                continue  # the right answer depends on the student, and this file's student is unknown
            for answer in _figures(question, course.params(question, student or "")):
                if len(f"{answer:.12g}".strip("0").replace(".", "")) >= TELLING_DIGITS and any(
                    abs(n - answer) <= 1e-6 * abs(answer) for n in found
                ):
                    yield f"the answer to {question.name}: {answer:.6g}"
                    break


def _figures(question: Question, params: dict[str, Any]) -> list[float]:
    """Return the numbers of a question's answer, in SI units and in the question's unit; [] if there are no numbers."""
    if isinstance(question.answer, Quantity):
        value = question(**params)
        return [value, value / unit_of(question.answer.unit)[0]]
    if not isinstance(question.answer, Table):
        return []
    kind = kind_of(question, params)
    return sorted(_numbers(kind.written(wanted(question, question.fn, params, kind))))


def _numbers(text: str) -> set[float]:
    """Return a text's numbers of at least TELLING_DIGITS digits, because short numbers occur by chance."""
    digits = (t for t in NUMBER.findall(text) if len(re.sub(r"e.*|\D", "", t.lower()).strip("0")) >= TELLING_DIGITS)
    return {float(t) for t in digits}
