"""Warnings about changed scores of a class that no new submission explains."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from grader.batch.changes import COURSE, MISSING
from grader.batch.overrides import with_sums
from grader.batch.rules import ChangedRules, with_new_work
from grader.common.result import ByHand, ExerciseReport, HandIn, Report
from grader.reports.moved import Effect
from tests.reports.example_reports import exercise, make_report, result

SAME = {"submission": "s", "files": "f", "course": "c"}


def report(earned: float, basis: dict[str, str] = SAME, status: str = "passed", **changes) -> Report:
    """Return a report with two exercises of 5 points each. The second one has full points."""
    graded = exercise([result("value", status, points=5, earned=earned)], points=5, earned=earned, basis=basis)
    other = exercise([result("v", points=5, earned=5)], points=5, earned=5, exercise="c9", basis=SAME)
    return make_report(graded, other, **changes)


def warnings(pairs: Sequence[tuple[Report | None, Report]]) -> list[str]:
    rules = ChangedRules()
    for old, new in pairs:
        rules.add(old, new)
    return rules.warnings()


def of_ten(number: int, old: Report | None, new: Report) -> list[str]:
    """Return the warnings for a class of ten students. ``number`` students change from ``old`` to ``new``."""
    return warnings([*[(old, new)] * number, *[(report(5), report(5))] * (10 - number)])


def test_a_changed_course_that_moves_many_scores_gives_a_warning() -> None:
    new = report(4, SAME | {"course": "d"})
    assert of_ten(1, report(5), new) == []
    assert of_ten(2, report(5), new) == [
        "Since the last run, causes other than new submissions change the points of 2 of 10 students: the class mean "
        f"is 98%, and 100% without this change. Causes: {COURSE} (2 students)."
    ]


def test_a_change_that_moves_the_mean_far_gives_a_warning() -> None:
    def half(earned: float, grader: str) -> Report:
        return make_report(*report(earned, SAME | {"grader": grader}).exercises[:1])

    others = [(report(5), report(5))] * 9
    assert warnings([(report(5), report(0, SAME | {"grader": "h"})), *others]) == [], "five percentage points"
    (line,) = warnings([(half(5, "g"), half(0, "h")), *others])
    assert "1 of 10 students: the class mean is 90%, and 100% without" in line and "the grader changed" in line


def test_a_student_who_no_longer_counts_as_handed_in_is_a_named_cause() -> None:
    def nothing(grader: str, *, handed_in: bool) -> Report:
        (one, _) = report(0, SAME | {"grader": grader}).exercises
        return make_report(one.model_copy(update={"handed_in": handed_in}))

    (line,) = warnings([(nothing("g", handed_in=True), nothing("h", handed_in=False)), *[(report(5), report(5))] * 3])
    assert "Causes: the grader changed (1 student)." in line


def test_new_submissions_and_first_reports_give_no_warning() -> None:
    assert of_ten(10, report(5), report(0, SAME | {"submission": "t", "course": "d"})) == []
    assert of_ten(10, None, report(0)) == []
    first = make_report(*report(5).exercises[:1])
    assert of_ten(10, first, report(5)) == []


def test_files_that_are_missing_from_the_folders_give_a_warning() -> None:
    """Earlier, a run on the folders of week 2 removed the points of week 1 without a warning."""
    penalty = HandIn(module="03_matmuls", submitted="2026-01-01", source="submitted.csv", penalty=1)
    new, late = report(0, SAME | {"submission": "", "files": ""}), with_sums(report(5, hand_ins=[penalty]))
    assert of_ten(1, report(5), new) == []
    (line,) = of_ten(3, report(5), new)
    assert "of 3 of 10 students: the class mean is 85%, and 100%" in line and f"Causes: {MISSING} (3 students)." in line
    assert "is 85%, and 97% without" in of_ten(3, late, new)[0], "the penalty does not end"


@pytest.mark.parametrize("status", ["broken", "waiting"])
def test_pending_points_give_no_warning_when_they_come(status: str) -> None:
    """Points that become pending, and points by hand that are removed, still give a warning."""
    by_hand = ByHand(by="Bob", reason="read", graded=0, was=0)
    waits = report(0, status=status)
    assert of_ten(10, waits, report(5)) == []
    assert "is 50%, and 100% without this change" in of_ten(10, report(5), waits)[0]
    read = exercise([result("value", status, points=5, earned=3, by_hand=by_hand)], points=5, earned=3, basis=SAME)
    assert of_ten(10, waits, make_report(read, report(5).exercises[1])) == []
    assert of_ten(10, make_report(read, report(5).exercises[1]), waits) != []
    whole = waits.exercises[0].model_copy(update={"earned": 3, "by_hand": by_hand})
    assert of_ten(10, waits, make_report(whole, report(5).exercises[1])) == []


def test_points_set_by_hand_give_a_warning_when_they_come_and_when_they_go() -> None:
    by_hand = ByHand(by="Bob", reason="a gift", graded=0, was=0)
    plain, gift = (
        make_report(exercise([result("v", "failed", points=5)], points=5, earned=earned, basis=SAME, by_hand=of))
        for earned, of in ((0, None), (5, by_hand))
    )
    for old, new in ((plain, gift), (gift, plain)):
        assert "Causes: points were set by hand (2 students)." in of_ten(2, old, new)[0]


def test_a_changed_late_policy_gives_a_warning_but_a_late_submission_none() -> None:
    def late(penalty: float, files: str = "f") -> Report:
        one = HandIn(module="03_matmuls", submitted="2026-01-01", source="submitted.csv", penalty=penalty)
        return with_sums(report(5, SAME | {"files": files}, hand_ins=[one]))

    assert "Causes: late penalties changed (3 students)." in of_ten(3, late(2), late(0))[0]
    assert "is 98.5%, and 100% without this change" in of_ten(3, report(5), late(0.5))[0]
    assert of_ten(10, report(5), late(5, "g")) == []


def test_removed_exercises_and_changed_weights_give_a_warning() -> None:
    short = make_report(*report(5).exercises[:1])
    assert f"Causes: {COURSE} (2 students)." in of_ten(2, report(5), short)[0]
    (line,) = of_ten(2, report(5), twice(report(5)))
    assert "the mean score is 11 of 11 points, and 10 of 10 points without this change" in line


def test_a_warning_names_a_mean_that_changes() -> None:
    """The mean score is 100% with and without the change, so the warning names the mean bonus."""

    def bonus(points: float) -> Report:
        more = exercise([result("w", points=9, earned=points)], exercise="z9", extension=True, basis=SAME)
        return with_sums(report(5).model_copy(update={"exercises": [*report(5).exercises, more]}))

    (line,) = of_ten(2, bonus(9), bonus(4))
    assert "of 10 students: the mean bonus is 0.8 points, and 1.8 points without this change. Causes" in line
    effect = Effect(students=3, changed=3)
    assert effect.warnings("Rules", "Why.") == ["Rules change the points of 3 of 3 students. Why."]


def twice(graded: Report) -> Report:
    """Return the report with twice the points for the first exercise."""
    first: ExerciseReport = graded.exercises[0].model_copy(update={"points": 10, "earned": 10})
    return graded.model_copy(update={"exercises": [first, graded.exercises[1]], "points": 15, "earned": 15})


def test_only_new_submissions_are_taken_from_the_new_report() -> None:
    old, new = report(5), report(0, SAME | {"submission": "t"})
    assert [e.earned for e in with_new_work(old, new).exercises] == [0, 5]
    assert with_new_work(old, report(0)).earned == 10
