"""grades.csv, and cells that no spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from grader.common.files import write_atomic
from grader.common.result import Report
from grader.reports.points import tidy
from grader.reports.summary import in_order
from grader.reports.untrusted import clean
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


def write_grades_csv(reports: Iterable[Report], path: str | os.PathLike[str], absent: Iterable[str] = ()) -> None:
    """One line per submission, ordered by student; one column per exercise, in course order.

    ``earned`` is without what extensions gave, which is the ``bonus``; ``percent`` is empty where there is nothing else to
    earn. A cell is empty where a submission has no such exercise. ``remarks``: what lateness cost, and points given by hand.

    Args:
        absent: who is in the class and handed in nothing: 0 of what others could earn.
    """
    ordered = in_order(reports)
    names = list(dict.fromkeys(e.exercise for r in ordered for e in r.exercises))
    header = ["student", *names, "earned", "points", "percent", "bonus", "pending", "notes", "remarks"]
    most = max((report.points for report in ordered), default=0)
    percent = 0.0 if most or not ordered else ""
    without = ([student, *(0 for _ in names), 0, most, percent, 0, 0, 0, NOTHING] for student in sorted(absent))
    write_atomic(path, _csv(chain([header], (_grades(report, names) for report in ordered), without)))


def _csv(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Line by line, as a large class's need not be held whole."""

    class Passed:
        def write(self, line: str) -> str:
            return line

    writer = csv.writer(Passed(), lineterminator="\n")
    return (writer.writerow([csv_cell(value) for value in row]) for row in rows)


def _grades(report: Report, names: list[str]) -> list[object]:
    earned = {e.exercise: e.earned for e in report.exercises}
    percent, required = percent_of(report), round(report.earned - report.bonus, 6)
    totals = [required, report.points, "" if percent is None else percent, report.bonus, report.pending]
    remarked = [count_notes(report), "; ".join(remarks(report))]
    return [report.student, *(earned.get(name, "") for name in names), *totals, *remarked]
