"""Graded reports in the formats of others: a long CSV, and a CSV that Canvas imports.

Every text may come from a learner; ``csv_cell`` sees to it that no spreadsheet takes it for a formula.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from grader.course import CourseError
from grader.files import write_atomic
from grader.report import csv_cell
from grader.result import Report

COLUMNS = ("student", "module", "exercise", "kind", "check", "label", "hidden", "status", "earned", "points", "reason", "misconception")  # fmt: skip
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


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


def write_canvas(reports: Iterable[Report], path: Path, extensions: frozenset[str] = frozenset()) -> None:
    """Canvas's gradebook import: a column per module; students are known by their login.

    Args:
        extensions: exercises that count as extra credit.
    """
    reports = list(reports)
    modules = list(dict.fromkeys(e.module for r in reports for e in r.exercises))
    possible = [
        max((sum(e.points for e in r.exercises if e.module == m and e.exercise not in extensions) for r in reports), default=0)
        for m in modules
    ]  # fmt: skip
    lines: list[tuple[object, ...]] = [(*CANVAS, *modules), ("    Points Possible", "", "", "", "", *possible)]
    for report in reports:
        earned = [round(sum(e.earned for e in report.exercises if e.module == m), 6) for m in modules]
        lines.append((report.student, "", "", report.student, "", *earned))
    _write(path, lines, keep_first=2)


def _write(path: Path, lines: list[tuple[object, ...]], keep_first: int = 1) -> None:
    """Our own headings are kept as they are: Canvas knows a line by its leading blanks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for number, line in enumerate(lines):
        heading = number < keep_first
        writer.writerow([v if heading and isinstance(v, str) else csv_cell(v) for v in line])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.getvalue())
