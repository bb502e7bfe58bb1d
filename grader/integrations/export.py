"""Graded reports in the formats of others: a long CSV, and a CSV that Canvas imports; and who is who on Canvas.

Every text may come from a learner; ``csv_cell`` sees to it that no spreadsheet takes it for a formula.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from grader.common.files import write_atomic
from grader.common.result import Report
from grader.course.config import CourseError
from grader.reports.tables import csv_cell

COLUMNS = ("student", "module", "exercise", "kind", "check", "label", "hidden", "status", "earned", "points", "reason", "misconception")  # fmt: skip
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
CANVAS_OWN = (*CANVAS, "Root Account", "Integration ID")  # about the student, in the order of Canvas's export


def load(folder: Path) -> list[Report]:
    """The reports that ``grade`` wrote there, by student. Raises CourseError."""
    paths = sorted((folder / "reports").glob("*.json"))
    if not paths:
        raise CourseError(f"no reports in {folder}; write them with: shardlings grade SUBMISSIONS --out {folder}")
    reports = []
    for path in paths:
        try:
            reports.append(Report.loads(path.read_text(encoding="utf-8")))
        except (ValidationError, UnicodeDecodeError):
            raise CourseError(f"{path} is not a whole report; grade again to mend it") from None
    return sorted(reports, key=lambda r: r.student)


def write_csv(reports: Iterable[Report], path: Path) -> None:
    """One line per result."""
    lines: list[tuple[object, ...]] = [
        (r.student, e.module, e.exercise, one.kind, one.name, one.label, "no" if one.public else "yes", one.status,
         one.earned, one.points, one.reason, one.misconception)
        for r in reports for e in r.exercises for one in e.results
    ]  # fmt: skip
    _write(path, [COLUMNS, *lines])


class Roster:
    """Who is who on Canvas: a gradebook that was exported there, or any CSV with its first columns.

    Attributes:
        header: the columns; those of assignments are named "TITLE (NUMBER)" by Canvas.
        rows: a line per student, by column.
        points: the line of points possible, where there is one.
    """

    def __init__(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise CourseError(
                f"the roster {path} cannot be read: {getattr(error, 'strerror', None) or error}"
            ) from None
        first = text.split("\n", 1)[0]
        lines = list(csv.reader(io.StringIO(text), delimiter=";" if first.count(";") > first.count(",") else ","))
        self.header = [name.strip() for name in lines[0]] if lines else []
        if "Student" not in self.header or "ID" not in self.header:
            raise CourseError(
                f"the roster {path} has no columns Student and ID; export the gradebook on Canvas to get one"
            )
        found = [dict(zip(self.header, line, strict=False)) for line in lines[1:]]
        self.points = next((row for row in found if row["Student"].strip() == "Points Possible"), {})
        self.rows = [row for row in found if row.get("ID", "").strip() and row["Student"].strip() != "Student, Test"]
        self._by_name: dict[str, list[dict[str, str]]] = {}
        for row in self.rows:
            for column in ("SIS Login ID", "SIS User ID", "ID"):
                if name := row.get(column, "").strip().lower():
                    for key in {name, name.split("@")[0]}:
                        if row not in self._by_name.setdefault(key, []):
                            self._by_name[key].append(row)

    def row_of(self, student: str) -> dict[str, str] | None:
        """By login, SIS id, Canvas's number, or as Canvas names downloads: "liddellalice_12_34_...", or "liddellalice_12".

        None for a name that is not in it, and for one that could be two students'.
        """
        download = re.match(r"[^\W_]+_(?:late_)?(\d+)(?:$|_\d+(?:_|$))", student.lower())
        found = self._by_name.get(student.lower()) or (self._by_name.get(download[1]) if download else None)
        return found[0] if found and len(found) == 1 else None

    def login(self, student: str) -> str:
        """The name to grade a student under; what is no known student's stays as it is."""
        row = self.row_of(student) or {}
        return row.get("SIS Login ID", "").strip() or row.get("ID", "").strip() or student

    def column(self, module: str) -> str:
        """Canvas's own name of a module's column, where the assignment is there already."""
        own = [name for name in self.header if re.fullmatch(rf"{re.escape(module)} \(\d+\)", name)]
        return own[0] if own else module


def write_canvas(
    reports: Iterable[Report], path: Path, extensions: frozenset[str] = frozenset(), roster: Roster | None = None
) -> list[str]:
    """Canvas's gradebook import: a column per module. Returns who is not in the roster, and so not in the file.

    Canvas knows a student by its own ID, and an assignment by the number in its column's name: both come from the
    roster. Without one, students are known by their login, and columns become new assignments.

    Args:
        extensions: exercises that count as extra credit.
    """
    reports = list(reports)
    modules = list(dict.fromkeys(e.module for r in reports for e in r.exercises))
    possible = [
        max((sum(e.points for e in r.exercises if e.module == m and e.exercise not in extensions) for r in reports), default=0)
        for m in modules
    ]  # fmt: skip
    known = [name for name in (roster.header if roster else CANVAS) if name in CANVAS_OWN]
    columns = [roster.column(m) for m in modules] if roster else modules
    own = [roster.points.get(c, "").strip() if roster else "" for c in columns]
    head = ["    Points Possible", *[""] * (len(known) - 1)]
    lines: list[tuple[object, ...]] = [
        (*known, *columns),
        (*head, *(there or points for there, points in zip(own, possible, strict=True))),
    ]
    strangers: list[str] = []
    for report in reports:
        asked = {e.module for e in report.exercises}
        earned = [
            round(sum(e.earned for e in report.exercises if e.module == m), 6) if m in asked else "" for m in modules
        ]
        row = roster.row_of(report.student) if roster else {"Student": report.student, "SIS Login ID": report.student}
        if row is None:
            strangers.append(report.student)
        else:
            lines.append((*(row.get(column, "") for column in known), *earned))
    _write(path, lines, keep_first=2)
    return strangers


def _write(path: Path, lines: list[tuple[object, ...]], keep_first: int = 1) -> None:
    """Our own headings are kept as they are: Canvas knows a line by its leading blanks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for number, line in enumerate(lines):
        heading = number < keep_first
        writer.writerow([v if heading and isinstance(v, str) else csv_cell(v) for v in line])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.getvalue())
