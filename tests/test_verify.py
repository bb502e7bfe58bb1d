"""verify: each kind of defect in a course is found and told in one line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader import build, verify
from grader.grade import Grader
from tests.made_up import made_up


def problems(folder: Path, was: str = "", becomes: str = "") -> list[str]:
    course = made_up(folder, was, becomes)
    with Grader(course, "none") as grader:
        return list(verify.exercise_problems(course, grader, "x1_gather"))


def test_a_sound_exercise_has_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path) == []


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ("expect_close(seen.out, seen.a)", "expect_close(seen.out, 2 * seen.a)", "the reference does not pass value: "),
        (
            "    expect_close(seen.out, seen.a)\n",
            "    pass\n",
            "the misconception zeroed fails traffic, it names value",
        ),
        (
            "fails=traffic)",
            "fails=[value, traffic])",
            "the misconception gathered_twice fails traffic, it names traffic, value",
        ),
        ('@exercise.task(hints=["a nudge"])', "@exercise.task", "gather has no hint"),
        ("return 2 * all_gather_time", "return 1.01 * all_gather_time", "gather_time"),
        ("{{ I }}", "{{ J }}", "gather_time"),
    ],
    ids=[
        "wrong-check",
        "check-that-cannot-fail",
        "wrong-fails",
        "no-hint",
        "answers-too-close",
        "text-does-not-render",
    ],
)
def test_a_defect_is_found(tmp_path: Path, was: str, becomes: str, told: str) -> None:
    found = problems(tmp_path, was, becomes)
    assert any(p.startswith(told) for p in found), found
    assert all("\n" not in p for p in found)


def test_two_misconceptions_that_look_alike_are_told(tmp_path: Path) -> None:
    twin = '''@exercise.misconception(fails=value)
def also_zeroed(a, *, mesh):
    """Another text for the same."""
    return jax.numpy.zeros(a.shape)


@exercise.misconception(fails=traffic)'''
    found = problems(tmp_path, "@exercise.misconception(fails=traffic)", twin)
    assert "the misconception also_zeroed gets the hint of zeroed in value" in found


# -- the whole course


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Path]:
    build.build(made_up(tmp_path))
    yield tmp_path


def course_problems(folder: Path, was: str = "", becomes: str = "") -> list[str]:
    return list(verify.course_problems(made_up(folder, was, becomes)))


def test_a_sound_course_has_no_problem(built: Path) -> None:
    assert course_problems(built) == []


def test_what_is_not_current_is_told(built: Path) -> None:
    (built / "exercises" / "01_gather" / "x1_gather.py").write_text("edited")
    assert course_problems(built) == ["exercises/01_gather/x1_gather.py is not current; run `shardlings build`"]


def test_a_file_that_is_not_listed_is_told(built: Path) -> None:
    (built / "solutions" / "01_gather" / "x2.py").write_text("")
    assert course_problems(built) == ["solutions/01_gather/x2.py is not listed in course.yaml"]


def test_a_line_of_a_solution_in_the_statement_is_told(built: Path) -> None:
    line = 'return jax.lax.all_gather(a, "x", axis=0, tiled=True)'
    course = made_up(built)
    made = build.products(course) | {"leaked.md": f"Here it is:\n    {line}\n"}
    assert list(verify.leaks(course, made)) == [f"exercises/leaked.md holds a line of x1_gather/secret_helper: {line}"]


def test_the_seed_in_what_learners_get_is_told(built: Path) -> None:
    course = made_up(built)
    assert list(verify.leaks(course, {"a.py": "x = 'a-secret-seed'"})) == ["exercises/a.py holds the course's seed"]


def test_a_name_used_twice_in_the_course_is_told(built: Path) -> None:
    folder = built / "solutions" / "01_gather"
    (folder / "x2_again.py").write_text((folder / "x1_gather.py").read_text())
    text = (built / "course.yaml").read_text().replace("[x1_gather]", "[x1_gather, x2_again]")
    (built / "course.yaml").write_text(text)
    from grader.course import load_course

    found = list(verify.course_problems(load_course(built / "course.yaml")))
    assert "the name gather is used by x1_gather and by x2_again" in found
