"""Text that students see, and text that they must not see."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from grader.common.result import HandIn, Report
from grader.reports.pages import render_fragment, render_html
from grader.reports.summary import summarise
from grader.reports.wording import (
    checked_text,
    data_pairs,
    passing_text,
    percent_of,
    score_of,
    standing_of,
    unstated_pairs,
    with_unit,
    worth_of,
)
from tests.reports.example_reports import (
    class_page_html,
    exercise,
    grades_csv,
    make_report,
    mixed,
    number,
    printed,
    result,
)


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


def with_bonus(*, required: bool = True) -> Report:
    """Return a report with 3 of 4 points for an extension and, with ``required``, full marks for an exercise."""
    extra = [result("a", points=3), result("b", "failed", points=1)]
    extension = exercise(extra, exercise="c5_choose", module="04_more", extension=True)
    parts = [exercise([result("v", points=2)])] if required else []
    return make_report(*parts, extension, points=2.0 if required else 0.0)


def test_a_bonus_is_no_part_of_the_points() -> None:
    report = with_bonus()
    assert (report.bonus, percent_of(report), score_of(report)) == (3, 100, "2 / 2 + 3 bonus points")
    assert standing_of(report) == "Score: 2 / 2 + 3 bonus points (100%)"
    assert [worth_of(e) for e in report.exercises] == ["2/2", "bonus 3/4"]
    page = render_html(report)
    assert "of 2 points, 100%; 3 bonus points" in page and "bonus 3/4" in page and "5 of 2" not in page


def test_a_report_of_extensions_alone_has_a_bonus_and_no_percentage(tmp_path: Path) -> None:
    alone = with_bonus(required=False)
    assert (percent_of(alone), standing_of(alone)) == (None, "Score: 3 of 4 bonus points")
    summary = summarise([alone])
    assert (summary.mean, [a.mean for a in summary.assignments]) == (None, [None])
    for text in (printed(alone), render_html(alone), class_page_html(summary, [alone])):
        assert "/ 0" not in text and "of 0 points" not in text
    assert "0%" not in printed(alone) and ", 0%" not in render_html(alone)
    grades_csv([alone], tmp_path / "g.csv", ["zoe"])
    assert (tmp_path / "g.csv").read_text().splitlines()[-1] == "zoe,0,0,0,,0,0,0,nothing handed in"
    grades_csv([alone, with_bonus()], tmp_path / "g.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "g.csv").read_text())))
    totals = [[row[name] for name in ("earned", "points", "percent", "bonus")] for row in rows]
    assert totals == [["0", "0", "", "3"], ["2", "2", "100", "3"]]


def test_lateness_takes_its_share_of_a_bonus_and_of_the_rest() -> None:
    """Students who submit a bonus late never have a smaller percentage than students who leave it out."""
    late = HandIn(module="04_more", submitted="2026-11-02T14:00:00+00:00", source="s", penalty=1.5, text="late")
    apart = with_bonus().model_copy(update={"earned": 3.5, "hand_ins": [late]})
    assert (apart.bonus, percent_of(apart), score_of(apart)) == (1.5, 100, "2 / 2 + 1.5 bonus points")
    exercises = [e.model_copy(update={"module": "04_more"}) for e in apart.exercises]
    both = apart.model_copy(update={"exercises": exercises})  # 2 points and a bonus of 3, minus 30 %
    assert (both.bonus, percent_of(both), score_of(both)) == (2.1, 70, "1.4 / 2 + 2.1 bonus points")
    alone = apart.model_copy(update={"exercises": exercises[1:], "points": 0.0, "earned": 1.5})
    assert (alone.bonus, percent_of(alone), score_of(alone)) == (1.5, None, "1.5 of 4 bonus points")


def test_written_answers_are_counted_as_awaiting_the_staff() -> None:
    words = number(status="waiting", reason="the staff reads this answer", actual="It waits.", hint="")
    empty = number(status="blocked", reason="not answered yet", actual=None, hint="")
    assert passing_text([words]) == "1 answer for the staff to read"
    assert passing_text([result("a"), result("b", "failed"), words]) == "1 of 2 pass; 1 answer for the staff to read"
    assert checked_text([words, empty]) == "1 answer for the staff to read; 1 not answered yet"


def test_values_in_the_reason_are_not_repeated_on_a_terminal() -> None:
    shape = "the result has shape (8, 80), expected (16, 40)"
    said = result("a", "failed", reason=shape, expected=[16, 40], actual=[8, 80], staff="seed 3")
    assert unstated_pairs(said) == [("for staff", "seed 3")]
    assert [name for name, _ in data_pairs(said)] == ["expected", "yours", "for staff"]
    short = result("a", "failed", reason="on the mesh (x=4, y=2), device 1 is wrong", expected=2, actual=1)
    assert unstated_pairs(short) == [("expected", "2"), ("yours", "1")]
    half = result("a", "failed", reason="it returned [8, 80]", expected=[16, 40], actual=[8, 80])
    assert unstated_pairs(half) == data_pairs(half)


def test_unjudged_answers_are_counted_apart() -> None:
    read = number(
        status="blocked", reason="read as 3 us; the answer is judged after you submit", actual="read as 3 us", hint=""
    )
    empty = number(status="blocked", reason="not answered yet", actual=None, hint="")
    misfit = number(reason="the question asks for a time, but you gave an amount of data")
    done = [result("a"), result("b", "failed"), read]
    assert checked_text(done) == "1 of 2 checks pass; 1 answer read, not judged yet"
    assert checked_text([read, read, misfit, empty]) == (
        "2 answers read, not judged yet; 1 answer cannot be right; 1 not answered yet"
    )
    report = make_report(exercise(done))
    text = printed(report)
    assert "dimension  1 of 2 checks pass; 1 answer read, not judged" in text.replace("\n", " ")
    assert text.rstrip().splitlines()[-1] == "1 of 2 checks pass; 1 answer read, not judged yet" and "%" not in text
    assert "take?  1 point\n" in text and "0/1\n    read" not in text
    assert "1 answer read" in render_fragment(report.exercises[0])


def test_a_hint_of_several_results_is_shown_once_in_an_exercise() -> None:
    hints = {"a": "gather each layer", "b": "gather each layer", "c": "sum the rows", "d": ""}
    two = [
        exercise([result(name, "failed", hint=hint) for name, hint in hints.items()]),
        exercise([result("e", "failed", hint="sum the rows")], exercise="c4_same_axis_twice"),
    ]
    text = printed(make_report(*two))
    assert re.findall(r"hint: (.*?) *\n", text) == ["gather each layer", "as above", "sum the rows", "sum the rows"]
    assert render_html(make_report(*two)).count("gather each layer") == 1
    assert render_fragment(two[0]).count("gather each layer") == 1


def test_results_of_a_file_in_which_nothing_was_written_are_shown() -> None:
    """The exercise does not count as handed in, but its results show the line at which the student can begin."""
    blank = exercise([result("v", "failed", reason="line 9: f: not written yet")], handed_in=False)
    none = exercise([result("v", "failed", reason="f: nothing was handed in for this exercise")], handed_in=False)
    for one, said in ((blank, "line 9: f: not written yet"), (none, "nothing was handed in for this exercise")):
        assert said in printed(make_report(one))
        page = render_html(make_report(one))
        assert ("not written yet" in page) is (one is blank)
        assert ("Nothing was handed in for this exercise." in page) is (one is none)


@pytest.mark.parametrize(
    ("data", "unit", "text"),
    [
        (266820, "B", "266,820 B"),
        (154.4, "B", "154 B"),
        (0.5, "s", "0.5 s"),
        (266820, "", "266820"),
        ("P('x')", "B", """P('x')"""),
        ({"x": 2}, "B", "x: 2"),
    ],
)
def test_numbers_have_units(data: object, unit: str, text: str) -> None:
    assert with_unit(data, unit) == text
