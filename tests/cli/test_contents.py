"""The contents of a course are loaded once, and are then read from the cache until a file of the course changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.cli.contents import contents_of
from grader.cli.listing import list_all, show_one
from grader.course.config import CourseError
from grader.course.finding import find_course
from grader.course.loading import Course, load_course
from tests.commands import shardlings
from tests.made_up import made_up


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """Return a course with one exercise. The cache is empty."""
    monkeypatch.setenv("SHARDLINGS_CACHE", str(tmp_path / "cache"))
    return made_up(tmp_path / "course")


def no_exercise(self: Course, name: str) -> None:
    raise AssertionError(f"{name} was loaded")


def test_after_one_command_no_other_one_loads_an_exercise(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    contents = contents_of(course, "ada")
    monkeypatch.setattr(Course, "exercise", no_exercise)
    new = find_course(course.root)
    assert contents_of(new, "ada") == contents
    assert list_all(new, as_json=False) == 0
    show_one(new, "x1", "ada", hint=0, more=False, as_json=False)
    show_one(new, "gather", "ada", hint=1, more=False, as_json=False)
    show_one(new, "01", "ada", hint=0, more=False, as_json=False)
    shown = capsys.readouterr().out
    assert "Say what to do." in shown and "Hint 1 for gather: a nudge" in shown


@pytest.mark.parametrize(
    "changed", ["course.yaml", "solutions/01_gather/x1_gather.py", "solutions/01_gather/README.md"]
)
def test_after_a_change_of_the_course_the_exercises_are_loaded_again(
    course: Course, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    contents_of(course, "ada")
    path = course.root / changed
    path.write_text((path.read_text() if path.is_file() else "# A page") + "\n")
    monkeypatch.setattr(Course, "exercise", no_exercise)
    with pytest.raises(AssertionError, match="was loaded"):
        contents_of(find_course(course.root), "ada")


def test_a_change_of_the_learners_own_file_loads_nothing(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shardlings("build", cwd=course.root).returncode == 0
    given = course.root / "exercises"
    contents_of(load_course(given / "course.yaml"), "ada")
    (given / "01_gather" / "x1_gather.py").write_text("gather_time = 3\n")
    monkeypatch.setattr(Course, "exercise", no_exercise)
    assert contents_of(load_course(given / "course.yaml"), "ada").exercises


def test_an_unusable_exercise_is_loaded_each_time_because_its_reason_may_be_outside_of_the_course(
    course: Course,
) -> None:
    path = course.path_of("x1_gather")
    path.write_text(path.read_text().replace("import math", "import not_there"))
    broken = find_course(course.root)
    assert "not_there" in contents_of(broken, "ada").unusable["x1_gather"]
    with pytest.raises(CourseError, match="not_there"):
        show_one(broken, "x1", "ada", hint=0, more=False, as_json=False)
    (path.parent / "not_there.py").write_text("")
    assert contents_of(find_course(course.root), "ada").unusable
