"""The rates of failures and misconceptions in a class, and the results that these rates leave out."""

from __future__ import annotations

from grader.reports.summary import summarise
from tests.reports.example_reports import a_class, exercise, layout_failure, make_report, number, result


def test_the_most_common_misconception_comes_first() -> None:
    reports = [make_report(exercise([number()]), student="a"), *a_class()]
    assert [m.name for m in summarise(reports).misconceptions] == ["wrong_dimension", "one_way"]


def test_a_student_has_a_misconception_once() -> None:
    twice = make_report(exercise([layout_failure(), layout_failure(name="again")]))
    assert summarise([twice, twice]).misconceptions[0].students == 1


def test_rates_leave_out_missing_submissions_and_means_leave_out_extensions() -> None:
    done = exercise([result("a", "passed", points=2, earned=2)], points=2, earned=2)
    left = exercise([result("a", "failed", points=2, earned=0)], points=2, earned=0, handed_in=False)
    reports = [make_report(done, student="ann"), make_report(left, student="bea")]
    summary = summarise(reports)
    assert [c.rate for c in summary.checks] == [100]
    assert [(a.module, a.handed_in, a.submissions, a.mean, a.full) for a in summary.assignments] == [
        (done.module, 1, 2, 100, 1)
    ]
    assert [e.mean for e in summary.exercises] == [50]
    bonus = [
        r.model_copy(update={"exercises": [e.model_copy(update={"extension": True}) for e in r.exercises]})
        for r in reports
    ]
    assert [e.mean for e in summarise(bonus).exercises] == [100]
