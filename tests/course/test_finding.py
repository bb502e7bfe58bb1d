"""The search for the course: where it looks, and which courses it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.course import finding
from grader.course.build import build
from grader.course.config import CourseError
from grader.course.finding import find_course
from tests.made_up import made_up


def test_a_missing_course_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"no course.yaml in .*; go to the course's folder or pass --course"):
        find_course(tmp_path / "deep")


def test_a_course_is_found_from_any_folder_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(tmp_path)
    monkeypatch.chdir(tmp_path / "solutions" / "01_gather")
    assert find_course().root == tmp_path
    assert find_course(tmp_path / "course.yaml").root == tmp_path


def test_a_release_is_found_above_its_exercises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(made_up(tmp_path / "author"))
    (tmp_path / "learner").mkdir()
    (tmp_path / "author" / "exercises").rename(tmp_path / "learner" / "exercises")
    found = find_course(tmp_path / "learner")
    assert (found.root, found.solved) == (tmp_path / "learner" / "exercises", False)
    assert list(found.exercises) == ["x1_gather"] and found.exercise("x1_gather").points == 3
    monkeypatch.chdir(tmp_path / "learner" / "exercises" / "01_gather")
    assert find_course().root == found.root


def test_a_course_inside_a_submission_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = made_up(tmp_path / "class" / "alice").root
    monkeypatch.chdir(alice)
    for path in (alice, alice.parent, Path(".."), Path()):
        with pytest.raises(
            CourseError,
            match=r"alice/course\.yaml is inside a submission \(.*pass the course that you trust: --course FOLDER",
        ):
            find_course(handed_in=[path])
    assert find_course(alice, handed_in=[alice]).root == alice  # the caller names this course, so it is trusted


@pytest.mark.parametrize("mark", ["nbgrader_config.py", "gradebook.db"])
@pytest.mark.parametrize("step", ["submitted", "autograded", "feedback", "downloaded"])
def test_a_course_in_nbgraders_folder_of_submissions_is_not_used(
    step: str, mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = made_up(tmp_path / step / "alice" / "01_gather").root
    (tmp_path / mark).touch()
    monkeypatch.chdir(place)
    with pytest.raises(CourseError, match="is in a folder where nbgrader keeps submissions"):
        find_course()


def test_a_course_inside_another_course_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the checkout may have submissions, so a course in it is refused. The folder exercises/ is an exception."""
    build(made_up(tmp_path))
    monkeypatch.chdir(made_up(tmp_path / "class" / "alice").root)
    with pytest.raises(CourseError, match=f"is inside another course, {tmp_path}"):
        find_course()
    monkeypatch.chdir(tmp_path)
    assert find_course().root == tmp_path
    monkeypatch.chdir(tmp_path / "exercises" / "01_gather")
    assert find_course().root == tmp_path / "exercises"


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_a_course_above_that_belongs_to_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up(tmp_path)
    (tmp_path / "mine").mkdir()
    os.chown(tmp_path / "course.yaml", 12345, 12345)
    monkeypatch.chdir(tmp_path / "mine")
    with pytest.raises(CourseError, match=r"course\.yaml belongs to another user"):
        find_course()


def test_the_packaged_course_is_found_only_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(made_up(tmp_path / "author"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(finding, "PACKAGED", tmp_path / "author" / "exercises")
    found = find_course(packaged=True)
    assert not found.solved and found.select(["x1"]) == ["x1_gather"]
    assert set(found.exercise("x1_gather").checks) == {"value"}
    with pytest.raises(CourseError, match=r"no course\.yaml in"):
        find_course(tmp_path / "elsewhere")
    with pytest.raises(CourseError) as error:
        find_course()
    assert str(error.value) == (
        f"no course.yaml in {tmp_path / 'elsewhere'} or above; go to the course's folder, pass --course, "
        "or start a course: shardlings new course FOLDER"
    )
    monkeypatch.chdir(tmp_path / "author")
    assert find_course(packaged=True).root == tmp_path / "author"
