"""The class roster: a gradebook exported from Canvas, or a plain CSV, distinguished by the header."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from grader.batch.late import Extension, extension_of, is_extension
from grader.common.text import A_NAME, Line, is_a_name, lines_of, looks, readable
from grader.course.config import CourseError
from grader.reports.people import Person

PLAIN = ("id", "name", "email", "section", "extension")  # columns of a plain roster; only id is required


class Roster:
    """A roster (class list): a CSV with the first columns of a Canvas gradebook, or a plain CSV with a column ``id``.

    A plain roster may also have the other columns in ``PLAIN``. Its rows are stored under Canvas's column names.

    Attributes:
        plain: True if the file is a plain roster.
        header: Canvas's names of the columns. Columns of assignments have names such as "TITLE (NUMBER)".
        rows: one row per student, which maps column names to cells.
        points: Canvas's row with the points possible; {} if the file has no row of this kind.
        data: the content of the file.
    """

    def __init__(self, path: Path, data: bytes | None = None) -> None:
        """Read a roster from ``data``, or from the file ``path`` if ``data`` is None."""
        self.path = path
        self.data, header, lines = _read(path, data)
        lowered = [name.lower() for name in header]
        canvas = {"Student", "ID"} <= {*header} and "extension" not in lowered
        self.plain = not canvas and "id" in lowered
        self._extensions: list[tuple[int, str, str]] = []  # (line number, student's id, cell)
        if self.plain:
            self._expect_columns(lowered, lines)
            header, lines = self._in_canvas_words(lowered, lines)
        elif not canvas:
            raise CourseError(
                f"the roster {path} is neither a Canvas gradebook, which has the columns Student and ID, nor a plain "
                f"roster, which has the column id. A plain roster may have the columns {', '.join(PLAIN)}"
            )
        self.header = header
        found = [(number, dict(zip(self.header, line, strict=False))) for number, line in lines]
        self.points = next((row for _, row in found if row["Student"].strip() == "Points Possible"), {})
        found = [
            (n, row) for n, row in found if row.get("ID", "").strip() and row["Student"].strip() != "Student, Test"
        ]
        self._expect_own_addresses(found)
        self.rows = [row for _, row in found]
        self._by_name = _rows_by(self.rows, _names_of)
        # A name may be an address without its host: the name "alice" finds the student with the address alice@x.edu.
        # ``row_of`` looks for such an address only if no student has the login "alice".
        self._by_mail = _rows_by(self.rows, lambda row: {name.split("@")[0] for name in _names_of(row)})
        # Only Canvas puts the number of a student, its ID, into the names of files.
        self._by_number = {} if self.plain else _rows_by(self.rows, lambda row: {row["ID"].strip()})

    def _expect_own_addresses(self, rows: Sequence[tuple[int, dict[str, str]]]) -> None:
        """Raise CourseError if two lines have equal e-mail addresses, or if a line's address is another line's id.

        Such an address could join the results of two students. Only a plain roster has ids that the staff wrote.
        """
        lines: dict[str, int] = {}
        ids = {looks(row["ID"]) for _, row in rows} if self.plain else set[str]()
        for number, row in rows:
            for name in sorted(n for n in _names_of(row) if n in ids or re.fullmatch(r"\S+@\S+", n)):
                if first := lines.get(name):
                    raise CourseError(
                        f"{self.path}:{first} and {number}: two lines have the id or e-mail address {name}; "
                        "give each student one line, with an address of its own or none"
                    )
                lines[name] = number

    def _in_canvas_words(self, header: list[str], lines: Iterable[Line]) -> tuple[list[str], list[Line]]:
        """Convert a plain roster to Canvas's columns and rows. Raises CourseError for an invalid line."""
        rows: dict[str, Line] = {}
        for number, line in lines:
            row = {name: " ".join(cell.split()) for name, cell in zip(header, line, strict=False)}
            if not any(row.values()):
                continue
            if any(cell.strip() for cell in line[len(header) :]):
                raise CourseError(
                    f"{self.path}:{number}: more cells than columns; put quotes around cells that contain a separator"
                )
            if not (student := row.get("id", "")):
                raise CourseError(f"{self.path}:{number}: no id")
            if not is_a_name(student):
                raise CourseError(f"{self.path}:{number}: {readable(student)} cannot be an id; write {A_NAME}")
            if first := rows.get(looks(student)):
                raise CourseError(
                    f"{self.path}:{first[0]} and {number}: the ids {first[1][1]} and {student} look alike; "
                    "keep one line, or change an id"
                )
            self._extensions.append((number, student, row.get("extension", "")))
            cells = [row.get(name, "") for name in ("name", "email", "section")]
            rows[looks(student)] = (number, [cells[0] or student, student, student, *cells[1:]])
        return ["Student", "ID", "SIS Login ID", "Email", "Section"], list(rows.values())

    def _expect_columns(self, header: list[str], lines: Iterable[Line]) -> None:
        """Raise CourseError if a plain roster has a column twice, or an extension under another name."""
        unknown = [name for name in header if name not in PLAIN and "extension" in name]
        cells = ((name, cell) for _, line in lines for name, cell in zip(header, line, strict=False))
        unknown += [name for name, cell in cells if name not in PLAIN and name[:3] == "ext" and is_extension(cell)]
        if unknown:
            raise CourseError(
                f"the roster {self.path} has a column {unknown[0]}, which the grader ignores; rename it to extension"
            )
        if twice := [name for name in PLAIN if header.count(name) > 1]:
            raise CourseError(f"the roster {self.path} has two columns {twice[0]}; keep one")

    def without(self, students: Iterable[str]) -> list[str]:
        """Return the login names of all students on the roster who are not in ``students``."""
        there = [self.row_of(student) for student in students]
        return [row.get("SIS Login ID", "").strip() or row["ID"].strip() for row in self.rows if row not in there]

    @property
    def has_extensions(self) -> bool:
        return any(cell for _, _, cell in self._extensions)

    def extensions(self, modules: Sequence[str]) -> Callable[[str], Extension]:
        """Return a function from student to deadline extension. Raises CourseError for an invalid cell."""
        found = {
            student: extension_of(cell, f"{self.path}:{number}", modules) for number, student, cell in self._extensions
        }
        return lambda student: found.get((self.row_of(student) or {}).get("ID", ""), {})

    def row_of(self, student: str) -> dict[str, str] | None:
        """Return a student's row; None for an unknown or ambiguous name.

        Args:
            student: login, SIS id, Canvas's ID, e-mail address with or without host, or the name of a file downloaded
                from Canvas, such as "liddellalice_12_34_...".
        """
        name = looks(student)
        download = re.match(r"[^\W_]+_(?:late_)?(\d+)(?:$|_\d+(?:_|$))", name)
        number = download[1] if download else ""
        found = self._by_name.get(name) or self._by_mail.get(name) or self._by_number.get(number)
        return found[0] if found and len(found) == 1 else None

    def lists(self, student: str) -> bool:
        """Return whether a name is the login, id or whole e-mail address of exactly one student."""
        return len(self._by_name.get(looks(student), ())) == 1

    def login(self, student: str) -> str:
        """Return the login under which a student is graded, or ``student`` if the roster has no such student."""
        row = self.row_of(student) or {}
        return row.get("SIS Login ID", "").strip() or row.get("ID", "").strip() or student

    def person(self, student: str) -> Person | None:
        """Return the student's name ("" if the roster has only a login) and section; None for an unknown student."""
        row = self.row_of(student)
        if row is None:
            return None
        name = row["Student"].strip()
        return Person("" if looks(name) in _names_of(row) else name, row.get("Section", "").strip())

    def people(self, students: Iterable[str]) -> dict[str, Person]:
        """Return the name and section of each student. Students who are not on the roster are left out."""
        return {student: person for student in students if (person := self.person(student))}

    def column(self, module: str) -> str:
        """Return the name of a module's column in Canvas; the module's id if Canvas has no assignment for it."""
        own = [name for name in self.header if re.fullmatch(rf"{re.escape(module)} \(\d+\)", name)]
        return own[0] if own else module


def _read(path: Path, data: bytes | None) -> tuple[bytes, list[str], list[Line]]:
    """Return (content, column names, lines) of a CSV file. Raises CourseError."""
    try:
        data = path.read_bytes() if data is None else data
        (_, header), *lines = lines_of(data) or [(1, [])]
    except OSError as error:
        raise CourseError(f"the roster {path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise CourseError(f"{path}:{error}") from None
    return data, [name.strip() for name in header], lines


def _names_of(row: dict[str, str]) -> set[str]:
    """Return the keys (``looks``) of the names under which the student of this row may submit."""
    return {looks(row.get(column, "")) for column in ("SIS Login ID", "SIS User ID", "ID", "Email")} - {""}


def _rows_by(
    rows: Sequence[dict[str, str]], names: Callable[[dict[str, str]], set[str]]
) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        for name in names(row):
            same = found.setdefault(name, [])
            same += [row] if row not in same else []
    return found
