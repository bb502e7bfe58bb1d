"""Graded reports in the formats of others: a long CSV, and a CSV that Canvas imports.

Every text may come from a learner; ``csv_cell`` sees to it that no spreadsheet takes it for a formula.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from grader.batch.opening import names_in, reading
from grader.common.files import write_atomic
from grader.common.result import Report
from grader.course.config import CourseError
from grader.integrations.roster import Roster
from grader.reports.tables import csv_cell
from grader.reports.wording import by_hand_text

COLUMNS = ("student", "module", "exercise", "kind", "check", "label", "hidden", "status", "earned", "points", "reason", "misconception", "by_hand")  # fmt: skip
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
CANVAS_OWN = (*CANVAS, "Root Account", "Integration ID")  # about the student, in the order of Canvas's export


def load(folder: Path) -> list[Report]:
    """The reports that ``grade`` wrote there, by student. Raises CourseError."""
    with reading(folder) as database:
        students = database.students()
        damaged = sorted({*names_in(folder)} - {*students})
        reports = [found for student in students if (found := database.counting(student)) is not None]
    if damaged:  # in a folder of an older version, which has no database
        raise CourseError(
            f"{folder / 'reports' / damaged[0]}.json is no whole report of {damaged[0]}; grade again to mend it, or move it "
            "out of that folder"
        )
    if not reports:
        raise CourseError(f"no reports in {folder}; write them with: shardlings grade SUBMISSIONS --out {folder}")
    return reports


def write_csv(reports: Sequence[Report], path: Path) -> None:
    """One line per result; then what lateness costs and what a person gave, so that a student's lines add up to the score."""
    lines: list[tuple[object, ...]] = [
        (r.student, e.module, e.exercise, one.kind, one.name, one.label, "no" if one.public else "yes", one.status,
         one.earned, one.points, one.reason, one.misconception, by_hand_text(one.by_hand, one.status) if one.by_hand else "")
        for r in reports for e in r.exercises for one in e.results
    ]  # fmt: skip
    lines += [
        (r.student, e.module, e.exercise, "by hand", "", e.title, "no", "by hand",
         round(e.earned - sum(one.earned for one in e.results), 6), 0, "", "", by_hand_text(e.by_hand))
        for r in reports for e in r.exercises if e.by_hand
    ]  # fmt: skip
    lines += [
        (r.student, one.module, "", "late", "", "handed in late", "no", "late", -one.penalty, 0, one.text, "", "")
        for r in reports for one in r.hand_ins if one.text
    ]  # fmt: skip
    _write(path, [COLUMNS, *lines])


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
    possible: list[float | str] = [max(_possible_in(r, m, extensions) for r in reports) for m in modules]
    known, columns = list(CANVAS), modules
    if roster:
        known = [name for name in roster.header if name in CANVAS_OWN]
        columns = [roster.column(m) for m in modules]
        possible = [
            roster.points.get(column, "").strip() or points for column, points in zip(columns, possible, strict=True)
        ]
    head = ["    Points Possible", *[""] * (len(known) - 1)]
    lines: list[tuple[object, ...]] = [(*known, *columns), (*head, *possible)]
    strangers: list[str] = []
    for report in reports:
        row = _row(report.student, roster)
        if row is None:
            strangers.append(report.student)
        else:
            earned = [_earned_in(report, m) for m in modules]
            lines.append((*(row.get(column, "") for column in known), *earned))
    _write(path, lines, keep_first=2)
    return strangers


def _row(student: str, roster: Roster | None) -> dict[str, str] | None:
    return roster.row_of(student) if roster else {"Student": student, "SIS Login ID": student}


def _possible_in(report: Report, module: str, extensions: frozenset[str]) -> float:
    return sum(e.points for e in report.exercises if e.module == module and e.exercise not in extensions)


def _earned_in(report: Report, module: str) -> float | str:
    """What a module earned, less what lateness cost there; '' if the report does not have it."""
    earned = [e.earned for e in report.exercises if e.module == module]
    penalties = sum(one.penalty for one in report.hand_ins if one.module == module)
    return round(sum(earned) - penalties, 6) if earned else ""


def _write(path: Path, lines: list[tuple[object, ...]], keep_first: int = 1) -> None:
    """Our own headings are kept as they are: Canvas knows a line by its leading blanks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for number, line in enumerate(lines):
        heading = number < keep_first
        writer.writerow([v if heading and isinstance(v, str) else csv_cell(v) for v in line])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.getvalue())
