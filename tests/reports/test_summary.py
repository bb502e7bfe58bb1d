"""A class is counted."""

from __future__ import annotations

from grader.common.result import Report
from grader.reports.pages import render_html
from grader.reports.summary import summarise
from tests.reports.example_reports import Nesting, a_class, class_page_html, mixed, printed


def test_a_class_is_counted() -> None:
    summary = summarise(a_class())
    assert (summary.submissions, summary.mean, summary.median) == (4, 37.5, 25.0)
    assert (summary.minimum, summary.maximum) == (0.0, 100.0)
    value, layout = summary.checks
    assert (value.passed, value.failed, value.broken, value.rate) == (2, 1, 1, 66.67)  # of three judged
    assert (layout.passed, layout.failed, layout.blocked, layout.rate) == (1, 2, 1, 25.0)
    assert [(e.exercise, e.mean, e.full) for e in summary.exercises] == [("c3_contracting", 37.5, 1)]
    assert [(m.name, m.students) for m in summary.misconceptions] == [("wrong_dimension", 2)]
    assert [(b.student, b.name) for b in summary.broken] == [("dan", "value")]


def test_an_empty_class_has_no_mean() -> None:
    summary = summarise([])
    assert (summary.submissions, summary.mean, summary.checks) == (0, None, [])
    Nesting(class_page_html(summary, []))


def test_a_page_is_the_same_for_the_same_report() -> None:
    assert render_html(mixed()) == render_html(Report.loads(mixed().dumps()))
    assert printed(mixed()) == printed(Report.loads(mixed().dumps()))
