"""Points by hand: the grader checks them, keeps them over regrades, and reports points that no longer fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.batch.overrides import (
    FILE,
    Adjustments,
    Override,
    as_graded,
    overridden,
    read_overrides,
    unknown,
    with_sums,
)
from grader.common.result import Report
from grader.course.config import CourseError
from tests.reports.example_reports import exercise, make_report, result

EXERCISE = "c3_contracting"


def graded(*earned: float, status: str = "passed") -> Report:
    results = [result(f"check{i}", status, points=2.0, earned=e) for i, e in enumerate(earned)]
    return make_report(exercise(results))


def override(check: str = f"{EXERCISE}/check0", points: float = 1, **changes) -> Override:
    base = {"student": "alice", "check": check, "points": points, "by": "Bob", "reason": "the statement was wrong"}
    return Override.model_validate(base | changes)


def laid_over(report: Report, *overrides: Override, old: Report | None = None) -> tuple[Report, list[str]]:
    found, problems = overridden(report, old, overrides)
    return with_sums(found), problems


def test_points_by_hand_for_a_check_or_an_exercise_keep_the_graders_points() -> None:
    plain = graded(0, 2)
    found, problems = laid_over(plain, override(points=1.5))
    assert (found.earned, problems) == (3.5, [])
    by_hand = found.exercises[0].results[0].by_hand
    assert by_hand and (by_hand.by, by_hand.reason, by_hand.graded) == ("Bob", "the statement was wrong", 0)
    assert as_graded(found) == plain
    whole, _ = laid_over(plain, override(EXERCISE, 4))
    assert whole.earned == 4 and whole.exercises[0].by_hand and as_graded(whole) == plain


@pytest.mark.parametrize("check", ["c3/check0", "C3/check0", "c3_con/check0"])
def test_an_override_may_shorten_names_as_on_the_command_line(check: str) -> None:
    plain = graded(0)
    assert laid_over(plain, override(check, 1.5)) == laid_over(plain, override(points=1.5))
    assert laid_over(plain, override("c3", 1.5)) == laid_over(plain, override(EXERCISE, 1.5))
    assert laid_over(plain, override(), override(check)) == (
        laid_over(plain, override())[0],
        [f"alice {check}: another line sets {EXERCISE}/check0; this line does nothing"],
    )
    assert laid_over(plain, override(EXERCISE), override(check))[1] == [
        f"alice {check}: another line sets {EXERCISE}; this line does nothing"
    ]


def test_points_by_hand_end_the_wait_of_pending_points() -> None:
    plain = graded(0, status="broken")
    assert plain.pending == 2
    found, _ = laid_over(plain, override(points=2))
    assert (found.earned, found.pending) == (2, 0) and as_graded(found) == plain


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (override("c9_other"), f"alice c9_other: no exercise, check or question 'c9_other'; there are {EXERCISE}, check0; the line does nothing"),
        (override(f"{EXERCISE}/nope"), f"alice {EXERCISE}/nope: no check or question 'nope'; there are check0; the line does nothing"),
        (override(points=3), f"alice {EXERCISE}/check0: the line gives 3 points, but at most 2 are possible; the line does nothing"),
    ],
)  # fmt: skip
def test_an_override_that_does_not_fit_changes_nothing_and_is_reported(one: Override, said: str) -> None:
    plain = graded(0)
    assert laid_over(plain, one) == (plain, [said])


def test_an_override_without_effect_disables_no_other() -> None:
    """Otherwise a line with a typing error disables the correct line below it."""
    plain = graded(0, 2)
    typo, too_many = override(f"{EXERCISE}/chekc0"), override(points=3)
    found, problems = laid_over(plain, typo, too_many, override(EXERCISE, 3))
    assert found.earned == 3 and len(problems) == 2
    assert not any("another line sets" in problem for problem in problems)


def test_an_ambiguous_short_name_gives_no_points_and_lists_the_checks() -> None:
    plain = graded(0, 2)
    assert laid_over(plain, override("c3/check")) == (
        plain,
        ["alice c3/check: 'check' could be check0, check1: write more of the name; the line does nothing"],
    )


def test_an_override_matches_a_name_in_another_unicode_form() -> None:
    assert override(student="Zoe\u0308").student == "Zo\u00eb"


def test_an_override_for_a_student_without_a_report_is_reported() -> None:
    (told,) = unknown([override(), override(student="zoe")], ["alice"])
    assert told == ("zoe", f"zoe {EXERCISE}/check0: no student of this name has a report; the line does nothing")
    (told,) = unknown([override(student="ALICE")], ["alice"])
    assert "no student of this name has a report (there is alice); the line does nothing" in told[1]


def test_a_result_that_changed_under_an_override_is_reported_until_checked() -> None:
    first, _ = laid_over(graded(0), override())
    second, problems = laid_over(graded(2), override(), old=first)
    wanted = (
        f"alice {EXERCISE}/check0: the grader gives 2 now, but gave 0 when 1 was set by hand; "
        "check the points, then delete the line or write graded: 2 into the line"
    )
    assert problems == [wanted] and second.earned == 1  # the override still applies
    assert laid_over(graded(2), override(), old=second)[1] == [wanted]
    assert laid_over(graded(2), override(graded=2), old=second)[1] == []


@given(st.lists(st.sampled_from([0.0, 2.0]), min_size=1, max_size=4), st.data())
def test_overrides_can_be_removed_and_applying_them_twice_changes_nothing(earned, data) -> None:
    plain = graded(*earned)
    chosen = data.draw(st.sets(st.integers(0, len(earned) - 1)))
    listed = [override(f"{EXERCISE}/check{i}", data.draw(st.floats(0, 2))) for i in chosen]
    adjust = Adjustments(overrides=listed)
    once = adjust.settle(plain, None)
    assert as_graded(once) == plain
    assert adjust.settle(as_graded(once), once) == once
    assert 0 <= once.earned <= once.points
    assert Adjustments().settle(plain, None) is plain


def written(folder: Path, text: str) -> Path:
    (folder / FILE).write_text(text)
    return folder


LINE = "  - {student: a, check: c3/v, points: 1, by: B, reason: r}\n"


def test_overrides_yaml_is_read_and_may_be_missing(tmp_path: Path) -> None:
    assert read_overrides(tmp_path) == ()
    assert read_overrides(written(tmp_path, "overrides:\n")) == ()
    (one,) = read_overrides(written(tmp_path, f"overrides:\n{LINE}"))
    assert (one.student, one.check, one.points, one.by, one.reason) == ("a", "c3/v", 1, "B", "r")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("overrides:\n" + LINE.replace("points", "pionts"), r"overrides\.yaml:2: overrides\.0\.pionts: no such field; did you mean 'points'\?"),
        ("overrides:\n" + LINE.replace("points: 1", "points: -1"), r"overrides\.yaml:2: overrides\.0\.points: .*greater than or equal to 0"),
        ("overrides:\n" + LINE.replace("points: 1", "points: yes"), r"overrides\.yaml:2: overrides\.0\.points: points are a number"),
        ("overrides:\n" + LINE.replace("student: a", "student: 0123"), r"overrides\.yaml:2: overrides\.0\.student: put a name that is a number in quotes"),
        ("overrides:\n" + LINE.replace("points: 1", "points: .nan"), r"overrides\.yaml:2: overrides\.0\.points: "),
        ("overrides:\n" + LINE.replace("points: 1", "points: .inf"), r"overrides\.yaml:2: overrides\.0\.points: "),
        ("overrides:\n" + LINE.replace(", reason: r", ""), r"overrides\.yaml:2: overrides\.0\.reason: Field required"),
        ("overrides:\n" + LINE + LINE, r"overrides\.yaml:1: overrides: a c3/v appears twice; keep one"),
        ("overrides:\n" + LINE + LINE.replace("c3/v", "c3"), r"one line sets a c3 as a whole, and another line sets its check c3/v; keep one line"),
        ("overrides:\n" + LINE + "overrides:\n" + LINE, r"overrides\.yaml:3: overrides appears twice; keep one"),
        ("overrides:\n" + LINE.replace("points: 1", "points: 1, points: 2"), r"overrides\.yaml:2: points appears twice"),
        ("overrides: &a\n  - *a\n", r"overrides\.yaml:"),
        ("- a\n", r"overrides\.yaml:1: the file: write a field and its value, as in overrides: \.\.\."),
        ("a: [", r"overrides\.yaml:\d: not YAML"),
    ],
)  # fmt: skip
def test_a_mistake_in_overrides_yaml_gives_a_one_line_error(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=said):
        read_overrides(written(tmp_path, text))


def test_a_written_answer_that_changes_after_it_got_points_needs_review() -> None:
    """The points stay, because a person gave them, but perhaps for another text."""

    def handed_in(text: str) -> Report:
        return make_report(exercise([result("essay", "waiting", points=2.0, earned=0, actual=text), result("other")]))

    line = override(f"{EXERCISE}/essay", 1.5)
    first, problems = laid_over(handed_in("one"), line)
    assert problems == []
    same, problems = laid_over(handed_in("one"), line, old=first)
    assert problems == []
    other, problems = laid_over(handed_in("two"), line, old=same)
    doubt = "the answer has changed since 1.5 points were set by hand; check the points, then delete the line or write another reason"
    assert len(problems) == 1 and problems[0].endswith(doubt)
    blank, _ = laid_over(handed_in(""), line)
    assert len(laid_over(handed_in("late"), line, old=blank)[1]) == 1, "the answer was blank"
    broken = make_report(exercise([result("essay", "broken", points=2.0, earned=0), result("other")]))
    assert laid_over(broken, line, old=first)[1] == [], "the grader failed, so nobody knows the answer"
    again, problems = laid_over(handed_in("two"), line, old=other)
    assert len(problems) == 1 and again.exercises[0].results[0].earned == 1.5
    assert laid_over(handed_in("two"), override(f"{EXERCISE}/essay", 1.5, reason="read again"), old=again)[1] == []
    assert (
        len(
            laid_over(
                handed_in("two"), override(EXERCISE, 2), old=laid_over(handed_in("one"), override(EXERCISE, 2))[0]
            )[1]
        )
        == 1
    )
