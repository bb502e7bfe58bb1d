"""The files that ``check`` needs, which have no answers and no hidden checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.course.build import build
from grader.course.config import CourseError
from grader.course.loading import Course, load_course
from grader.course.public import public_source
from grader.exercise import Call, Cases, axis
from grader.judging.answers import render_question
from grader.judging.plan import rng
from tests.made_up import made_up

CASES = '''\
@exercise.function
def half(n):
    """Half of an even n."""
    if n % 2:
        raise ValueError("odd")
    return n // 2


def draw(rng):
    return [{"n": 1012}]


halves = exercise.cases(half, public=[{"n": 4}, {"n": 3}], hidden=draw)


@exercise.check(halves, points=1, public=True, after=value)
def halved(seen):
    """it is halved"""
    expect_outcomes(seen)


@exercise.number('''


def test_the_public_file_holds_public_checks_and_no_answer(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = public_source(course.exercise("x1_gather"))
    compile(text, "public", "exec")
    for there in ("def value(seen)", "expect_close(seen.out, seen.a)", "A = normal(", '"I": 8', "How long do"):
        assert there in text, there
    for secret in ("secret_helper", "def traffic", "zeroed", "1012", "all_gather_time(I", "a-secret-seed", "You "):
        assert secret not in text, secret


def test_learners_see_the_points_of_hidden_checks(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    build(course)
    given = load_course(tmp_path / "exercises" / "course.yaml").exercise("x1_gather")
    assert list(given.checks) == ["value"] and given.hidden_points == 1
    assert given.points == course.exercise("x1_gather").points == 3


def test_learners_see_the_hardware_figures_that_the_answers_use(tmp_path: Path) -> None:
    asked = '''\
@exercise.number(points=1, unit="us", params={"chip": ["v5p", "v5e"]})
def chip_time(chip):
    """How long does {{ chip }} take?"""
    return all_gather_time(1e6, 4, chip)


@exercise.number('''
    course = made_up(tmp_path, "@exercise.number(", asked)
    build(course)
    given = load_course(tmp_path / "exercises" / "course.yaml")
    assert given.exercise("x1_gather").figures == {"chip_time": ["ici", "pod"]}
    for theirs, ours in zip(*(c.exercise("x1_gather").questions.values() for c in (given, course)), strict=True):
        shown = render_question(theirs, params := next(theirs.variants()))
        assert shown == render_question(ours, params)
        assert ("ICI" in shown, "HBM" in shown) == ("chip" in params, False)


def test_a_public_check_may_not_use_a_private_function(tmp_path: Path) -> None:
    course = made_up(tmp_path, "expect_close(seen.out, seen.a)\n", "expect_close(seen.out, secret_helper(seen.a))\n")
    with pytest.raises(CourseError, match=r"uses the private function secret_helper; mark it with @exercise.given"):
        public_source(course.exercise("x1_gather"))


def test_hidden_sizes_in_a_dict_for_keywords_are_refused(tmp_path: Path) -> None:
    course = made_up(
        tmp_path,
        'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})',
        'SIZES = {"dims": {"I": 8, "J": 3}, "hidden_dims": {"I": 1012, "J": 5}}\ncall = exercise.call(gather, a=A, **SIZES)',
    )
    with pytest.raises(CourseError, match="must be keywords of the call itself"):
        public_source(course.exercise("x1_gather"))


@pytest.mark.parametrize(
    "hidden",
    [
        'SIZES = {"hidden_dims": {"I": 1012, "J": 5}}\ncall = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, **SIZES)',
        'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, **{"hidden_dims": {"I": 1012, "J": 5}})',
        'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, **dict(hidden_dims={"I": 1012, "J": 5}))',
        'KEYS = {"static": {"n": 1}, "hidden_static": {"n": 1012}}\ncall = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, **KEYS)',
        'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, static={"n": 1}, **dict(hidden_static={"n": 1012}))',
        'KEY = "hidden_static"\ncall = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, static={"n": 1}, **{KEY: {"n": 1012}})',
    ],
)
def test_hidden_sizes_in_any_dict_are_refused(tmp_path: Path, hidden: str) -> None:
    plain = 'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})'
    course = made_up(tmp_path, plain, hidden)
    with pytest.raises(
        CourseError, match="x1_gather: hidden_dims, hidden_static and hidden must be keywords of the call itself"
    ):
        public_source(course.exercise("x1_gather"))


def with_cases(folder: Path) -> Course:
    made_up(folder, "@exercise.number(", CASES)
    path = folder / "solutions" / "01_gather" / "x1_gather.py"
    path.write_text(path.read_text().replace("import expect_close,", "import expect_close, expect_outcomes,"))
    return load_course(folder / "course.yaml")


def test_learners_get_public_cases_with_outcomes_and_no_hidden_cases(tmp_path: Path) -> None:
    course = with_cases(tmp_path)
    build(course)
    text = (tmp_path / "exercises" / "01_gather" / "_public" / "x1_gather.py").read_text()
    assert "1012" not in text and "draw" not in text and "n // 2" not in text
    cases = load_course(tmp_path / "exercises" / "course.yaml").exercise("x1_gather").checks["halved"].call
    assert isinstance(cases, Cases)
    assert cases.public == ({"n": 4}, {"n": 3}) and cases.hidden is None
    assert cases.expected == ({"value": 2}, {"error": "ValueError"})


def test_the_release_does_not_depend_on_the_file_of_the_checks(tmp_path: Path) -> None:
    one, two = with_cases(tmp_path / "one"), with_cases(tmp_path / "two")
    place = tmp_path / "two" / "solutions" / "01_gather"
    blocks = (place / "x1_gather.py").read_text().split("\n\n\n")
    graded = [
        b for b in blocks if b.startswith(("@exercise.check", "@exercise.misconception", "A = ", "def draw", "halves"))
    ]
    imports = "\n".join(line for line in blocks[0].splitlines() if line.startswith(("import", "from")))
    names = "from x1_gather import exercise, gather, gather_time, half, secret_helper"
    (place / "grading").mkdir()
    second = "\n\n\n".join(['"""What is checked."""', imports, names, *graded])
    (place / "grading" / "x1_gather.py").write_text(second.replace("tion(fails", "tion(of=gather, fails"))
    (place / "x1_gather.py").write_text("\n\n\n".join(b for b in blocks if b not in graded))
    two = load_course(tmp_path / "two" / "course.yaml")
    assert not {"value", "traffic", "halved"} & set(re.findall(r"def (\w+)", two.exercise("x1_gather").source))
    given = []
    for course in (one, two):
        build(course)
        exercise = load_course(course.root / "exercises" / "course.yaml").exercise("x1_gather")
        assert "1012" not in exercise.source and "secret" not in exercise.source
        calls = [c.call for c in exercise.checks.values()]
        given.append((
            [(c.name, c.label, c.points, c.after) for c in exercise.checks.values()],
            [(c.public, c.expected) if isinstance(c, Cases) else (c.dims, c.args, c.meshes) for c in calls],
            exercise.points,
        ))  # fmt: skip
    assert given[0] == given[1] and [name for name, *_ in given[0][0]] == ["value", "halved"]


def test_a_public_check_after_a_hidden_one_is_released_without_after(tmp_path: Path) -> None:
    course = made_up(tmp_path, "@exercise.check(call, points=1, after=value)", "@exercise.check(call, points=1)")
    path = tmp_path / "solutions" / "01_gather" / "x1_gather.py"
    late = '@exercise.check(call, points=1, public=True, after=traffic)\ndef late(seen):\n    """late"""\n    expect_close(seen.out, seen.a)\n\n\n@exercise.number('
    path.write_text(path.read_text().replace("@exercise.number(", late))
    course = load_course(tmp_path / "course.yaml")
    build(course)
    checks = load_course(tmp_path / "exercises" / "course.yaml").exercise("x1_gather").checks
    assert list(checks) == ["value", "late"] and checks["late"].after == ()


def test_a_dimension_may_be_called_hidden(tmp_path: Path) -> None:
    course = made_up(tmp_path, "def helper(a):", "def helper(a, hidden=0):")
    assert "def helper(a, hidden=0):" in public_source(course.exercise("x1_gather"))


KEPT = """\
SHOWN, GRADED = {"cap": 7}, {"cap": 1012}


@exercise.helper
def chosen(rng, shape, J, cap):
    return rng.integers(J, size=shape) % cap


B = array("I", spec=P("x"), dtype="int32", draw=chosen)
"""
CALL = 'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})'
RELATED = (
    'call = exercise.call(gather, a=A, b=B, dims={"I": 2 * axis("x"), "J": 3}, static={"cap": 7},\n'
    '    hidden_static={"cap": 1012}, hidden_dims={"I": 1013 * axis("x"), "J": 5})'
)


def with_data(folder: Path, call: str = RELATED, kept: str = KEPT) -> Course:
    """Return the made-up course. A draw function uses keywords and dimensions to draw its task's second argument."""
    made_up(folder, CALL, f"{kept}{call}")
    path = folder / "solutions" / "01_gather" / "x1_gather.py"
    text = path.read_text().replace("(a, *, mesh)", "(a, b, *, mesh, cap)")
    path.write_text(text.replace("Exercise, normal", "Exercise, array, axis, normal"))
    return load_course(folder / "course.yaml")


@pytest.mark.parametrize("call", [RELATED, RELATED.replace('{"cap": 1012}', "GRADED").replace('{"cap": 7}', "SHOWN")])
def test_learners_get_drawing_functions_and_mesh_sizes_but_no_hidden_keyword(tmp_path: Path, call: str) -> None:
    course = with_data(
        tmp_path,
        call,
        KEPT.replace("SHOWN, GRADED = ", 'GRADED = {"cap": 1012}\nSHOWN = ').replace(', {"cap": 1012}\n', "\n"),
    )
    build(course)
    for path in (tmp_path / "exercises").rglob("*.*"):
        text = path.read_text()
        assert not any(secret in text for secret in ("1012", "1013", "hidden_static", "hidden_dims", "GRADED")), path
    given = load_course(tmp_path / "exercises" / "course.yaml").exercise("x1_gather").checks["value"].call
    solved = course.exercise("x1_gather").checks["value"].call
    assert isinstance(given, Call) and isinstance(solved, Call)
    assert given.dims == given.hidden_dims == solved.dims == {"I": 2 * axis("x"), "J": 3}
    assert given.keywords(hidden=True) == solved.static == {"cap": 7} and solved.keywords(hidden=True) == {"cap": 1012}
    for name in ("a", "b"):
        samples = [
            call.args[name].sample({"I": 8, "J": 3}, rng("s", ""), {"J": 3, "cap": 7}) for call in (given, solved)
        ]
        assert (samples[0] == samples[1]).all()


def test_a_private_drawing_function_is_reported(tmp_path: Path) -> None:
    course = with_data(tmp_path, kept=KEPT.replace("@exercise.helper\n", ""))
    with pytest.raises(CourseError, match=r"uses the private function chosen; mark it with @exercise\.given"):
        public_source(course.exercise("x1_gather"))


def test_a_call_inside_a_public_check_may_not_carry_hidden_keywords(tmp_path: Path) -> None:
    course = with_data(tmp_path, call=f"{RELATED}\nSAME = call")
    path = tmp_path / "solutions" / "01_gather" / "x1_gather.py"
    inline = RELATED.removeprefix("call = ").replace('hidden_dims={"I": 1013 * axis("x"), "J": 5}', "")
    path.write_text(
        path.read_text().replace("check(call, points=1, public=True)", f"check({inline}, points=1, public=True)")
    )
    course = load_course(tmp_path / "course.yaml")
    with pytest.raises(CourseError, match="hidden_dims, hidden_static and hidden must be keywords of the call itself"):
        public_source(course.exercise("x1_gather"))
