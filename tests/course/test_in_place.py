"""The solution as source text in which each line keeps the line number of the author's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.finding import find_course
from grader.course.in_place import reference_in_place
from grader.course.reference import reference_source
from tests.commands import ROOT
from tests.made_up import made_up

COURSE = find_course(ROOT)


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
