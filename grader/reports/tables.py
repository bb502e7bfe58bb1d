"""Write grades.csv, with cells that spreadsheets do not read as formulas."""

from __future__ import annotations

import csv
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType

from grader.common.files import write_atomic
from grader.common.result import Report
from grader.common.text import IS_EMPTY
from grader.reports.people import UNKNOWN, People
from grader.reports.points import tidy
from grader.reports.untrusted import clean
from grader.reports.whole_class import WholeClass
from grader.reports.wording import count_notes, percent_of, remarks


def csv_cell(value: object, limit: int = 500) -> str | int | float:
    """Return the value of a CSV cell that spreadsheets do not read as a formula. Numbers stay numbers.

    In many countries, spreadsheets start a new cell after each semicolon. So each part between semicolons is treated
    as a cell.
    """
    if isinstance(value, int | float):
        return tidy(value)
    raw = str(value)
    text = ";".join(map(_no_formula, clean(raw, limit).split(";")))
    return f"'{text}" if raw[:1] in ("\t", "\r") and not text.startswith("'") else text


def _no_formula(text: str) -> str:
    """Return a part of a cell with an apostrophe before it if a spreadsheet would read the part as a formula."""
    # If a spreadsheet splits the text at the separator, it drops a quotation mark there, which opens a quoted cell.
    # Spreadsheets convert full-width signs, such as U+FF1D, to ASCII signs.
    first = unicodedata.normalize("NFKC", text.lstrip(' "')[:1])[:1]
    is_number = re.fullmatch(r" ?-?\d+(\.\d+)?", text, re.ASCII)
    return f"'{text}" if first in ("=", "+", "-", "@") and not is_number else text


NOTHING = "nothing handed in"
NOT_GRADED = "not graded: see Needs review"
ASIDE = "a submission of the student is not graded: see Needs review"
TOTALS = ("earned", "points", "percent", "bonus", "pending", "notes", "remarks")
ABOUT = ("name", "section")


def write_grades_csv(
    whole: WholeClass,
    reports: Iterable[Report],
    path: str | os.PathLike[str],
    known: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write one line per submission, in the order of the reports, and one column per exercise, in course order.

    Further columns:

    - ``bonus``: the points of extensions (exercises for extra credit)
    - ``earned``: all other points
    - ``percent``: empty if all points are bonus points
    - ``remarks``: the remark in ``known``, NOTHING if the student handed in nothing, late penalties, and points given
      by hand
    - ``name`` and ``section``, if the roster names students

    An exercise's cell is empty if the report lacks the exercise.

    Args:
        whole: facts about the class, counted over all of ``reports`` in advance.
        reports: an iterable, which is read only once.
        known: remarks by student. A student without a report has NOTHING (0 points) or NOT_GRADED (all points are
            pending). A student with a report has ASIDE if another submission could not be graded.
    """
    names = list(whole.module_of)
    header = ["student", *names, *TOTALS, *(ABOUT if whole.people else ())]
    percent = 0.0 if whole.points or not whole.students else ""

    def row(student: str, remark: str) -> list[object]:
        cell, pending = (0, 0) if remark == NOTHING else ("", whole.points)
        totals = [0, whole.points, percent, 0, pending, 0]
        return [student, *(cell for _ in names), *totals, remark, *_about(student, whole.people)]

    without = (row(student, remark) for student, remark in sorted(known.items()) if remark != ASIDE)
    graded = ([*_grades(r, names, known.get(r.student, "")), *_about(r.student, whole.people)] for r in reports)
    rows = chain([header], graded, without)
    write_atomic(path, csv_lines([csv_cell(value) for value in row] for row in rows))


def _about(student: str, people: People) -> list[str]:
    person = people.get(student, UNKNOWN)
    return [person.name, person.section] if people else []


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield CSV lines one by one, so that a large class's file is never in memory as a whole."""

    class Passed:
        def write(self, line: str) -> str:
            return line

    writer = csv.writer(Passed(), lineterminator="\n")
    return (writer.writerow(row) for row in rows)


def _grades(report: Report, names: list[str], known: str) -> list[object]:
    earned = {e.exercise: e.earned for e in report.exercises}
    percent, required = percent_of(report), round(report.earned - report.bonus, 6)
    totals = [required, report.points, "" if percent is None else percent, report.bonus, report.pending]
    # A file that the grader could not read may be a submission.
    is_empty = all(note.endswith(IS_EMPTY) for note in report.unread)
    nothing = NOTHING if not report.handed_in and is_empty else ""
    remarked = [count_notes(report), "; ".join(filter(None, [known, nothing, *remarks(report)]))]
    return [report.student, *(earned.get(name, "") for name in names), *totals, *remarked]
