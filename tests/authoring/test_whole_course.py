"""``verify`` tries the learners' release, and reports what passes only in the author's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.authoring.whole_course import released_problems
from grader.batch.grade import Grader
from grader.batch.workers import Workers
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.public import public_source
from grader.course.reference import reference_source
from grader.course.stubs import stub_source
from grader.intake.submission import Chunk, Source, Submission
from tests.made_up import made_up

NAME = "x1_gather"
CHECKED = '@exercise.check(call, points=1, public=True)\ndef value(seen):\n    """it is whole"""\n    expect_close(seen.out, seen.a)\n    expect_spec(seen.out, P())\n'
IN_A_LOOP = "for _ in (1,):\n" + "".join(f"    {line}\n" for line in CHECKED.splitlines())


def problems(course: Course, workers: Workers) -> list[str]:
    exercise = course.exercise(NAME)
    text = reference_source(exercise, {})
    work = Submission("verify", {NAME: Source(f"{NAME}.py", (Chunk(f"{NAME}.py", text),))}, (), "")
    return list(released_problems(Grader(course, "none", here=workers), exercise, work))


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("", ""),
        ("exercise = Exercise(", "exercise: Exercise = Exercise("),
        ("from grader.expect import expect_close, expect_collectives, expect_spec", "from grader.expect import *"),
        ("A = normal(", "A: object = normal("),
        ("call = exercise.call(", "call: object = exercise.call("),
    ],
    ids=["plain", "annotated", "star", "annotated value", "annotated call"],
)
def test_a_sound_exercise_passes_as_released_in_every_form(
    workers: Workers, tmp_path: Path, was: str, becomes: str
) -> None:
    course = made_up(tmp_path, was, becomes)
    assert problems(course, workers) == []
    assert "expect_close(seen.out, seen.a)" in public_source(course.exercise(NAME))


def test_a_check_that_is_not_at_the_top_level_is_reported(workers: Workers, tmp_path: Path) -> None:
    course = made_up(tmp_path, CHECKED, IN_A_LOOP)
    (lacks,) = problems(course, workers)
    assert lacks == "the learners' file lacks value: declare it at the top level of the file, not in a loop or an if"


DRAWN = 'A = normal("I", "J", spec=P("x", None))'


def test_learners_get_a_given_class_without_its_decorator(workers: Workers, tmp_path: Path) -> None:
    course = made_up(
        tmp_path, "ROWS = exercise.given(8)", "@exercise.given\nclass Odd(ValueError):\n    pass\n\n\nROWS = 8"
    )
    assert problems(course, workers) == []
    stub = stub_source(course, course.exercise(NAME))
    assert "\nclass Odd(ValueError):" in stub and "exercise.given" not in stub


def test_a_helper_of_public_checks_is_released_but_not_in_the_stub(workers: Workers, tmp_path: Path) -> None:
    helper = "@exercise.helper\ndef whole(seen):\n    expect_close(seen.out, seen.a)\n\n\n"
    course = made_up(tmp_path, CHECKED, helper + CHECKED.replace("expect_close(seen.out, seen.a)", "whole(seen)"))
    assert problems(course, workers) == []
    assert "whole" not in stub_source(course, course.exercise(NAME))


@pytest.mark.parametrize(
    ("was", "becomes", "name"),
    [
        (CHECKED, "if True:\n    FACTOR = 1\n\n\n" + CHECKED.replace("seen.a)", "FACTOR * seen.a)"), "FACTOR"),
        (DRAWN, "if True:\n    PUT = P('x', None)\n" + DRAWN.replace('P("x", None)', "PUT"), "PUT"),
    ],
)
def test_a_name_that_learners_need_and_do_not_get_is_reported(
    workers: Workers, tmp_path: Path, was: str, becomes: str, name: str
) -> None:
    course = made_up(tmp_path, was, becomes)
    told = rf"x1_gather.py:\d+: learners' code uses {name}; assign this name on a line of its own: {name} = \.\.\.$"
    with pytest.raises(CourseError, match=told):
        problems(course, workers)


def test_a_release_that_cannot_be_used_is_reported(workers: Workers, tmp_path: Path) -> None:
    """Learners do not get the other files in the author's folder."""
    course = made_up(
        tmp_path, DRAWN, f'from pathlib import Path\nROWS_READ = len(Path(__file__ + ".txt").read_text())\n{DRAWN}'
    )
    path = course.path_of(NAME)
    path.with_name("x1_gather.py.txt").write_text("eight   ")
    path.write_text(path.read_text().replace('dims={"I": 8,', 'dims={"I": ROWS_READ,'))
    with pytest.raises(
        CourseError,
        match=r"^the learners' file cannot be used: exercises/\S+_public/x1_gather.py:\d+: FileNotFoundError",
    ):
        problems(course, workers)
