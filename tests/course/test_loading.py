"""course.yaml and the exercises it lists: what is refused, with which line, and how names are found."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grader.course import build
from grader.course import loading as course_module
from grader.course.loading import Course, CourseError, find_course, load_course, nearest
from tests.made_up import COURSE, in_two_files, made_up

ROOT = Path(__file__).resolve().parents[2]
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
        ("[a1_local_shape]", "a1", "course.yaml:5: modules.0.exercises: Input should be a valid tuple"),
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
    assert course.select(["03"]) == course.select(["03_matmuls"])
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


# -- one exercise's file


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ("exercise = Exercise(", "exercise = Exercise((", ":15: invalid syntax"),
        ('@exercise.task(hints=["a nudge"])', "@exercise.tusk", ":29: AttributeError: 'Exercise' object has no attribute 'tusk'"),
        ("def one_way(I):", "def gather_time(I):", ": the name gather_time is declared twice"),
        ('    """it is whole"""\n', "", ": value has no docstring; learners read it as its label"),
        ('    """You returned zeros."""\n', "", ": zeroed has no docstring; learners read it as its label"),
        ('    """How long do {{ I }} bytes take on a ring of 4 v5p chips?"""\n', "", ": the question gather_time has no text (its docstring)"),
        ("@exercise.misconception(fails=value)", "@exercise.misconception()", ": the misconception zeroed names no check that it fails"),
        ("call = exercise.call(gather, a=A,", "call = exercise.call(gather, a=A, wrt=('a',),", ": gather: a call that asks for gradients needs both wrt and cotangent"),
        ("import math\n", "import nowhere_to_be_found\n", ":6: ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("# X1 Gather", "X1 Gather", ": its docstring must be the statement and start with '# Title'"),
        ('meshes=[{"x": 4}, {"x": 2}]', 'meshes=[{"x": 4}, {"x": 4, "y": 4}]', "x1_gather needs 16 devices for its mesh {'x': 4, 'y': 4}, course.yaml says devices: 8"),
    ],
)  # fmt: skip
def test_a_mistake_in_an_exercise_is_told_in_one_line(tmp_path: Path, was: str, becomes: str, told: str) -> None:
    course = made_up(tmp_path, was, becomes)
    with pytest.raises(CourseError) as error:
        course.exercise("x1_gather")
    message = str(error.value)
    assert told in message and "\n" not in message
    assert message.startswith("x1_gather" if "devices" in told else f"{tmp_path}/solutions/01_gather/x1_gather.py:")


def test_an_exercise_is_executed_once(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    assert course.exercise("x1_gather") is course.exercise("x1_gather")
    assert course.exercise("x1_gather").title == "X1 Gather"


def test_a_question_without_a_tolerance_has_the_courses(tmp_path: Path) -> None:
    made_up(tmp_path, 'unit="us", params', 'unit="us", rtol=0.3, params')
    (tmp_path / "course.yaml").write_text(f"{COURSE}tolerances: {{numbers: 0.04}}\n")
    assert load_course(tmp_path / "course.yaml").exercise("x1_gather").numbers["gather_time"].rtol == 0.3
    made_up(tmp_path)
    (tmp_path / "course.yaml").write_text(f"{COURSE}tolerances: {{numbers: 0.04}}\n")
    assert load_course(tmp_path / "course.yaml").exercise("x1_gather").numbers["gather_time"].rtol == 0.04


# -- misconceptions in a file of their own


def test_misconceptions_may_stand_in_a_second_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "x1_gather", sys)  # somebody else's module of that name
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


def test_two_courses_may_be_loaded_at_a_time(tmp_path: Path) -> None:
    courses = [in_two_files(tmp_path / str(n)) for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for exercise in pool.map(lambda course: course.exercise("x1_gather"), courses):
            assert exercise.misconceptions["zeroed"].of is exercise.tasks["gather"]


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ("def zeroed(", "def zeroed((", ":11: invalid syntax"),
        ("import jax\n", "1/0\n", ":3: ZeroDivisionError: division by zero"),
        ("from x1_gather import exercise", "from x1_gather import exercises", ":7: ImportError: cannot import name 'exercises'"),
        ("from x1_gather import exercise", "from x2_other import exercise", ":7: ModuleNotFoundError: No module named 'x2_other'"),
        ("def one_way(I):", "def gather_time(I):", ":23: the name gather_time is declared twice"),
        ("@exercise.misconception(of=gather_time)", "@exercise.function", ":23: one_way is neither check nor misconception; declare it in "),
        ("@exercise.misconception(fails=value)", "ROWS = 9\n\n\n@exercise.misconception(fails=value)", ": ROWS is something else in "),
        ("from x1_gather import exercise,", "from grader.exercise import Exercise\nfrom x1_gather import", ":11: NameError: name 'exercise' is not defined"),
    ],
)  # fmt: skip
def test_a_mistake_among_the_misconceptions_is_told_with_their_file_and_line(
    tmp_path: Path, was: str, becomes: str, told: str
) -> None:
    with pytest.raises(CourseError) as error:
        in_two_files(tmp_path, was, becomes).exercise("x1_gather")
    message = str(error.value)
    assert message.startswith(f"{tmp_path}/solutions/01_gather/grading/x1_gather.py{told}") and "\n" not in message


def test_a_file_without_a_misconception_of_its_exercise_is_told(tmp_path: Path) -> None:
    course = in_two_files(tmp_path)
    (tmp_path / "solutions" / "01_gather" / "grading" / "x1_gather.py").write_text('"""Nothing yet."""\n')
    with pytest.raises(
        CourseError, match=r"grading/x1_gather.py: declares no check and no misconception of the `exercise` in"
    ):
        course.exercise("x1_gather")


# -- names


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("c3_contractin", "no exercise 'c3_contractin'; did you mean 'c3_contracting'?"),
        ("C3_contracting", "no exercise 'C3_contracting'; did you mean 'c3_contracting'?"),
        ("02_collective", "no exercise '02_collective'; did you mean '02_collectives'?"),
        ("c", "no exercise 'c'; there are "),
    ],
)
def test_a_name_that_is_none_gets_the_nearest(course: Course, name: str, told: str) -> None:
    with pytest.raises(CourseError) as error:
        course.select([name])
    assert str(error.value).startswith(told)


def test_a_beginning_ends_at_an_underscore(tmp_path: Path) -> None:
    """``a1`` is not ``a10_more``."""
    text = GOOD.replace("[a1_local_shape]", "[a10_more, a1_local_shape, a1_another]")
    small = load_course(written(tmp_path, text))
    assert small.select(["a1"]) == ["a1_local_shape", "a1_another"]
    assert small.select(["a10"]) == ["a10_more"]
    assert small.select(["a1_another", "a10", "a1_another"]) == ["a10_more", "a1_another"]


def test_a_module_that_is_none_gets_the_nearest(course: Course) -> None:
    with pytest.raises(CourseError, match=r"^no module '01_layouts'; did you mean '01_layout'\?$"):
        course.module("01_layouts")


def test_all_names_are_told_where_none_is_near() -> None:
    assert nearest("zzz", ["b", "a"]) == "; there are a, b"


# -- places


def test_a_course_is_found_from_any_folder_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(tmp_path)
    monkeypatch.chdir(tmp_path / "solutions" / "01_gather")
    assert find_course().root == tmp_path
    assert find_course(tmp_path / "course.yaml").root == tmp_path


def test_a_release_is_found_above_its_exercises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build.build(made_up(tmp_path / "author"))
    (tmp_path / "learner").mkdir()
    (tmp_path / "author" / "exercises").rename(tmp_path / "learner" / "exercises")
    found = find_course(tmp_path / "learner")
    assert (found.root, found.solved) == (tmp_path / "learner" / "exercises", False)
    assert list(found.exercises) == ["x1_gather"] and found.exercise("x1_gather").points == 3
    monkeypatch.chdir(tmp_path / "learner" / "exercises" / "01_gather")
    assert find_course().root == found.root


# -- whose course it is


def test_a_course_in_what_was_handed_in_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = made_up(tmp_path / "class" / "alice").root
    monkeypatch.chdir(alice)
    for path in (alice, alice.parent, Path(".."), Path()):
        with pytest.raises(
            CourseError,
            match=r"alice/course\.yaml lies in what was handed in \(.*pass the one to trust, --course FOLDER",
        ):
            find_course(handed_in=[path])
    assert find_course(alice, handed_in=[alice]).root == alice  # named, so trusted


@pytest.mark.parametrize("mark", ["nbgrader_config.py", "gradebook.db"])
@pytest.mark.parametrize("step", ["submitted", "autograded", "feedback", "downloaded"])
def test_a_course_where_nbgrader_keeps_work_is_not_used(
    step: str, mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = made_up(tmp_path / step / "alice" / "01_gather").root
    (tmp_path / mark).touch()
    monkeypatch.chdir(place)
    with pytest.raises(CourseError, match="lies where nbgrader keeps what was handed in"):
        find_course()


def test_a_course_inside_another_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a class is kept inside the checkout; but exercises/ are the course's own."""
    build.build(made_up(tmp_path))
    monkeypatch.chdir(made_up(tmp_path / "class" / "alice").root)
    with pytest.raises(CourseError, match=f"lies inside another course, {tmp_path}"):
        find_course()
    monkeypatch.chdir(tmp_path)
    assert find_course().root == tmp_path
    monkeypatch.chdir(tmp_path / "exercises" / "01_gather")
    assert find_course().root == tmp_path / "exercises"


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_a_course_that_another_user_put_above_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(tmp_path)
    (tmp_path / "mine").mkdir()
    os.chown(tmp_path / "course.yaml", 12345, 12345)
    monkeypatch.chdir(tmp_path / "mine")
    with pytest.raises(CourseError, match=r"course\.yaml belongs to another user"):
        find_course()


def test_an_installed_package_brings_its_course_for_those_who_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.build(made_up(tmp_path / "author"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(course_module, "PACKAGED", tmp_path / "author" / "exercises")
    found = find_course(packaged=True)
    assert not found.solved and found.select(["x1"]) == ["x1_gather"]
    assert set(found.exercise("x1_gather").checks) == {"value"}
    with pytest.raises(CourseError, match=r"no course\.yaml in"):
        find_course(tmp_path / "elsewhere")
    with pytest.raises(CourseError) as error:
        find_course()
    assert str(error.value) == (
        f"no course.yaml in {tmp_path / 'elsewhere'} or above; go to the course's folder, pass --course, "
        "or start one: shardlings new course FOLDER"
    )
    monkeypatch.chdir(tmp_path / "author")
    assert find_course(packaged=True).root == tmp_path / "author"


def test_a_module_may_have_no_exercise_yet(tmp_path: Path) -> None:
    text = "name: t\nmodules:\n- {id: 01_a, title: A, exercises: []}\n- {id: 02_b, title: B}\n- id: 03_c\n  title: C\n  exercises:\n"
    course = load_course(written(tmp_path, text))
    (tmp_path / "solutions").mkdir()
    assert [m.exercises for m in course.config.modules] == [(), (), ()]
    assert set(build.products(load_course(tmp_path / "course.yaml"))) == {"course.yaml"}
    assert course.select(["02_b"]) == course.select([]) == []


def test_what_was_handed_out_is_known_to_author_and_learner(tmp_path: Path) -> None:
    author = made_up(tmp_path)
    assert author.handed_out == frozenset()
    build.build(author)
    learner = load_course(tmp_path / "exercises" / "course.yaml")
    assert len(author.handed_out) == 2 and author.handed_out == learner.handed_out


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"name: \xe9"])
def test_a_file_in_another_encoding_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "course.yaml").write_bytes(data)
    with pytest.raises(CourseError, match=r"course.yaml cannot be read: "):
        load_course(tmp_path / "course.yaml")


def test_a_digest_changes_with_the_configuration_and_the_sources(tmp_path: Path) -> None:
    names = ["x1_gather"]
    digests = [
        made_up(tmp_path).digest(names),
        made_up(tmp_path, "ROWS = exercise.given(8)", "ROWS = exercise.given(9)").digest(names),
    ]
    (tmp_path / "course.yaml").write_text(f"{COURSE}devices: 16\n")
    digests.append(load_course(tmp_path / "course.yaml").digest(names))
    assert len({*digests}) == 3 and made_up(tmp_path).digest(names) == digests[0]


def test_a_digest_changes_with_the_misconceptions_file(tmp_path: Path) -> None:
    names = ["x1_gather"]
    digest = in_two_files(tmp_path).digest(names)
    assert in_two_files(tmp_path, "You returned zeros.", "You returned nothing.").digest(names) != digest
    path = tmp_path / "solutions" / "01_gather" / "x1_gather.py"
    assert in_two_files(tmp_path).digest(names) == digest
    path.write_text(path.read_text() + "\n\nMORE = 1\n")
    assert load_course(tmp_path / "course.yaml").digest(names) != digest
