"""What learners are given: chosen by an allow-list, so that what is not marked is missing, never leaked."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from grader import build
from grader.course import CourseError, load_course
from tests.made_up import made_up


def test_a_stub_holds_what_is_given_and_asked(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = build.stub_source(course, course.exercise("x1_gather"))
    compile(text, "stub", "exec")
    for line in ("# X1 Gather", "ROWS = 8", "return math.prod(a.shape)  # a comment that stays", "import jax",
                 '"""Gather A[I_X, J] into A[I, J]."""', 'raise NotImplementedError("gather")', "# TODO",
                 "gather_time = None", "ring, bandwidth only"):  # fmt: skip
        assert line in text, line


def test_nothing_else_is_in_a_stub(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = build.stub_source(course, course.exercise("x1_gather"))
    for secret in (
        "secret_helper",
        "all_gather(",
        "zeroed",
        "You returned",
        "1016",
        "expect",
        "grader",
        "all_gather_time",
    ):
        assert secret not in text, secret


def test_the_public_part_holds_public_checks_and_no_answer(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = build.public_source(course, course.exercise("x1_gather"))
    compile(text, "public", "exec")
    for there in ("def value(seen)", "expect_close(seen.out, seen.a)", "A = normal(", "'I': 8", "How long do"):
        assert there in text, there
    for secret in ("secret_helper", "def traffic", "zeroed", "1016", "all_gather_time(I", "a-secret-seed", "You "):
        assert secret not in text, secret


def test_a_public_check_may_not_use_a_private_function(tmp_path: Path) -> None:
    course = made_up(tmp_path, "expect_close(seen.out, seen.a)\n", "expect_close(seen.out, secret_helper(seen.a))\n")
    with pytest.raises(CourseError, match=r"uses the private function secret_helper; mark it with @exercise.given"):
        build.public_source(course, course.exercise("x1_gather"))


def test_hidden_sizes_may_not_hide_in_a_dict(tmp_path: Path) -> None:
    course = made_up(
        tmp_path,
        'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1016, "J": 5})',
        'SIZES = {"dims": {"I": 8, "J": 3}, "hidden_dims": {"I": 1016, "J": 5}}\ncall = exercise.call(gather, a=A, **SIZES)',
    )
    with pytest.raises(CourseError, match="must be keywords of the call itself"):
        build.public_source(course, course.exercise("x1_gather"))


def test_a_task_needs_a_specification(tmp_path: Path) -> None:
    course = made_up(tmp_path, '    """Gather A[I_X, J] into A[I, J]."""\n', "")
    with pytest.raises(CourseError, match="the task gather has no docstring"):
        build.stub_source(course, course.exercise("x1_gather"))


def test_the_reference_is_a_submission(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = build.reference_source(course.exercise("x1_gather"), {"gather_time": "3 us"})
    compile(text, "reference", "exec")
    assert "def secret_helper" in text and "gather_time = '3 us'" in text
    assert "exercise" not in text and "grader" not in text and "zeroed" not in text


def test_a_mutant_takes_its_tasks_place(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    exercise = course.exercise("x1_gather")
    text = build.reference_source(exercise, {}, exercise.misconceptions["gathered_twice"])
    space: dict = {}
    exec(text, space)
    assert text.count("def gather(") == 1 and "jax.lax.pmax" in text
    assert space["gather"].__doc__ == "You gathered and summed."


def test_a_misconception_may_call_the_task_it_replaces(tmp_path: Path) -> None:
    course = made_up(tmp_path, "    return jax.numpy.zeros(a.shape)", "    return 0 * gather(a, mesh=mesh)")
    exercise = course.exercise("x1_gather")
    text = build.reference_source(exercise, {}, exercise.misconceptions["zeroed"])
    assert "return 0 * right_gather(a, mesh=mesh)" in text and "def right_gather(" in text


def test_a_notebook_is_valid_with_ids_that_stay(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = build.notebook(course, "01_gather")
    book = nbformat.reads(text, as_version=4)
    nbformat.validate(book)
    assert [c.id for c in book.cells] == [
        "01_gather-intro", "01_gather-setup", "x1_gather-statement", "x1_gather-given", "x1_gather-gather",
        "x1_gather-gather_time-text", "x1_gather-gather_time", "x1_gather-check",
    ]  # fmt: skip
    assert build.notebook(course, "01_gather") == text
    setup = book.cells[1].source
    assert setup.index("XLA_FLAGS") < setup.index("import jax")


def test_building_twice_changes_nothing_and_stale_files_go(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    assert len(build.build(course)) == 4
    assert build.build(course) == []
    (tmp_path / "exercises" / "01_gather" / "old.py").write_text("")
    (tmp_path / "exercises" / "01_gather" / "x1_gather.py").write_text("edited")
    assert build.stale(course) == ["01_gather/old.py", "01_gather/x1_gather.py"]
    build.build(course)
    assert not (tmp_path / "exercises" / "01_gather" / "old.py").exists()
    assert build.stale(course) == []


def test_everyones_own_numbers_are_not_printed_in_what_everybody_gets(tmp_path: Path) -> None:
    made_up(tmp_path)

    (tmp_path / "course.yaml").write_text(
        (tmp_path / "course.yaml").read_text() + "variants: {mode: per_student, seed: s}\n"
    )
    course = load_course(tmp_path / "course.yaml")
    text = build.stub_source(course, course.exercise("x1_gather"))
    assert "Your numbers: run `shardlings show gather_time`." in text
    assert "1048576" not in text and "4194304" not in text
    assert "1048576" not in json.dumps(build.notebook(course, "01_gather"))
