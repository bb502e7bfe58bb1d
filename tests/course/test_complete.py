"""Files for learners must define every name that they use. Otherwise ``build`` names the author's line to change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.course.answers import answers
from grader.course.complete import unbound
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.public import public_source
from grader.course.reference import reference_source
from grader.course.release import products
from tests.made_up import made_up

CALL = 'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})'
NAMED = "call = exercise.call(gather, a=A, dims=DIMS, hidden_dims=HIDDEN)"


def bound(folder: Path, how: str) -> Course:
    """Return the made-up course. The lines ``how`` define the names of its sizes."""
    return made_up(folder, CALL, f"{how}\n{NAMED}")


def line_of(course: Course, text: str) -> str:
    path = course.path_of("x1_gather")
    lines = path.read_text().splitlines()
    return f"{path}:{next(n for n, line in enumerate(lines, 1) if text in line)}"


@pytest.mark.parametrize(
    "how",
    [
        'DIMS, HIDDEN = {"I": 8, "J": 3}, {"I": 1012, "J": 5}',
        'DIMS, HIDDEN = ({"I": 8,\n  "J": 3}, {"I": 1012,  # odd\n "J": 5})',
        'DIMS: dict = {"I": 8, "J": 3}; HIDDEN = {"I": 1012, "J": 5}',
        'DIMS, HIDDEN = (dict(I=8,\n  J=3)\n), {"I": 1012, "J": 5}',
    ],
)
def test_sizes_assigned_together_are_split_for_learners(tmp_path: Path, how: str) -> None:
    course = bound(tmp_path, how)
    text = public_source(course.exercise("x1_gather"))
    assert "DIMS = " in text and "HIDDEN" not in text and "1012" not in text


@pytest.mark.parametrize(
    "how",
    [
        "def sizes():\n    return {'I': 8, 'J': 3}, {'I': 1012, 'J': 5}\n\nDIMS, HIDDEN = sizes()",
        "HIDDEN = {'I': 1012, 'J': 5}\nif True:\n    DIMS = {'I': 8, 'J': 3}",
        "HIDDEN = {'I': 1012, 'J': 5}\nfor DIMS in [{'I': 8, 'J': 3}]:\n    pass",
        "HIDDEN = {'I': 1012, 'J': 5}\nDIMS = SAME = {'I': 8, 'J': 3}",
        "HIDDEN = {'I': 1012, 'J': 5}\ntry:\n    DIMS = {'I': 8, 'J': 3}\nfinally:\n    pass",
        "HIDDEN = {'I': 1012, 'J': 5}\nwith open(__file__):\n    DIMS = {'I': 8, 'J': 3}",
        "HIDDEN = {'I': 1012, 'J': 5}\nprint(DIMS := {'I': 8, 'J': 3})",
    ],
)
def test_a_name_bound_in_a_way_that_is_not_copied_is_refused_with_its_line(tmp_path: Path, how: str) -> None:
    course = bound(tmp_path, how)
    binding = next(one for one in how.splitlines() if not one.startswith((" ", "HIDDEN", "def")) and one)
    told = f"{line_of(course, binding)}: learners' code uses DIMS; assign this name on a line of its own: DIMS = ..."
    with pytest.raises(CourseError, match=f"^{re.escape(told)}$"):
        public_source(course.exercise("x1_gather"))


@pytest.mark.parametrize("how", ["DIMS = {'I': 8}\nDIMS = DIMS | {'J': 3}", "DIMS = {'I': 8}\nDIMS |= {'J': 3}"])
def test_a_name_assigned_twice_is_refused_at_the_second_line(tmp_path: Path, how: str) -> None:
    course = bound(tmp_path, f"HIDDEN = {{'I': 1012, 'J': 5}}\n{how}")
    told = f"{line_of(course, how.splitlines()[1])}: DIMS is assigned twice; assign it once, because learners' files get only one of the two statements"
    with pytest.raises(CourseError, match=f"^{re.escape(told)}$"):
        public_source(course.exercise("x1_gather"))


def test_given_code_may_not_use_an_ungiven_constant(tmp_path: Path) -> None:
    course = made_up(tmp_path, "    return math.prod(a.shape)", "    return math.prod(a.shape) * FACTOR")
    path = course.path_of("x1_gather")
    path.write_text(path.read_text().replace("A = normal", "FACTOR = 3\nA = normal"))
    told = f"{line_of(course, 'FACTOR = 3')}: learners' code uses FACTOR; learners need this name in their file, so mark its definition as given"
    with pytest.raises(CourseError, match=f"^{re.escape(told)}$"):
        products(course)


def test_a_solution_may_not_use_the_grader(tmp_path: Path) -> None:
    course = made_up(
        tmp_path, '    return jax.lax.all_gather(a, "x"', '    return all_gather_time and jax.lax.all_gather(a, "x"'
    )
    exercise = course.exercise("x1_gather")
    told = f"{line_of(course, 'from grader.hardware')}: learners' code uses all_gather_time; learners' code cannot import this name"
    with pytest.raises(CourseError, match=f"^{re.escape(told)}$"):
        reference_source(exercise, answers(course, exercise, "verify"))


def test_an_undefined_name_in_learners_code_is_reported(tmp_path: Path) -> None:
    course = made_up(tmp_path, "    return math.prod(a.shape)", "    return math.prod(shape)")
    with pytest.raises(CourseError, match=r"^x1_gather: learners' code uses shape, which is not defined$"):
        products(course)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import os.path\nprint(os, __name__, __doc__)", []),
        ("def f(a, *, b=C):\n    d = a\n    return d + E", ["C", "E"]),
        ("x = [i for i in range(3)]\ny = lambda z: z + x", []),
        ("class A:\n    n = 1\n    m = n\n    def f(self): return n", ["n"]),
        ("from somewhere import *\nx = y", []),
        ("def f():\n    global g\n    g = 1\nprint(g)", []),
        ("@deco\ndef f(): pass", ["deco"]),
    ],
)
def test_unbound_returns_the_undefined_names(text: str, names: list[str]) -> None:
    assert unbound(text) == names
