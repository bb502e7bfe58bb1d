"""What a learner fills in."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from grader.course.config import CourseError
from grader.course.loading import load_course
from grader.course.notebooks import notebook
from grader.course.stubs import TRACED, page, stub_source
from tests.made_up import made_up


def test_a_stub_holds_what_is_given_and_asked(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = stub_source(course, course.exercise("x1_gather"))
    compile(text, "stub", "exec")
    for line in ("# X1 Gather", "ROWS = 8", "return math.prod(a.shape)  # a comment that stays", "import jax",
                 '"""Gather A[I_X, J] into A[I, J]."""', 'raise NotImplementedError("gather")', "# TODO",
                 "gather_time = None", "ring, bandwidth only"):  # fmt: skip
        assert line in text, line


def test_nothing_else_is_in_a_stub(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = stub_source(course, course.exercise("x1_gather"))
    for secret in (
        "secret_helper",
        "all_gather(",
        "zeroed",
        "You returned",
        "1012",
        "expect",
        "grader",
        "all_gather_time",
    ):
        assert secret not in text, secret


def test_a_task_needs_a_specification(tmp_path: Path) -> None:
    course = made_up(tmp_path, '    """Gather A[I_X, J] into A[I, J]."""\n', "")
    with pytest.raises(CourseError, match="the task gather has no docstring"):
        stub_source(course, course.exercise("x1_gather"))


def test_everyones_own_numbers_are_not_printed_in_what_everybody_gets(tmp_path: Path) -> None:
    made_up(tmp_path)

    (tmp_path / "course.yaml").write_text(
        (tmp_path / "course.yaml").read_text() + "variants: {mode: per_student, seed: s}\n"
    )
    course = load_course(tmp_path / "course.yaml")
    text = stub_source(course, course.exercise("x1_gather"))
    assert "Your numbers: run `shardlings show gather_time`." in text
    assert "1048576" not in text and "4194304" not in text
    assert "1048576" not in json.dumps(notebook(course, "01_gather"))


def test_stubs_fail_by_saying_that_nothing_is_written(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    space: dict = {}
    exec(stub_source(course, course.exercise("x1_gather")), space)
    with pytest.raises(NotImplementedError, match=r"^gather$"):
        space["gather"](None, mesh=None)
    assert space["gather_time"] is None and space["ROWS"] == 8


def test_every_page_of_a_traced_exercise_says_what_a_trace_cannot_do(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    exercise = course.exercise("x1_gather")
    stub = " ".join(stub_source(course, exercise).split())
    assert " ".join(TRACED.split()) in stub
    cells = json.loads(notebook(course, "01_gather"))["cells"]
    assert TRACED in "".join("".join(c["source"]) for c in cells if c["id"] == "x1_gather-statement")
    assert page(dataclasses.replace(exercise, tasks={})) == exercise.statement
