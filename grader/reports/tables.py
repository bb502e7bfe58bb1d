"""grades.csv, and cells that no spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain

from grader.common.files import write_atomic
from grader.common.result import Report
from grader.reports.points import tidy
from grader.reports.untrusted import clean
from grader.reports.whole_class import WholeClass
from grader.reports.wording import count_notes, percent_of, remarks


def csv_cell(value: object, limit: int = 500) -> str | int | float:
    """A cell that no spreadsheet takes for a formula; numbers stay numbers."""
    if isinstance(value, int | float):
        return tidy(value)
    raw = str(value)
    text = clean(raw, limit)
    if re.fullmatch(r"-?\d+(\.\d+)?", text, re.ASCII):
        return text
    # Spreadsheets fold full-width signs (U+FF1D and others) to ASCII ones.
    first = {raw[:1], unicodedata.normalize("NFKC", text[:1])}
    return "'" + text if first & set("=+-@\t\r") else text


NOTHING = "nothing handed in"


def write_grades_csv(
    whole: WholeClass, reports: Iterable[Report], path: str | os.PathLike[str], absent: Iterable[str] = ()
) -> None:
    """One line per submission, in the order of the reports; one column per exercise, in course order.

    ``earned`` is without what extensions gave, which is the ``bonus``; ``percent`` is empty where there is nothing else to
    earn. A cell is empty where a submission has no such exercise. ``remarks``: what lateness cost, and points given by hand.

    Args:
        whole: counted over all of ``reports``, which are read once.
        absent: who is in the class and handed in nothing: 0 of what others could earn.
    """
    names = list(whole.module_of)
    header = ["student", *names, "earned", "points", "percent", "bonus", "pending", "notes", "remarks"]
    percent = 0.0 if whole.points or not whole.students else ""
    nothing = [*(0 for _ in names), 0, whole.points, percent, 0, 0, 0, NOTHING]
    without = ([student, *nothing] for student in sorted(absent))
    rows = chain([header], (_grades(report, names) for report in reports), without)
    write_atomic(path, csv_lines([csv_cell(value) for value in row] for row in rows))


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Line by line, as a large class's need not be held whole."""

    class Passed:
        def write(self, line: str) -> str:
            return line

    writer = csv.writer(Passed(), lineterminator="\n")
    return (writer.writerow(row) for row in rows)


def _grades(report: Report, names: list[str]) -> list[object]:
    earned = {e.exercise: e.earned for e in report.exercises}
    percent, required = percent_of(report), round(report.earned - report.bonus, 6)
    totals = [required, report.points, "" if percent is None else percent, report.bonus, report.pending]
    remarked = [count_notes(report), "; ".join(remarks(report))]
    return [report.student, *(earned.get(name, "") for name in names), *totals, *remarked]
