"""Rates of failures and misconceptions in a class, results that they leave out, and labels of the whole class."""

from __future__ import annotations

import pytest

from grader.reports.rates import common_label
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


@pytest.mark.parametrize(
    ("labels", "common"),
    [
        (["a: How long?", "a: How long?"], "a: How long?"),
        (["a: 8 of 16 chips?", "a: 4 of 16 chips?"], "a: … of 16 chips?"),
        (["a: 8 of 16 chips?", "a: 4 of 16 chips?", "a: 4 of 32 chips?"], "a: … of … chips?"),
        (["a: `A[8, 16]`?", "a: `A[4, 32]`?"], "a: `A[…, …]`?"),
        (["a: on v5e, 1.5 ms", "a: on H100, 2 ms"], "a: on …, … ms"),
        (["a: twice the rows", "a: half the rows of before"], "a: … the rows…"),
    ],
)
def test_common_label_keeps_the_shared_words_of_labels(labels: list[str], common: str) -> None:
    found = labels[0]
    for label in labels[1:]:
        found = common_label(found, label)
    assert found == common
