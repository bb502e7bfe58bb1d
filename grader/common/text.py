"""Text for people: printable names, short lists, the name that a user probably meant, the lines of a CSV file."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence

from grader.wire.text import closest

MAX_NOTES = 100
# Characters that ``str.isprintable`` accepts, but that a page does not show.
_UNSEEN = re.compile(
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200c\\u200d\\u2800\\ufe00-\\ufe0f\\U000e0100-\\U000e01ef]"
)
_JOINERS = "\u200c\u200d"  # Invisible characters that are parts of words in several scripts.
_LONGEST_STUDENT = 100  # The most characters of a student's name.
A_NAME = f"at most {_LONGEST_STUDENT} visible characters that do not start with a dot or a blank"
A_LINK = "is a link and was not followed"
A_DOCUMENT = "is a document, which the grader does not read"
LONGEST_NAME = 1000
"""The largest number of characters of a shown name or path. File names in a zip can be longer than on a disk."""
PASSED_OVER = "is not graded for"
NOTHING_TO_GRADE = "nothing to grade"
IS_EMPTY = "the folder is empty"
SET_ASIDE = "another submission was set aside: it is not graded before the teaching staff have reviewed it"


def printable(name: str) -> str:
    """Return a name without control characters.

    Learners choose names, and control characters could change what a terminal shows.
    """
    shown = "".join(c if c.isprintable() else "?" for c in name[: LONGEST_NAME + 1])
    return shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 3] + "..."


def readable(name: str) -> str:
    """Return a name with escapes, such as ``\\n``, in place of characters that cannot be printed.

    In contrast to ``printable``, different names have different results.
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


def composed(text: str) -> str:
    """Return the text in Unicode's composed form (NFC): macOS writes ``ë`` as two characters, other systems as one."""
    return unicodedata.normalize("NFC", text)


def looks(name: str) -> str:
    """Return a key that is equal for names that look alike on a page, or that differ only in case."""
    # ``casefold`` would make equal keys of "weiß" and "weiss", which may be two students.
    seen = _UNSEEN.sub("", unicodedata.normalize("NFKC", name).lower())
    return unicodedata.normalize("NFKC", " ".join(seen.split()))


def is_a_name(student: str) -> bool:
    """Return whether pages, screens and file names can all show the student's name without changes."""
    visible = all(c.isprintable() or c in _JOINERS for c in student)
    return (
        0 < len(student) <= _LONGEST_STUDENT and visible and not student.startswith(".") and student == student.strip()
    )


def a_few(names: Sequence[str], most: int = 5) -> str:
    """Return the first names of a list as text, and how many more there are: ``a, b and 3 more``."""
    text = ", ".join(names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


def first_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """Return the first MAX_NOTES notes, and a line with the number of further notes."""
    if len(notes) <= MAX_NOTES:
        return tuple(notes)
    left = len(notes) - MAX_NOTES
    return (*notes[:MAX_NOTES], f"and {left} more {'note' if left == 1 else 'notes'}")


def near(name: str, names: Iterable[str]) -> str:
    """Return the end of an error message that suggests the most similar name; '' if no name is similar.

    For example, the end is ``; did you mean 'c3_contracting'?``.
    """
    meant = closest(name, names, 0.5)
    return f"; did you mean {meant!r}?" if meant else ""


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the end of an error message that suggests the most similar name (see ``near``), or lists all names."""
    return near(name, names := list(names)) or f"; there are {', '.join(sorted(names))}"


Line = tuple[int, list[str]]
"""The number of a line in the file, and the line's cells."""


def lines_of(data: bytes) -> list[Line]:
    """Return the lines of a CSV file in UTF-8. Commas, semicolons or tabs separate the cells.

    Raises ValueError for a file that is not CSV. The error's text begins with the number of the line, as in "3: ...".
    """
    try:
        text = composed(data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n"))
    except UnicodeDecodeError:
        raise ValueError("1: the file is not UTF-8 text; save it as CSV in UTF-8") from None
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    # Without ``strict``, an open quote would join all later lines to one cell.
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    found: list[Line] = []
    number = 1
    try:
        for cells in reader:
            # A quote in a later line can close an open quote. Then the cell contains the lines of other students.
            if any(delimiter in cell.partition("\n")[2] for cell in cells):
                raise ValueError(
                    f"{number}: a cell in quotes continues until line {reader.line_num}; "
                    "check the quotes, or write the cell in one line"
                )
            found.append((number, cells))
            number = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"{number}: the line is not CSV ({error}); check its quotes") from None
    return found
