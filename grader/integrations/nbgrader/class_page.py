"""The staff's class page for an assignment in an nbgrader course."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from grader.batch.changes import ChangedRules
from grader.batch.overrides import as_graded, with_sums
from grader.common.files import write_atomic
from grader.common.result import HandIn, Report
from grader.course.loading import Course
from grader.integrations.nbgrader.outcome import BatchOutcome
from grader.reports.pages import page_name, render_html, summary_html
from grader.reports.people import UNKNOWN, Person
from grader.reports.summary import Attention, Kind, summarise
from grader.reports.whole_class import WholeClass

SHOWN = "shown.json"
_BEGINS: list[tuple[str, Kind]] = [
    ("not graded", "not graded"),
    ("points are pending", "pending"),
    ("by hand", "by hand"),
    ("this submission was graded again", "handed in again"),
]


class _Shown(BaseModel, frozen=True):
    """Digests of a student's page and reports from the last run.

    Attributes:
        page: a digest of the student's page.
        reports: the fingerprints of the student's reports.
    """

    page: str
    reports: list[str]


_SHOWN = TypeAdapter(dict[str, _Shown])


def write(
    place: Path,
    course: Course,
    reports: Mapping[str, Sequence[Report]],
    outcome: BatchOutcome,
    kept: Callable[[str], Report | None],
) -> None:
    """Write the class page and students' pages to ``place``. Add the class page's path and warnings to ``outcome``.

    A student's page is written if it is missing, or if it differs from the page of the last run.

    Args:
        reports: for each student, one report for each notebook.
        kept: returns the stored report with a fingerprint, or None.
    """
    place.mkdir(parents=True, exist_ok=True)
    outcome.forget_blank(reports)
    people = {student: Person(name) for student, name in outcome.names.items()}
    whole = [_together(student, list(of), outcome.late.get(student)) for student, of in sorted(reports.items()) if of]
    before, rules, now = _read_shown(place), ChangedRules(), dict[str, _Shown]()
    for report in whole:
        shown, person = before.get(report.student), people.get(report.student, UNKNOWN)
        digest = hashlib.sha256(f"{person.text}\n{report.dumps()}".encode()).hexdigest()
        new = _Shown(page=digest, reports=[r.fingerprint for r in reports[report.student]])
        other = shown.reports if shown and shown.reports != new.reports else []
        old = [found for fingerprint in other if (found := kept(fingerprint))]
        rules.add(_together(report.student, old) if old else None, as_graded(report))
        now[report.student] = new
        page = place / page_name(report.student)
        if not page.is_file() or shown is None or shown.page != digest:
            write_atomic(page, render_html(report, audience="staff", person=person))
    seed = [course.seed_problem] if course.seed_problem else []
    summary = summarise(whole, warnings=[*rules.warnings(), *seed])
    outcome.warnings, outcome.page = summary.warnings, str(place / "index.html")
    summary = summary.model_copy(update={"attention": _attention(outcome)})
    write_atomic(place / "index.html", summary_html(summary, WholeClass(whole, people), whole))
    write_atomic(place / SHOWN, _SHOWN.dump_json(now, indent=2))


def _attention(outcome: BatchOutcome) -> list[Attention]:
    """Return the cases that need review. A late submission needs review if it lost no points."""
    late = {student: one.text for student, one in sorted(outcome.late.items()) if not one.penalty}
    return [
        *(Attention(student=s, reason=why, kind=_kind(why)) for s, of in outcome.attention.items() for why in of),
        *(Attention(student=s, reason=text, kind="late") for s, text in late.items()),
    ]


def _read_shown(place: Path) -> dict[str, _Shown]:
    """Return the digests from the last run, by student; {} if the file ``SHOWN`` is missing or invalid."""
    try:
        return _SHOWN.validate_json((place / SHOWN).read_bytes())
    except (OSError, ValidationError):
        return {}


def drop(place: Path, student: str) -> None:
    """Delete a student's page before new results are written, so that a killed batch leaves no outdated page."""
    (place / page_name(student)).unlink(missing_ok=True)


def _together(student: str, reports: list[Report], late: HandIn | None = None) -> Report:
    """Merge a student's reports on the notebooks of one assignment. ``late``: the late submission and its penalty."""
    if late:
        late = late.model_copy(update={"penalty": min(late.penalty, sum(r.earned for r in reports))})
    merged = reports[0].model_copy(
        update={
            "student": student,
            "points": sum(r.points for r in reports),
            "exercises": [e for r in reports for e in r.exercises],
            "notes": list(dict.fromkeys(note for r in reports for note in r.notes)),
            "hand_ins": [late] if late else [],
        }
    )
    return with_sums(merged)


def _kind(reason: str) -> Kind:
    for begins, kind in _BEGINS:
        if reason.startswith(begins):
            return kind
    return "look"
