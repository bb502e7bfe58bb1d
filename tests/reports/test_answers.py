"""The class page shows the answers to a question as multiples of the right answer."""

from __future__ import annotations

import math

import pytest

from grader.common.result import Report, Result
from grader.reports.answers import HEIGHT, answer_histogram, score_histogram
from grader.reports.whole_class import WholeClass
from tests.reports.example_reports import answers_of, exercise, make_report, number, result


def right(actual: str = "read as 373 us") -> Result:
    return number(status="passed", earned=1.0, actual=actual, misconception="", hint="")


def wrong(actual: str | None) -> Result:
    return number(actual=actual, misconception="", hint="")


def of(**answers: Result) -> list[Report]:
    return [make_report(exercise([answer]), student=name) for name, answer in answers.items()]


def test_answers_are_counted_by_kind() -> None:
    (found,) = answers_of(
        of(
            ann=right(),
            bea=number(),
            cat=number(),
            dan=wrong("read as 0.1 us"),
            eli=wrong(None),
            fay=wrong("read as 3 MB"),
        )
    )
    assert (found.right, found.answered, found.silent, found.off_scale) == (1, 5, 1, 1)
    (misconception,) = found.misconceptions
    assert (misconception.mark, misconception.name, misconception.students) == ("a", "one_way", ("bea", "cat"))
    assert misconception.ratio == pytest.approx(2, rel=1e-3)
    assert sum(bar.total for bar in found.bars) == 4
    at_two = next(bar for bar in found.bars if bar.low <= 2 < bar.high)
    assert at_two.misconceptions == (("a", 2),)
    at_the_edge = found.bars[0]
    assert (at_the_edge.other, at_the_edge.right) == (1, 0)  # 3700 times too small


def test_the_middle_bar_holds_only_right_answers() -> None:
    (found,) = answers_of(of(ann=right("read as 373 us"), bea=wrong("read as 380 us"), cat=wrong("read as 370 us")))
    middle = len(found.bars) // 2
    assert [(bar.right, bar.other) for bar in found.bars[middle - 1 : middle + 2]] == [(0, 1), (1, 0), (0, 1)]


@pytest.mark.parametrize("actual", ["read as 0 us", "read as -3 us", "nonsense", "read as 1e999 us", "<b>", ""])
def test_an_answer_that_is_not_a_positive_number_is_off_the_scale(actual: str) -> None:
    (found,) = answers_of(of(ann=wrong(actual)))
    assert (found.bars, found.off_scale, found.answered) == ((), 1, 1)
    assert answer_histogram(found).columns == ()


def test_only_submitted_numbers_have_a_histogram() -> None:
    left = make_report(exercise([number()], handed_in=False))
    choice = make_report(exercise([result(kind="choice"), result("value")]))
    assert answers_of([left, choice]) == []


def test_a_histogram_has_a_description_and_bars_to_scale() -> None:
    (found,) = answers_of(of(ann=right(), bea=number(), cat=number()))
    drawn = answer_histogram(found)
    assert drawn.alt == "1 of 3 answers right; 2 answers by the misconception one_way"
    heights = {piece.kind: piece.height for column in drawn.columns for piece in column.pieces}
    assert heights["misconception"] == pytest.approx(2 * heights["right"], abs=0.2)
    assert all(0 < piece.y < HEIGHT for column in drawn.columns for piece in column.pieces)
    assert [column.note for column in drawn.columns if column.note] == ["1", "2 a"]


def test_scores_of_all_are_in_the_histogram_and_a_bonus_is_not() -> None:
    bonus = exercise([result()], exercise="c5_choose", earned=4, extension=True)
    reports = [make_report(exercise([result()], earned=e), bonus, earned=e + 4, points=10) for e in (0, 5, 10, 12)]
    drawn = score_histogram(WholeClass([*reports, make_report(bonus, earned=4, points=0)]).percents)
    assert [column.note for column in drawn.columns] == ["1", *[""] * 4, "1", *[""] * 3, "2"]
    assert "90% and more: 2 students" in drawn.alt
    assert not math.isnan(drawn.ticks[-1][0])
