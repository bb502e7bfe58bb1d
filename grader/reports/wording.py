"""What is said of a result, and to whom."""

from __future__ import annotations

from typing import Literal, TypeVar

from grader.common.result import ExerciseReport, Report, Result
from grader.reports.untrusted import show_data

Audience = Literal["student", "staff"]
Graded = TypeVar("Graded", Report, ExerciseReport)

BLOCKED = "an earlier check that this one needs did not pass"


def seen_by(audience: Audience, graded: Graded) -> Graded:
    """What this audience may see. Every renderer for students begins here."""
    return graded if audience == "staff" else graded.for_student()


def status_word(result: Result, audience: Audience) -> str:
    """Students read what a broken check means for them: its points are pending."""
    return "pending" if result.status == "broken" and audience == "student" else result.status


def reason_text(result: Result) -> str:
    """Why it did not pass."""
    return result.reason or (BLOCKED if result.status == "blocked" else "")


def place_text(result: Result) -> str:
    """The place, unless the reason says it already."""
    return "" if result.where in result.reason else f"at {result.where}"


def data_pairs(result: Result) -> list[tuple[str, str]]:
    """Expected and actual data as text, where a failed result has any."""
    pairs = (("expected", result.expected), ("yours", result.actual), ("for staff", result.staff or None))
    return [(name, show_data(data)) for name, data in pairs if result.status == "failed" and data is not None]


def count_notes(report: Report) -> int:
    """Those of the submission and of each exercise."""
    return len(report.notes) + sum(len(e.notes) for e in report.exercises)
