"""The solution written as a submission. A misconception's function can replace a task."""

from __future__ import annotations

from pathlib import Path

from grader.course.reference import reference_source
from tests.made_up import made_up


def test_the_reference_source_is_a_submission_without_the_grader(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = reference_source(course.exercise("x1_gather"), {"gather_time": "3 us"})
    compile(text, "reference", "exec")
    assert "def secret_helper" in text and "gather_time = '3 us'" in text
    assert "exercise" not in text and "grader" not in text and "zeroed" not in text


def test_a_misconceptions_function_replaces_its_task(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    exercise = course.exercise("x1_gather")
    text = reference_source(exercise, {}, exercise.misconceptions["gathered_twice"])
    space: dict = {}
    exec(text, space)
    assert text.count("def gather(") == 1 and "jax.lax.pmax" in text
    assert space["gather"].__doc__ == "You gathered and summed."


def test_a_misconception_may_call_the_task_it_replaces(tmp_path: Path) -> None:
    course = made_up(tmp_path, "    return jax.numpy.zeros(a.shape)", "    return 0 * gather(a, mesh=mesh)")
    exercise = course.exercise("x1_gather")
    text = reference_source(exercise, {}, exercise.misconceptions["zeroed"])
    assert "return 0 * right_gather(a, mesh=mesh)" in text and "def right_gather(" in text


def test_replacing_a_task_leaves_a_library_function_of_its_name_alone(tmp_path: Path) -> None:
    """The misconception replaces the task ``gather``, so the task is renamed. ``jax.lax.gather`` is not."""
    used = '    jax.lax.gather  # "gather(a)"\n    same = gather\n    return 0 * same(a, mesh=mesh)'
    course = made_up(tmp_path, "    return jax.numpy.zeros(a.shape)", used)
    exercise = course.exercise("x1_gather")
    text = reference_source(exercise, {}, exercise.misconceptions["zeroed"])
    assert "same = right_gather" in text and "jax.lax.gather" in text and "lax.right_gather" not in text
