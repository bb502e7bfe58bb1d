"""The parsers of submitted bytes: archives, notebooks, Python, and stamps.

A *stamp* is the time and the student that ``shardlings submit`` writes into a zip. ``Parsers`` parses in this process,
for learners on their own machine. Commands of the staff use ``batch.confined``, which parses in a confined process.
"""

from __future__ import annotations

import codecs
import html
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath

from grader.common.text import printable
from grader.intake.archives import Archive, OpenArchive
from grader.intake.facts import with_facts
from grader.intake.notebooks import (
    cell_text,
    checked_after,
    checks_in,
    code_cells,
    code_texts,
    definitions_in,
    neutralise,
    notebook_cells,
    unix_lines,
)
from grader.intake.submission import Chunk, Place, Refused, Source
from grader.wire import limits

KINDS = ("code", "markdown", "raw")
OTHER_FORMATS = {
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"{\\rtf": "a rich text document (RTF)",
    b"\xd0\xcf\x11\xe0": "a Word document",
    b"PK\x03\x04": "a Word document or another zip file",
    b"%PDF-": "a PDF document",
}
"""Formats that editors save instead of text, by a file's first bytes."""
_COOKIE = re.compile(rb"(?:[ \t\f]*(?:#[^\n]*)?\r?\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)")
# Beginnings of names of text encodings. No other codec is used: some of Python's codecs, such as bz2, are not for text.
_ALPHABETS = ("iso8859", "cp", "latin", "mac", "koi8", "big5", "gb", "shiftjis", "euc")


@dataclass(frozen=True)
class ParsedCell:
    """A cell of a notebook.

    Attributes:
        kind: code, markdown or raw; None if the cell is damaged.
        text: the cell's text; None if the cell is damaged.
        marked: the cell's name in nbgrader's metadata, if a cell in nbgrader's gradebook has this name; else "".
        ident: the cell's id in the notebook file, if a cell in nbgrader's gradebook has this id as its name; else "".
        defines: the names in ``wanted`` (see ``Parsers.cells``) that the cell defines.
        checks: the exercises that the cell checks.
    """

    kind: str | None
    text: str | None
    marked: str = ""
    ident: str = ""
    defines: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stamp:
    """The time and the student in a manifest of ``shardlings submit``; None and '' if it lacks them."""

    time: datetime | None = None
    student: str = ""


@dataclass(frozen=True)
class Python:
    """A cell's code as plain Python, and the lines of IPython syntax that were left out."""

    chunk: Chunk
    left_out: tuple[str, ...] = ()


class Parsers:
    """Parsers of submitted bytes that run in this process, without limits.

    The class ``batch.confined.Confined`` has methods of equal names, which parse in a confined process and within
    limits.
    """

    def __init__(self) -> None:
        self._open: list[tuple[bytes, OpenArchive]] = []

    def for_submission(self, place: Place) -> Parsers:
        """Return parsers for the submission at ``place``."""
        return Parsers()

    def source(self, path: str, data: bytes, exercises: Collection[str]) -> tuple[Source, list[str]]:
        """Return the source in a ``.py`` file or notebook, and notes. Raises Refused for a file that cannot be used.

        Args:
            path: the file's path in the submission.
            exercises: the exercises to look for in a notebook's calls of ``check``.
        """
        name, file, text = printable(path), PurePosixPath(path), text_of(data)
        if not text.strip():
            raise Refused("is empty")
        if file.suffix.lower() == ".py":
            return Source(name, with_facts([Chunk(printable(file.name), text)])), []
        cells, notes = notebook_cells(text), list[str]()
        chunks = tuple(code_cells(cells, name, notes))
        if sum(len(c.text) for c in chunks) > limits.MAX_FILE:
            most = limits.MAX_FILE // limits.MIB
            raise Refused(f"holds more than {most} MiB of code and was not read; hand in only your work")
        checks = (checks_in(text, exercises) if text else () for text in code_texts(cells))
        ends = tuple(checked_after(checks, chunks))
        return Source(name, with_facts(chunks), ends), notes

    def archive(self, data: bytes, shown: str) -> Archive:
        """Return the contents of a ``.zip``. Raises Refused if the bytes are not a ``.zip``."""
        return self._opened(data).contents(shown)

    def member(self, data: bytes, number: int) -> bytes:
        """Return the bytes of one member of an archive. Raises Refused if the member cannot be read or is too large."""
        return self._opened(data).member(number)

    def _opened(self, data: bytes) -> OpenArchive:
        for known, archive in self._open:
            if known == data:
                return archive
        self._open = [*self._open[1 - limits.MAX_ZIPS :], (data, OpenArchive(data))]
        return self._open[-1][1]

    def stamp(self, manifest: bytes) -> Stamp:
        """Return the time and the student that a manifest states."""
        try:
            found = json.loads(manifest)
        except (ValueError, RecursionError):
            return Stamp()
        if not isinstance(found, dict):
            return Stamp()
        student = found.get("student")
        try:
            time = datetime.fromisoformat(found["submitted"])
            time = time.astimezone(UTC) if time.tzinfo else None
        except (ValueError, LookupError, TypeError, OverflowError):
            time = None
        return Stamp(time, student[: limits.MAX_NAME] if isinstance(student, str) else "")

    def cells(
        self, data: bytes, names: Collection[str], wanted: Collection[str], exercises: Collection[str]
    ) -> Sequence[ParsedCell]:
        """Return all cells of a notebook. Raises Refused if the bytes are not a notebook.

        Args:
            names: the names of the cells in nbgrader's gradebook.
            wanted: the names of variables and functions to look for in cells.
            exercises: the exercises to look for in calls of ``check``.
        """
        text = text_of(data)
        if not text.strip():
            raise Refused("is empty")
        return [_cell(cell, names, wanted, exercises) for cell in notebook_cells(text)]

    def strings(self, data: bytes, suffix: str) -> str:
        """Return a file's readable text: a notebook's strings, the text of an HTML page, other files' content."""
        text = data.decode("utf-8", "replace")
        if suffix == ".ipynb":
            try:
                return "\n".join(_strings(json.loads(text)))
            except (ValueError, RecursionError):
                pass
        if suffix in (".html", ".ipynb"):
            text = html.unescape(re.sub(r"<[^>]*>", "", text))
        return text

    def python(self, texts: Mapping[str, str]) -> Sequence[Python]:
        """Convert the code of cells, by cell name, to plain Python."""
        plain = {name: neutralise(text) for name, text in texts.items()}
        chunks = with_facts(Chunk(name, text) for name, (text, _) in plain.items())
        return [Python(chunk, tuple(left_out)) for chunk, (_, left_out) in zip(chunks, plain.values(), strict=True)]


def _cell(cell: object, names: Collection[str], wanted: Collection[str], exercises: Collection[str]) -> ParsedCell:
    text = cell_text(cell) if isinstance(cell, dict) else None
    kind = cell.get("cell_type") if isinstance(cell, dict) else None
    if text is None or not isinstance(kind, str) or not isinstance(cell, dict):
        return ParsedCell(None, None)
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    marked = marks.get("grade_id") if isinstance(marks, dict) else None
    is_code = kind == "code"
    return ParsedCell(
        kind if kind in KINDS else "markdown",
        text,
        _if_known(marked, names),
        _if_known(cell.get("id"), names),
        tuple(sorted(definitions_in(text) & {*wanted})) if is_code else (),
        tuple(checks_in(text, exercises)) if is_code else (),
    )


def _if_known(name: object, names: Collection[str]) -> str:
    return name if isinstance(name, str) and name in names else ""


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        yield "".join(value)  # a list of strings holds the lines of one text
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)
    elif isinstance(value, str):
        yield value


# -- the text of a file ------------------------------------------------------------------------


def text_of(data: bytes) -> str:
    """Return a file's text with Unix line ends. Raises Refused if Python could not read the file as text."""
    for first, kind in OTHER_FORMATS.items():
        if data.startswith(first):
            raise Refused(f"is {kind}; save it as plain UTF-8 text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        text = _as_it_says(data)
        if text is None:
            raise Refused(f"is not UTF-8 text (line {line}); save it as UTF-8") from error
    if "\0" in text:
        raise Refused(f"holds a NUL byte (line {text[: text.index(chr(0))].count(chr(10)) + 1}); save it as text")
    return unix_lines(text)


def _as_it_says(data: bytes) -> str | None:
    """Decode bytes as Python does, with the encoding that a line such as ``# coding: latin-1`` names.

    Return None if there is no such line, or the encoding is not usable.
    """
    cookie = _COOKIE.match(data)
    try:
        name = codecs.lookup(cookie[1].decode()).name if cookie else ""
        return data.decode(name) if name.replace("-", "").replace("_", "").startswith(_ALPHABETS) else None
    except (LookupError, UnicodeDecodeError):
        return None
