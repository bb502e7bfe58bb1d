"""The current exercise, the hints that were asked for, and the exercise to begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.config import CourseError
from grader.course.loading import load_course
from grader.watching.session import WatchSession
from tests.made_up import made_up
from tests.reports.example_reports import exercise, make_report, number, result


@pytest.fixture
def session(tmp_path: Path) -> WatchSession:
    """Return a session of a course with one exercise and an empty folder for the learner's files."""
    made_up(tmp_path)
    (tmp_path / "work").mkdir()
    return WatchSession(load_course(tmp_path / "course.yaml"), tmp_path / "work", "me", ["x1_gather"])


def test_hints_belong_to_the_first_failing_function_one_at_a_time(session: WatchSession) -> None:
    session.hint()
    assert session.hints == []  # nothing fails yet
    session.report = exercise(
        [result("value", "failed", task="gather"), number(name="gather_time", task="gather_time")]
    )
    assert (session.function, session.hints, session.hints_left) == ("gather", [], 1)
    session.hint()
    session.hint()
    assert (session.hints, session.hints_left) == (["a nudge"], 0)
    session.report = exercise([result("value", task="gather"), number(name="gather_time", task="gather_time")])
    assert (session.function, session.hints, session.hints_left) == ("gather_time", [], 0)


def test_a_session_looks_only_at_changed_files(session: WatchSession) -> None:
    assert not session.look() and session.source is None
    with pytest.raises(CourseError, match=r"^there is no file of x1_gather to reset$"):
        session.reset()
    with pytest.raises(CourseError, match=r"^there is no file of x1_gather to explain$"):
        session.explain()
    file = session.place / "x1_gather.py"
    file.write_text("gather_time = 3\n")
    assert session.look() and not session.look() and session.where == file.name
    file.write_text("gather_time = 4\n")
    assert session.look()
    file.unlink()
    assert session.look() and session.source is None and session.report is None


def test_a_file_that_an_editor_is_just_replacing_does_not_end_the_session(tmp_path: Path) -> None:
    made_up(tmp_path)
    file = tmp_path / "x1_gather.py"
    file.write_text("gather_time = 3\n")
    session = WatchSession(load_course(tmp_path / "course.yaml"), file, "me", ["x1_gather"])
    assert session.look()
    file.rename(tmp_path / "backup~")
    assert not session.look() and session.source is not None
    assert len(session.notes) == 1 and "x1_gather.py cannot be read: No such file" in session.notes[0]
    file.write_text("gather_time = 4\n")
    assert session.look()


def test_a_session_starts_at_the_first_unfinished_exercise(tmp_path: Path) -> None:
    made_up(tmp_path)
    session = WatchSession(load_course(tmp_path / "course.yaml"), tmp_path, "me", ["x1_gather", "x2", "x3"])
    done = exercise([result()], exercise="x1_gather")
    left = exercise([result("a", "failed")], exercise="x2")
    missing = exercise([result("a", "failed")], exercise="x3", handed_in=False)
    session.start(make_report(done, left, missing))
    assert session.position == "2 of 3" and session.move(1) and not session.move(1) and session.move(-1)
    session.start(make_report(done))
    assert session.position == "1 of 3" and not session.move(-1)
