"""The staff's class page for an assignment in an nbgrader course."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from grader.common.files import write_atomic
from grader.common.result import Report
from grader.course.loading import Course
from grader.reports.attention import Attention, Kind
from grader.reports.pages import page_name, render_html, summary_html
from grader.reports.summary import summarise
from grader.reports.whole_class import WholeClass

BY_HAND = "by_hand.json"
_BEGINS: list[tuple[str, Kind]] = [
    ("not graded", "not graded"),
    ("pending", "pending"),
    ("by hand", "by hand"),
    ("graded again", "handed in again"),
]


def write(
    place: Path,
    course: Course,
    reports: Mapping[str, Sequence[Report]],
    attention: Mapping[str, Sequence[str]],
    late: Mapping[str, float],
) -> str:
    """Write the class page and students' pages to the folder ``place``. Return the class page's path.

    A student's page is written if it is missing, or if a person changed the student's points since it was written.

    Args:
        reports: for each student, one report for each notebook.
        attention: for each student, the reasons why a person must review the results.
        late: for each late student, the seconds after the deadline.
    """
    place.mkdir(parents=True, exist_ok=True)
    whole = [_together(student, list(of)) for student, of in sorted(reports.items()) if of]
    _write_students(place, whole)
    summary = summarise(whole, warnings=[course.seed_problem] if course.seed_problem else [])
    needed = [
        *(Attention(student=s, reason=why, kind=_kind(why)) for s, reasons in attention.items() for why in reasons),
        *(Attention(student=s, reason=_how_late(late[s]), kind="late") for s in sorted(late)),
    ]
    page = place / "index.html"
    shown = summary.model_copy(update={"attention": needed})
    write_atomic(page, summary_html(shown, WholeClass(whole), whole))
    return str(page)


def _write_students(place: Path, whole: Sequence[Report]) -> None:
    before, now = _read_marks(place), {}
    for report in whole:
        if any(e.by_hand or any(r.by_hand for r in e.results) for e in report.exercises):
            now[report.student] = hashlib.sha256(report.dumps().encode()).hexdigest()
        page = place / page_name(report.student)
        if not page.is_file() or now.get(report.student) != before.get(report.student):
            write_atomic(page, render_html(report, audience="staff"))
    if now or before:
        write_atomic(place / BY_HAND, json.dumps(now, indent=2) + "\n")


def _read_marks(place: Path) -> dict[str, str]:
    """Return student -> digest of the report, for reports with points that a person set.

    Return {} if the file ``BY_HAND`` is missing or invalid.
    """
    try:
        found = json.loads((place / BY_HAND).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def drop(place: Path, student: str) -> None:
    """Delete a student's page before new results are written, so that a killed batch leaves no outdated page."""
    (place / page_name(student)).unlink(missing_ok=True)


def _together(student: str, reports: list[Report]) -> Report:
    """Merge a student's reports on the notebooks of one assignment."""
    first = reports[0]
    return first.model_copy(
        update={
            "student": student,
            "points": sum(r.points for r in reports),
            "earned": sum(r.earned for r in reports),
            "pending": sum(r.pending for r in reports),
            "exercises": [e for r in reports for e in r.exercises],
            "notes": list(dict.fromkeys(note for r in reports for note in r.notes)),
        }
    )


def _kind(reason: str) -> Kind:
    for begins, kind in _BEGINS:
        if reason.startswith(begins):
            return kind
    return "look"


def _how_late(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    days, hours = minutes // 1440, minutes // 60 % 24
    return f"handed in late by {days} d {hours} h" if days else f"handed in late by {hours} h {minutes % 60} min"
