"""The summary of a class: counts, means and warnings."""

from __future__ import annotations

from rich.console import Console

from grader.common.result import ByHand, HandIn, Report
from grader.reports.moved import Effect, Sums
from grader.reports.pages import render_html
from grader.reports.summary import summarise
from grader.reports.terminal import print_summary, print_warnings
from tests.reports.example_reports import (
    Nesting,
    a_class,
    class_page_html,
    exercise,
    make_report,
    mixed,
    printed,
    result,
)


def test_a_class_is_counted() -> None:
    summary = summarise(a_class())
    assert (summary.submissions, summary.mean, summary.median) == (4, 37.5, 25.0)
    assert (summary.minimum, summary.maximum) == (0.0, 100.0)
    value, layout = summary.checks
    assert (value.passed, value.failed, value.broken, value.rate) == (2, 1, 1, 66.67)  # three were judged
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


def late(number: int, of: int, penalty: float, earned: float = 2) -> list[Report]:
    """Return a class of ``of`` students with ``earned`` of 4 points. The first ``number`` have a late penalty."""
    found = []
    for i in range(of):
        hand_in = HandIn(
            module="03_matmuls", submitted="2026-11-02T00:00:00+00:00", source="submitted.csv", penalty=penalty
        )
        part = exercise([result("value", "passed", points=4, earned=earned)], points=4, earned=earned)
        left = earned - penalty if i < number else earned
        report = make_report(part, hand_ins=[hand_in] if i < number else [], points=4, earned=left)
        found.append(report.model_copy(update={"student": f"s{i}"}))
    return found


def test_late_penalties_for_a_tenth_of_a_class_give_a_warning() -> None:
    assert summarise(late(1, 10, 0.5)).warnings == []
    summary = summarise(late(2, 10, 0.5))
    (line,) = summary.warnings
    assert line == (
        "Late penalties change the points of 2 of 10 students: the class mean is 47.5%, and 50% without this change. "
        "Check the record of submission times."
    )
    console = Console(record=True, width=200)
    print_warnings(summary, console)
    print_summary(summary, console)
    text = console.export_text()
    assert text.splitlines()[0] == line and text.count(line) == 1
    assert line in class_page_html(summary, late(2, 10, 0.5)).split("<main")[0]


def test_late_penalties_that_move_the_mean_far_give_a_warning() -> None:
    assert "Late penalties change the points of 1 of 10 students" in summarise(late(1, 10, 2.2, earned=4)).warnings[0]


def test_a_mean_moved_by_exactly_five_points_gives_no_warning() -> None:
    """The means differ by 5 points and a rounding error, which must not count as more than 5 points."""
    effect = Effect(students=20, changed=1, before=Sums(20, 1.1 * 575.7), after=Sums(20, 1.1 * 575.7 + 100.00000000001))
    assert not effect.is_large
    assert Effect(students=20, changed=1, before=Sums(20, 0.0), after=Sums(20, 100.01)).is_large


def test_points_by_hand_are_counted_in_exercises_and_checks() -> None:
    hand = ByHand(by="Bo", reason="r", graded=0, was=0)
    whole = make_report(exercise([result("value", "failed")], points=4, earned=3, by_hand=hand), points=4, earned=3)
    part = exercise([result("value", "failed", points=4, earned=1, by_hand=hand)], points=4, earned=1)
    (line,) = summarise([whole, make_report(part, points=4, earned=1).model_copy(update={"student": "bo"})]).warnings
    assert line == (
        "Points set by hand change the points of 2 of 2 students: the class mean is 50%, and 0% without this change. "
        "Check these points and their reasons."
    )


def test_points_by_hand_for_pending_answers_give_no_warning() -> None:
    """Without this rule, every course with a written question would warn that points by hand changed the mean."""
    hand = ByHand(by="Bo", reason="r", graded=0, was=0)
    read = exercise([result("essay", "waiting", points=4, earned=3, by_hand=hand)], points=4, earned=3)
    whole = exercise([result("essay", "waiting", points=4)], points=4, earned=3, by_hand=hand)
    assert summarise([make_report(part, points=4, earned=3) for part in (read, whole)]).warnings == []
    more = exercise([result("essay", "waiting", points=1), result("v", "failed")], points=4, earned=3, by_hand=hand)
    assert (
        "the class mean is 75%, and 25% without this change"
        in summarise([make_report(more, points=4, earned=3)]).warnings[0]
    )
