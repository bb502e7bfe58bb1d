"""Mistakes in an exercise's file, or in its second file, are refused with their line."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grader.course.config import CourseError
from grader.course.loading import load_course
from tests.made_up import COURSE, EXERCISE, GOOD, in_two_files, made_up, written


def test_an_exercise_without_a_statement_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "solutions" / "01_layout"
    folder.mkdir(parents=True)
    course = load_course(written(tmp_path, GOOD))
    with pytest.raises(
        CourseError, match=r"a1_local_shape.py is missing; write it with `shardlings new 01_layout/a1_local_shape`"
    ):
        course.exercise("a1_local_shape")
    (folder / "a1_local_shape.py").write_text("x = 1\n")
    with pytest.raises(CourseError, match="no `exercise = Exercise"):
        course.exercise("a1_local_shape")
    (folder / "a1_local_shape.py").write_text("from grader.exercise import Exercise\nexercise = Exercise()\n")
    with pytest.raises(CourseError, match="its docstring must be the exercise's statement"):
        course.exercise("a1_local_shape")
    (folder / "a1_local_shape.py").write_text(
        '"""# T"""\nfrom grader.exercise import Exercise\nexercise = Exercise()\n\n1/0\n'
    )
    with pytest.raises(CourseError, match=r"a1_local_shape.py:5: ZeroDivisionError: division by zero"):
        course.exercise("a1_local_shape")


@pytest.mark.parametrize(
    ("was", "becomes", "problem"),
    [
        ("exercise = Exercise(", "exercise = Exercise((", ":15: invalid syntax"),
        ('@exercise.task(hints=["a nudge"])', "@exercise.tusk", ":29: AttributeError: 'Exercise' object has no attribute 'tusk'"),
        ("def one_way(I):", "def gather_time(I):", ": the name gather_time is declared twice"),
        ('    """it is whole"""\n', "", ": value has no docstring: write the text that learners read"),
        ('    """You returned zeros."""\n', "", ": zeroed has no docstring: write the text that learners read"),
        ('    """How long do {{ I }} bytes take on a ring of 4 v5p chips?"""\n', "", ": the question gather_time has no docstring: write the question's text there"),
        ("@exercise.misconception(fails=value)", "@exercise.misconception()", ": the misconception zeroed names no check that it fails"),
        ("call = exercise.call(gather, a=A,", "call = exercise.call(gather, a=A, cotangent=A,", ": gather: `cotangent` needs gradients: name the arguments to differentiate in wrt=[...]"),
        ("public=True)\ndef value", 'public="no")\ndef value', ": `public` is the str 'no', not True or False"),
        ("def zeroed(a, *, mesh)", "def zeroed(a)", ": zeroed is called with mesh, like gather: got an unexpected keyword argument 'mesh'"),
        ("import math\n", "import nowhere_to_be_found\n", ":6: ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("# X1 Gather", "X1 Gather", ": its docstring must be the exercise's statement and start with '# Title'"),
        ('meshes=[{"x": 4}, {"x": 2}]', 'meshes=[{"x": 4}, {"x": 4, "y": 4}]', "x1_gather needs 16 devices for its mesh {'x': 4, 'y': 4}, but course.yaml says devices: 8"),
    ],
)  # fmt: skip
def test_a_mistake_in_an_exercise_is_reported_in_one_line(tmp_path: Path, was: str, becomes: str, problem: str) -> None:
    course = made_up(tmp_path, was, becomes)
    with pytest.raises(CourseError) as error:
        course.exercise("x1_gather")
    message = str(error.value)
    assert problem in message and "\n" not in message
    assert message.startswith("x1_gather" if "devices" in problem else f"{tmp_path}/solutions/01_gather/x1_gather.py:")


def test_a_file_that_is_not_utf8_is_refused_by_name(tmp_path: Path) -> None:
    made_up(tmp_path)
    path = tmp_path / "solutions/01_gather/x1_gather.py"
    path.write_bytes(EXERCISE.replace("# X1 Gather", "# X1 Größe").encode("latin-1"))
    with pytest.raises(CourseError, match=r"^\S+/x1_gather.py cannot be read: 'utf-8' codec can't decode byte 0xf6"):
        load_course(tmp_path / "course.yaml").exercise("x1_gather")


def test_an_exercise_is_executed_once(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    assert course.exercise("x1_gather") is course.exercise("x1_gather")
    assert course.exercise("x1_gather").title == "X1 Gather"


def test_a_question_without_a_tolerance_uses_the_courses(tmp_path: Path) -> None:
    made_up(tmp_path, 'unit="us", params', 'unit="us", rtol=0.3, params')
    (tmp_path / "course.yaml").write_text(f"{COURSE}tolerances: {{numbers: 0.04}}\n")
    assert load_course(tmp_path / "course.yaml").exercise("x1_gather").questions["gather_time"].rtol == 0.3
    made_up(tmp_path)
    (tmp_path / "course.yaml").write_text(f"{COURSE}tolerances: {{numbers: 0.04}}\n")
    assert load_course(tmp_path / "course.yaml").exercise("x1_gather").questions["gather_time"].rtol == 0.04


def test_misconceptions_may_be_in_a_second_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "x1_gather", sys)  # a loaded module with the exercise's name
    one = made_up(tmp_path / "one").exercise("x1_gather")
    two = in_two_files(tmp_path / "two").exercise("x1_gather")
    assert [(s.name, s.hint, s.of.name, s.fails) for s in two.misconceptions.values()] == [
        (s.name, s.hint, s.of.name, s.fails) for s in one.misconceptions.values()
    ]
    assert two.misconceptions["zeroed"].of is two.tasks["gather"]
    assert "zeroed" not in two.source and "zeroed" in two.grading_source
    assert sys.modules["x1_gather"] is sys


def test_an_exercise_is_imported_by_its_name_only_while_it_is_loaded(tmp_path: Path) -> None:
    in_two_files(tmp_path).exercise("x1_gather")
    assert "x1_gather" not in sys.modules
    with pytest.raises(CourseError):
        in_two_files(tmp_path, "import jax\n", "1/0\n").exercise("x1_gather")
    assert "x1_gather" not in sys.modules


def test_several_courses_may_be_loaded_at_once(tmp_path: Path) -> None:
    courses = [in_two_files(tmp_path / str(n)) for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for exercise in pool.map(lambda course: course.exercise("x1_gather"), courses):
            assert exercise.misconceptions["zeroed"].of is exercise.tasks["gather"]


@pytest.mark.parametrize(
    ("was", "becomes", "problem"),
    [
        ("def zeroed(", "def zeroed((", ":11: invalid syntax"),
        ("import jax\n", "1/0\n", ":3: ZeroDivisionError: division by zero"),
        ("from x1_gather import exercise", "from x1_gather import exercises", ":7: ImportError: cannot import name 'exercises'"),
        ("from x1_gather import exercise", "from x2_other import exercise", ":7: ModuleNotFoundError: No module named 'x2_other'"),
        ("def one_way(I):", "def gather_time(I):", ":23: the name gather_time is declared twice"),
        ("@exercise.misconception(of=gather_time)", "@exercise.function", ":23: one_way is neither a check nor a misconception; declare it in "),
        ("@exercise.misconception(fails=value)", "ROWS = 9\n\n\n@exercise.misconception(fails=value)", ": ROWS has a different value in "),
        ("from x1_gather import exercise,", "from grader.exercise import Exercise\nfrom x1_gather import", ":11: NameError: name 'exercise' is not defined"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_misconceptions_file_is_reported_with_its_line(
    tmp_path: Path, was: str, becomes: str, problem: str
) -> None:
    with pytest.raises(CourseError) as error:
        in_two_files(tmp_path, was, becomes).exercise("x1_gather")
    message = str(error.value)
    assert message.startswith(f"{tmp_path}/solutions/01_gather/grading/x1_gather.py{problem}") and "\n" not in message


def test_a_grading_file_without_checks_or_misconceptions_is_reported(tmp_path: Path) -> None:
    course = in_two_files(tmp_path)
    (tmp_path / "solutions" / "01_gather" / "grading" / "x1_gather.py").write_text('"""Nothing yet."""\n')
    with pytest.raises(
        CourseError, match=r"grading/x1_gather.py: the file has no check and no misconception for the `exercise` in"
    ):
        course.exercise("x1_gather")
