"""Export graded reports as a CSV with a line per result, or as a CSV that Canvas imports.

Any text may come from a learner. ``csv_cell`` ensures that spreadsheets do not read a text as a formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from grader.batch.opening import reading, students_with_files
from grader.common.files import write_atomic
from grader.common.result import ExerciseReport, Report
from grader.course.config import CourseError
from grader.intake.submission import reasons_of
from grader.integrations.roster import Roster
from grader.reports.tables import csv_cell, csv_lines
from grader.reports.wording import by_hand_text

COLUMNS = (
    "student", "module", "exercise", "kind", "check", "label", "hidden", "status", "earned", "points", "reason",
    "misconception", "by_hand",
)  # fmt: skip
Line = tuple[object, ...]
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
CANVAS_OWN = (*CANVAS, "Root Account", "Integration ID")  # columns about the student, in the order of Canvas's export


def load(folder: Path) -> Iterator[Report]:
    """Yield a folder's reports in the order of students, one at a time to save memory. Raises CourseError."""
    students_in(folder)
    return _each(folder)


def _each(folder: Path) -> Iterator[Report]:
    with reading(folder) as database:
        yield from database.reports()


def students_in(folder: Path) -> list[str]:
    """Return the students with a report. Raises CourseError if no report exists, or if a report is incomplete."""
    with reading(folder) as database:
        students = database.students()
    if damaged := sorted(
        {*students_with_files(folder)} - {*students}
    ):  # only old versions of the grader leave incomplete reports
        raise CourseError(
            f"{folder / 'reports' / damaged[0]}.json is an incomplete report of {damaged[0]}; grade again to mend the "
            "report, or move the file out of that folder"
        )
    if not students:
        raise CourseError(f"no reports in {folder}; write them with: shardlings grade SUBMISSIONS --out {folder}")
    return students


def not_graded(folder: Path) -> list[str]:
    """Return the names of the submissions that were set aside and still need review."""
    with reading(folder) as database:
        return [student or "files without a student's name" for student in reasons_of(database.cases())]


def write_csv(reports: Iterable[Report], path: Path) -> None:
    """Write a line per result, then a line per exercise whose points a person set, and a line per late penalty.

    A student's lines add up to the student's points.
    """
    _write(path, _lines(reports))


def _lines(reports: Iterable[Report]) -> Iterator[Line]:
    by_hand: list[Line] = []
    late: list[Line] = []
    yield COLUMNS
    for r in reports:
        for e in r.exercises:
            for one in e.results:
                hand = by_hand_text(one.by_hand, one.status) if one.by_hand else ""
                yield (
                    r.student, e.module, e.exercise, one.kind, one.name, one.label, "no" if one.public else "yes",
                    one.status, one.earned, one.points, one.reason, one.misconception, hand,
                )  # fmt: skip
            if e.by_hand:
                rest = round(e.earned - sum(one.earned for one in e.results), 6)
                about = ("by hand", "", e.title, "no", "by hand", rest, 0, "", "", by_hand_text(e.by_hand))
                by_hand.append((r.student, e.module, e.exercise, *about))
        late += [
            (r.student, one.module, "", "late", "", "handed in late", "no", "late", -one.penalty, 0, one.text, "", "")
            for one in r.hand_ins if one.text
        ]  # fmt: skip
    yield from by_hand
    yield from late


def write_canvas(
    reports: Iterable[Report], path: Path, extensions: frozenset[str] = frozenset(), roster: Roster | None = None
) -> list[str]:
    """Write a CSV for Canvas's gradebook import, with a column per module. Return students not on the roster.

    Canvas identifies a student by Canvas's own ID, and an assignment by the number in the column's name. The roster
    (class list) has these IDs and numbers. Without a roster, Canvas identifies students by login, and columns become
    new assignments.

    If only some exercises of a module are extra credit (``extensions``), the module has a second column, ``MODULE
    bonus``. The bonus column has 0 possible points, so Canvas counts all points in it as extra credit.
    """
    possible: dict[str, float] = {}  # the points possible in each column
    earned: dict[str, dict[str, float]] = {}
    for report in reports:
        of = earned[report.student] = {}
        for column, points, got in _columns_of(report, extensions):
            possible[column] = max(possible.get(column, 0), points)
            of[column] = got
    known, columns, worth = list(CANVAS), list(possible), list[float | str](possible.values())
    if roster:
        known = [name for name in roster.header if name in CANVAS_OWN]
        columns = [roster.column(m) for m in possible]
        worth = [roster.points.get(c, "").strip() or points for c, points in zip(columns, worth, strict=True)]
    lines: list[Line] = [(*known, *columns), ("    Points Possible", *[""] * (len(known) - 1), *worth)]
    strangers: list[str] = []
    for student, of in earned.items():
        row = _row(student, roster)
        if row is None:
            strangers.append(student)
        else:
            lines.append((*(row.get(column, "") for column in known), *(of.get(m, "") for m in possible)))
    _write(path, lines, keep_first=2)
    return strangers


def _row(student: str, roster: Roster | None) -> dict[str, str] | None:
    return roster.row_of(student) if roster else {"Student": student, "SIS Login ID": student}


def _columns_of(report: Report, extensions: frozenset[str]) -> Iterator[tuple[str, float, float]]:
    """Yield (column, points possible, points earned minus late penalty) for each module and each module's bonus.

    A late penalty lowers the points of a module and of its bonus by equal percentages.
    """
    for module in dict.fromkeys(e.module for e in report.exercises):
        parts = [e for e in report.exercises if e.module == module]
        bonus = [e for e in parts if e.exercise in extensions]
        penalty = sum(one.penalty for one in report.hand_ins if one.module == module)
        yield from _columns_of_module(module, parts, bonus, penalty)


def _columns_of_module(
    module: str, parts: Sequence[ExerciseReport], bonus: Sequence[ExerciseReport], penalty: float
) -> Iterator[tuple[str, float, float]]:
    (earned, points), (extra, extra_points) = _sums(parts), _sums(bonus)
    kept = earned - penalty
    if not 0 < len(bonus) < len(parts):
        yield module, 0.0 if bonus else points, round(kept, 6)
        return
    kept_extra = kept * extra / earned if earned > 0 else 0.0
    yield module, round(points - extra_points, 6), round(kept - kept_extra, 6)
    yield f"{module} bonus", 0.0, round(kept_extra, 6)


def _sums(parts: Sequence[ExerciseReport]) -> tuple[float, float]:
    return sum(e.earned for e in parts), sum(e.points for e in parts)


def _write(path: Path, lines: Iterable[Line], keep_first: int = 1) -> None:
    """Write a CSV. The first ``keep_first`` lines are not escaped, because Canvas needs blanks in "Points Possible"."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = (
        [v if number < keep_first and isinstance(v, str) else csv_cell(v) for v in line]
        for number, line in enumerate(lines)
    )
    write_atomic(path, csv_lines(cells))
