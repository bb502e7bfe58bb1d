"""The leaderboard's students, their order, and their chosen names."""

from __future__ import annotations

import pytest

from grader.common.result import Evidence, Report
from grader.course.config import CourseError
from grader.wings.leaderboard.command import ranked, render
from tests.reports.example_reports import EVIL, exercise, make_report, number, result


def timed(step: int | None, **changes) -> Evidence:
    base = {"task": "train_step", "mesh": {"x": 2}, "dims": {"I": 8}, "secret": False, "program": "c0", "inputs": "4b"}
    return Evidence.model_validate(base | {"step": step} | changes)


def of(student: str, name: str, step: int | None = 5_000_000_000, status: str = "passed", **changes) -> Report:
    base = {
        "exercise": "m2_train_step",
        "title": "M2 A step",
        "pseudonym": name,
        "evidence": [timed(None), timed(step)],
    }
    return make_report(exercise([result("value", status), number()], **base | changes), student=student)


def places(*reports: Report, **more) -> list[tuple[int, str, int]]:
    return [(p.rank, p.name, p.step) for p in ranked(reports, **more).places]


def test_the_quickest_is_first_and_equal_times_share_a_rank() -> None:
    class_ = [
        of("ada", "otter", 7),
        of("bob", "newt", 5),
        of("cyd", "heron", 7),
        of("dan", "", 1),
        of("eve", "vole", 9),
    ]
    assert places(*class_) == [(1, "newt", 5), (2, "heron", 7), (2, "otter", 7), (4, "vole", 9)]


def test_a_failed_check_costs_the_place_and_a_wrong_answer_does_not() -> None:
    board = ranked([of("ada", "otter"), of("bob", "newt", status="failed"), of("cyd", "heron", status="broken")])
    assert [place.name for place in board.places] == ["otter"]
    assert board.left_out == dict.fromkeys(["bob", "cyd"], "some checks did not pass")


def test_a_time_is_that_of_the_sizes_that_learners_see() -> None:
    several = [timed(None), timed(3, secret=True), timed(8), timed(2)]
    assert places(of("ada", "otter", evidence=several)) == [(1, "otter", 8)]
    assert ranked([of("ada", "otter", None)]).left_out == {"ada": "no program was timed"}


@pytest.mark.parametrize(
    "name", ["ada", "ADA", "a-d-a", "Ada Byron", "ada the great", "Byron", "bÿron", "LovelaceAda", "bob", "king"]
)
def test_no_pseudonym_is_a_name_of_the_class(name: str) -> None:
    board = ranked([of("ada@uni.example", name), of("bob", "")], known=["Byron, Ada", "Lovelace, Ada", "King"])
    assert not board.places
    assert "ada@uni.example" in board.left_out


def test_names_that_only_share_a_word_with_a_student_are_kept() -> None:
    assert places(of("ada", "quiet otter", 3), known=["Otter, Ann"]) == [(1, "quiet otter", 3)]


@pytest.mark.parametrize("name", [EVIL, "<b>x</b>", "x" * 31, "-", "  ", "оtter", "=1+1", "ot\u202eter", "a\x1b[31m"])
def test_names_that_are_not_plain_are_not_shown(name: str) -> None:
    board = ranked([of("ada", name), of("bob", "newt")])
    assert [place.name for place in board.places] == ["newt"]
    assert len(name) < 3 or name not in render(board)


def test_a_name_chosen_by_two_students_is_numbered() -> None:
    assert places(of("ada", "Otter", 4), of("bob", "otter", 3)) == [(1, "otter", 3), (2, "Otter (2)", 4)]


def test_the_page_shows_no_student_and_fetches_nothing() -> None:
    board = ranked([of("ada", "quiet  otter", 69_655_172_414), of("bob", "newt", status="failed")])
    page = render(board)
    assert "quiet otter" in page
    assert "69.655 ms" in page
    assert "M2 A step" in page
    assert not any(word in page for word in (">ada", "bob", "newt", "http:", "https:", "<script"))


def test_errors_explain_why_there_is_no_board() -> None:
    other = of("bob", "newt", exercise="f1_ag_matmul")
    with pytest.raises(CourseError, match="f1_ag_matmul, m2_train_step: choose one exercise with --exercise"):
        ranked([of("ada", "otter"), other])
    assert ranked([of("ada", "otter"), other], "f1_ag_matmul").places[0].name == "newt"
    with pytest.raises(CourseError, match="no student set a leaderboard_name"):
        ranked([of("ada", "")])
