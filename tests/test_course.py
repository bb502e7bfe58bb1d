"""course.yaml and the exercises it lists: what is refused, with which line, and how names are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Course, CourseError, find_course, load_course

ROOT = Path(__file__).resolve().parent.parent
GOOD = """\
name: small
modules:
  - id: 01_layout
    title: Layout
    exercises: [a1_local_shape]
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "course.yaml"
    path.write_text(text)
    return path


def complaint(tmp_path: Path, text: str) -> str:
    with pytest.raises(CourseError) as error:
        load_course(written(tmp_path, text))
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(f"{tmp_path}/")


def test_defaults_fill_what_is_left_out(tmp_path: Path) -> None:
    config = load_course(written(tmp_path, GOOD)).config
    assert (config.devices, config.variants.mode, config.tolerances.numbers) == (8, "shared", 0.02)


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ("name: small", "nam: small", "course.yaml:1: nam: no such field; did you mean 'name'?"),
        ("name: small\n", "name: small\nlimits:\n  run_secs: 3\n", "course.yaml:3: limits.run_secs: no such field; did you mean 'run_seconds'?"),
        ("    title: Layout\n", "", "course.yaml:3: modules.0.title: Field required"),
        ("01_layout", "layout", "course.yaml:3: modules.0.id: String should match pattern"),
        ("[a1_local_shape]", "[]", "course.yaml:5: modules.0.exercises: Tuple should have at least 1 item"),
        ("[a1_local_shape]", "[a1_local_shape, a1_local_shape]", "course.yaml:2: modules: a1_local_shape is listed twice"),
        ("name: small\n", "name: small\nvariants: {mode: each}\n", "course.yaml:2: variants.mode: Input should be 'shared' or 'per_student'"),
        ("title: Layout", "title: Layout\n    weight: 0", "course.yaml:5: modules.0.weight: Input should be greater than 0"),
        ("title: Layout", "title: [", "course.yaml:6: not YAML"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_line_and_field(tmp_path: Path, was: str, becomes: str, told: str) -> None:
    assert complaint(tmp_path, GOOD.replace(was, becomes)).startswith(told)


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    assert "the file" in complaint(tmp_path, "")


def test_no_course_anywhere_is_told(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"no course.yaml in .*; go to the course's folder or pass --course"):
        find_course(tmp_path / "deep")


@pytest.fixture(scope="module")
def course() -> Course:
    return find_course(ROOT)


def test_exercises_are_chosen_by_id_beginning_or_module_in_course_order(course: Course) -> None:
    assert course.select(["c3", "c1_no_communication"]) == ["c1_no_communication", "c3_contracting"]
    assert course.select(["01_layout"])[0] == "a1_local_shape"
    assert course.select([]) == list(course.module_of)
    with pytest.raises(CourseError, match="no exercise 'c'; "):
        course.select(["c"])


def test_what_learners_are_given_is_a_course_without_answers_and_seed(course: Course) -> None:
    public = load_course(ROOT / "exercises" / "course.yaml")
    assert not public.solved and public.config.seed == ""
    assert list(public.module_of) == list(course.module_of)
    for name, exercise in public.exercises.items():
        assert set(exercise.checks) == {c.name for c in course.exercise(name).checks.values() if c.public}
        assert set(exercise.numbers) == set(course.exercise(name).numbers)
        assert not exercise.misconceptions
        for question in exercise.numbers.values():
            with pytest.raises(NotImplementedError):
                question(**next(question.variants()))


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
    with pytest.raises(CourseError, match="its docstring must be the statement"):
        course.exercise("a1_local_shape")
    (folder / "a1_local_shape.py").write_text(
        '"""# T"""\nfrom grader.exercise import Exercise\nexercise = Exercise()\n\n1/0\n'
    )
    with pytest.raises(CourseError, match=r"a1_local_shape.py:5: ZeroDivisionError: division by zero"):
        course.exercise("a1_local_shape")
