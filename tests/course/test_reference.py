"""The solution as a submission, with the author's line numbers or not. A misconception's function can replace a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.finding import find_course
from grader.course.reference import reference_in_place, reference_source
from tests.commands import ROOT
from tests.made_up import made_up

COURSE = find_course(ROOT)


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


def test_reference_in_place_keeps_the_authors_lines_at_their_numbers(tmp_path: Path) -> None:
    exercise = made_up(tmp_path).exercise("x1_gather")
    text = reference_in_place(exercise)
    author = exercise.source.splitlines()
    kept = [(i, line) for i, line in enumerate(text.splitlines()) if line and line != "ROWS = 8"]
    assert kept and all(author[i] == line for i, line in kept)
    assert author[text.splitlines().index("ROWS = 8")] == "ROWS = exercise.given(8)"
    assert "def secret_helper" in text and "def gather" in text
    for word in ("exercise", "grader", "zeroed", "hidden_dims", '"""# X1'):
        assert word not in text


@pytest.mark.parametrize(
    "name", [e for e in COURSE.module_of if any(t.kind != "function" for t in COURSE.exercise(e).tasks.values())]
)
def test_reference_in_place_defines_every_name_of_the_reference(name: str) -> None:
    exercise = COURSE.exercise(name)
    in_place: dict = {}
    exec(compile(reference_in_place(exercise), f"{name}.py", "exec"), in_place)
    usual: dict = {}
    exec(reference_source(exercise, {}), usual)
    assert set(exercise.tasks) <= set(in_place)
    assert set(usual) - set(in_place) == set()
    for task in exercise.tasks.values():
        assert in_place[task.name].__code__.co_firstlineno == task.fn.__code__.co_firstlineno + len_of_decorators(
            task.fn
        )


def len_of_decorators(fn: object) -> int:
    """Return the number of lines with decorators above ``def``. The solution lacks these lines."""
    import inspect

    lines, _ = inspect.getsourcelines(fn)  # type: ignore[arg-type]
    return next(i for i, line in enumerate(lines) if line.startswith("def "))
