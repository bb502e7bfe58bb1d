"""What is kept from students, and what they see."""

from __future__ import annotations

from grader.reports.pages import render_fragment, render_html
from tests.reports.example_reports import make_report, mixed, printed


def test_students_never_see_what_hidden_checks_and_questions_expect() -> None:
    report = mixed()
    shown = [render_html(report), printed(report), *(render_fragment(e) for e in report.exercises)]
    assert all("SECRET" not in text for text in shown)
    staff = render_html(report, audience="staff")
    assert all(secret in staff for secret in ["SECRET-SPEC", "SECRET-CASE", "SECRET-PICTURE", "SECRET-NUMBER"])
    assert "SECRET-NUMBER" in printed(report, audience="staff")
    assert "hidden check" in printed(report, audience="staff")


def test_students_see_their_own_layout_and_answer() -> None:
    hidden = render_html(make_report(mixed().exercises[1]))
    assert 'aria-label="yours: array' in hidden
    assert "745.65 us" in hidden
