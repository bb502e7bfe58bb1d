"""An author's mistake gives one error line: the file, the line number, what is wrong and how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.common.text import near, nearest
from grader.course.config import CourseError
from grader.declared import a
from grader.exercise import Call
from tests.made_up import EXERCISE, in_two_files, made_up

CALL = 'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})'
CASES = '@exercise.function\ndef half(n):\n    """Half."""\n    return n // 2\n\n\ncases = exercise.cases(half, '
SIZES = 'dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5}'
MESHES = 'meshes=[{"x": 4}, {"x": 2}]'
SPEC = 'spec=P("x", None)'
TASK = '@exercise.task(hints=["a nudge"])'
VALUE = "@exercise.check(call, points=1, public=True)"
TRAFFIC = "@exercise.check(call, points=1, after=value)"
ZEROED = "@exercise.misconception(fails=value)"
ONE_WAY = "@exercise.misconception(of=gather_time)"
NUMBER = '@exercise.number(points=1, unit="us", '
OTHER = 'other = Exercise()\n\n\n@other.function\ndef twice(n):\n    """Twice."""\n\n\n'
SECOND = (
    '@exercise.function\ndef half(n):\n    """Half."""\n\n\ncases = exercise.cases(half, public=[{"n": 1}])\n\n\n'
    '@exercise.check(cases, points=1)\ndef halved(seen):\n    """half"""\n\n\n'
)


def complaint(folder: Path, was: str, becomes: str) -> str:
    """Write an exercise with a mistake, and return the error message from the line number on."""
    with pytest.raises(CourseError) as error:
        made_up(folder, was, becomes).exercise("x1_gather")
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(f"{folder}/solutions/01_gather/x1_gather.py:")


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ("Exercise(meshes", "Exercise(mesh", "15: Exercise: no such argument 'mesh'; did you mean 'meshes'?"),
        (TASK, '@exercise.task(hint=["h"])', "29: exercise.task: no such argument 'hint'; did you mean 'hints'?"),
        (TASK, "@exercise.body", "29: exercise.body: the decorator takes arguments: write @exercise.body(...) above gather"),
        (TASK, "@exercise.body()", "29: exercise.body: out_specs=... is missing"),
        (VALUE, "@exercise.check(call, points=1, publik=True)", "39: exercise.check: no such argument 'publik'; did you mean 'public'?"),
        (VALUE, "@exercise.check(call, points=1, before=2)", "39: exercise.check: no such argument 'before'; there are after, call, every_mesh, points, public"),
        (VALUE, "@exercise.check(call)", "39: exercise.check: points=... is missing"),
        (VALUE, "@exercise.check(points=1)", "39: exercise.check: call=... is missing"),
        (VALUE, "@exercise.check", "39: exercise.check: the decorator takes arguments: write @exercise.check(...) above value"),
        (ZEROED, "@exercise.misconception(fail=value)", "51: exercise.misconception: no such argument 'fail'; did you mean 'fails'?"),
        (ZEROED, "@exercise.misconception", "51: exercise.misconception: the decorator takes arguments: write @exercise.misconception(...) above zeroed"),
        (NUMBER, f"{NUMBER}chips=3, ", "64: exercise.number: no such argument 'chips'; did you mean 'hints'?"),
        (NUMBER, '@exercise.number(unit="us", ', "64: exercise.number: points=... is missing"),
        ("exercise.given(8)", "exercise.given()", "16: exercise.given: thing=... is missing"),
        (SPEC, f"{SPEC}, kind=3", "35: normal: no such argument 'kind'; there are dtype, spec"),
        (CALL, f"{CASES}publc=[])", "42: exercise.cases: no such argument 'publc'; did you mean 'public'?"),
        ("exercise.scenario(gather_time,", "exercise.scenario(gather_time, publishd=[1], facts=", "70: exercise.scenario: no such argument 'publishd'; did you mean 'published'?"),
    ],
)  # fmt: skip
def test_unknown_or_missing_arguments_are_reported(tmp_path: Path, was: str, becomes: str, message: str) -> None:
    assert complaint(tmp_path, was, becomes) == message


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        (MESHES, 'meshes={"x": 4}', "15: `meshes` must be a list of meshes, not one mesh: write meshes=[{'x': 4}]"),
        (MESHES, "meshes=[]", "15: `meshes` is empty: give at least one mesh"),
        (MESHES, "meshes=None", '15: `meshes` is None, not a list such as [{"x": 4, "y": 2}]'),
        (MESHES, 'meshes=[("x", 4)]', """15: a mesh is the tuple ('x', 4), not a dict of axes and sizes such as {"x": 4, "y": 2}"""),
        (MESHES, 'meshes=[{"x": 0}]', "15: the size of axis x of the mesh {'x': 0} is the int 0, not 1, 2, 3, ..."),
        (MESHES, 'meshes=[{"x": -4}]', "15: the size of axis x of the mesh {'x': -4} is the int -4, not 1, 2, 3, ..."),
        (MESHES, 'meshes=[{"x": 4.0}]', "15: the size of axis x of the mesh {'x': 4.0} is the float 4.0, not 1, 2, 3, ..."),
        (MESHES, 'meshes=[{"x": "4"}]', "15: the size of axis x of the mesh {'x': '4'} is the str '4', not 1, 2, 3, ..."),
        (MESHES, "meshes=[{4: 2}]", '15: an axis of the mesh {4: 2} is the int 4, not a name such as "x"'),
        ("a=A,", 'a=A, meshes={"x": 4},', "36: `meshes` must be a list of meshes, not one mesh: write meshes=[{'x': 4}]"),
        (SPEC, 'spec=P("z", None)', "36: the spec of a names axis 'z', which the mesh {'x': 4} does not have"),
        (MESHES, 'meshes=[{"x": 4}, {"y": 2}]', "36: the spec of a names axis 'x', which the mesh {'y': 2} does not have"),
        (SPEC, 'spec=P("x", None, None)', "35: `spec` has more entries (3) than the array has dimensions (2)"),
        (SPEC, 'spec=P("x", "x")', "35: `spec` names axis x twice: an axis can cut only one dimension"),
        (SPEC, 'spec="x"', """35: `spec` is the str 'x', not a PartitionSpec such as P("x", None)"""),
        (SPEC, "spec=3", '35: `spec` is the int 3, not a PartitionSpec such as P("x", None)'),
        (SPEC, "spec=[3]", "35: an entry of `spec` is the int 3, not None, an axis or a tuple of axes"),
        (SPEC, f'{SPEC}, dtype="float31"', "35: no such dtype 'float31'; did you mean 'float32'?"),
        (SPEC, f"{SPEC}, dtype=jax.numpy.float32", '35: `dtype` is the _ScalarMeta float32, not a name such as "float32"'),
        ('normal("I", "J"', 'normal("I", 3.5', '35: a dimension of a shape is the float 3.5, not a name or a size as in normal("I", 8)'),
        ('normal("I", "J"', 'normal(("I", "J")', """35: a dimension of a shape is the tuple ('I', 'J'), not a name or a size as in normal("I", 8)"""),
        (SIZES, "", "36: no size given for dimension 'I' of a: add it to dims"),
        (SIZES, 'dims={"I": 8}', "36: no size given for dimension 'J' of a: add it to dims"),
        (SIZES, 'dims={"I": 8, "J": 3}, hidden_dims={"I": 8}', "36: gather: `dims` gives sizes of I, J and `hidden_dims` gives sizes of I: both must name the same dimensions"),
        (SIZES, 'dims={"I": 8, "J": 3}, hidden_dims={"I": 8, "K": 3}', "36: gather: `dims` gives sizes of I, J and `hidden_dims` gives sizes of I, K: both must name the same dimensions"),
        (SIZES, 'hidden_dims={"I": 8, "J": 3}', "36: gather: `dims` gives sizes of nothing and `hidden_dims` gives sizes of I, J: both must name the same dimensions"),
        (SIZES, "dims=[8, 3]", '36: `dims` is the list [8, 3], not a dict of sizes such as {"I": 48}'),
        (SIZES, 'dims={"I": "8", "J": 3}', "36: dims: the size of dimension I is the str '8', not 1, 2, 3, ..."),
        (SIZES, 'dims={"I": 8, "J": 3}, hidden_dims={"I": 0, "J": 3}', "36: hidden_dims: the size of dimension I is the int 0, not 1, 2, 3, ..."),
        (SIZES, 'dims={8: "I"}', """36: dims: a dimension is the int 8, not a name such as "I\""""),
        (SIZES, 'dims={"I": 7, "J": 3}', "36: a: dimension I = 7 in dims cannot be cut into 4 equal parts on the mesh {'x': 4}"),
        (SIZES, 'dims={"I": 8, "J": 3}, hidden_dims={"I": 6, "J": 3}', "36: a: dimension I = 6 in hidden_dims cannot be cut into 4 equal parts on the mesh {'x': 4}"),
    ],
)  # fmt: skip
def test_invalid_sizes_meshes_and_specs_are_reported(tmp_path: Path, was: str, becomes: str, message: str) -> None:
    assert complaint(tmp_path, was, becomes) == message


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ("call(gather,", 'call("gather",', "36: exercise.call is given the str 'gather', not a task: write its name without quotes"),
        ("call(gather,", "call(helper,", "36: exercise.call is given the function helper, not a task: write its name without quotes"),
        (TASK, "@exercise.function", "36: gather is declared by @exercise.function, so use exercise.cases(...)"),
        (CALL, "call = exercise.cases(gather, public=[])", "36: gather is declared by @exercise.task, so use exercise.call(...)"),
        ("a=A,", 'a={"shape": 3},', """36: gather: argument a['shape'] is the int 3, not an array such as normal("I", "J")"""),
        ("dims={", "dim={", """36: gather: argument dim['I'] is the int 8, not an array such as normal("I", "J"); did you mean 'dims'?"""),
        ("a=A,", "a=A, static=3,", '36: `static` is the int 3, not a dict such as {"dim": 0}'),
        ("a=A,", 'a=A, static={"n": object()},', "36: static n is the object, which cannot be sent to the learner's process: is of type object"),
        ("a=A,", 'a=A, wrt="a", cotangent=A,', "36: `wrt` is the str 'a', not a list of texts: write wrt=[...]"),
        ("a=A,", 'a=A, wrt=["b"], cotangent=A,', "36: gather: `wrt` names 'b', which is not an argument; there are a"),
        ("a=A,", 'a=A, wrt=["a"], cotangent=3,', '36: gather: argument cotangent is the int 3, not an array such as normal("I", "J")'),
        (CALL, CASES + 'public={"n": 1})', """42: half: `public` is the dict {'n': 1}, not a list of arguments such as [{"n": 8}]"""),
        (CALL, f"{CASES}public=[1])", '42: half: a public case is the int 1, not a dict such as {"n": 8}'),
        (CALL, CASES + 'public=[{"m": 1}])', "42: half is called with m: missing a required argument: 'n'"),
        (CALL, CASES + 'public=[{"n": object()}])', "42: half: argument n is the object, which cannot be sent to the learner's process: is of type object"),
        (CALL, f"{CASES}public=[], hidden=[])", "42: `hidden` is the list [], not a function such as lambda rng: [...]"),
        (TASK, '@exercise.task("a nudge")', "29: the task for learners to write is the str 'a nudge', not a function such as def f(a, *, mesh)"),
        (TASK, '@exercise.task(hints="a nudge")', "29: `hints` is the str 'a nudge', not a list of texts: write hints=[...]"),
        ("Exercise(", "Exercise(stars=9, ", "15: `stars` is the int 9, not 1, 2 or 3"),
        (VALUE, "@exercise.check(gather, points=1)", "39: exercise.check is given the Task gather, not the result of exercise.call or exercise.cases"),
        (VALUE, '@exercise.check("call", points=1)', "39: exercise.check is given the str 'call', not the result of exercise.call or exercise.cases"),
        (VALUE, "@exercise.check(call, points=-1)", "39: `points` is the int -1, but must be a number of at least 0"),
        (VALUE, '@exercise.check(call, points="1")', "39: `points` is the str '1', but must be a number of at least 0"),
        (VALUE, "@exercise.check(call, points=math.nan)", "39: `points` is the float nan, but must be a number of at least 0"),
        (VALUE, "@exercise.check(call, points=True)", "39: `points` is the bool True, but must be a number of at least 0"),
        (TRAFFIC, '@exercise.check(call, points=1, after="value")', "45: `after` names the str 'value', not a check: write its name without quotes"),
        (TRAFFIC, "@exercise.check(call, points=1, after=[gather])", "45: `after` names the Task gather, not a check: write its name without quotes"),
        (TRAFFIC, "@exercise.check(call, points=1, after=call)", "45: `after` names the Call, not a check: write its name without quotes"),
        ("def traffic(seen)", "def value(seen)", "45: the name value is declared twice"),
        ("def value(seen)", "def gather(seen)", "39: the name gather is declared twice"),
    ],
)  # fmt: skip
def test_invalid_tasks_calls_and_checks_are_reported(tmp_path: Path, was: str, becomes: str, message: str) -> None:
    assert complaint(tmp_path, was, becomes) == message


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ('unit="us"', 'unit="furlong"', "64: gather_time: unknown unit 'furlong': write for instance us, ms, KiB, GB/s, FLOP or token"),
        ('unit="us"', "unit=3", '64: `unit` is the int 3, not a text such as "us"; "" for a plain number'),
        (NUMBER, '@exercise.number(points="1", unit="us", ', "64: `points` is the str '1', but must be a number of at least 0"),
        (NUMBER, f'{NUMBER}rtol="x", ', "64: `rtol` is the str 'x', not a number from 0 up to 1, such as 0.02"),
        (NUMBER, f"{NUMBER}rtol=2, ", "64: `rtol` is the int 2, not a number from 0 up to 1, such as 0.02"),
        (NUMBER, f'{NUMBER}hints="think", ', "64: `hints` is the str 'think', not a list of texts: write hints=[...]"),
        (NUMBER, f"{NUMBER}where=3, ", "64: `where` is the int 3, not a function such as lambda X: X > 4"),
        (NUMBER, f"{NUMBER}where=lambda K: True, ", "64: where is called with I: missing a required argument: 'K'"),
        (NUMBER, f"{NUMBER}where=lambda I: False, ", "64: gather_time: no parameters satisfy its `where`"),
        (NUMBER, f"{NUMBER}where=lambda I: 1 / 0, ", "64: gather_time: ZeroDivisionError: division by zero"),
        ('params={"I": [', 'params={"J": 3, "I": [', "64: params: J has the int 3, not a list of choices such as [4, 8]"),
        ('params={"I": [', 'params={"J": [], "I": [', "64: params: J has the list [], not a list of choices such as [4, 8]"),
        ('params={"I": [', 'params=["I"] or {"I": [', """64: `params` is the list ['I'], not a dict such as {"X": [4, 8]}"""),
        ("def gather_time(I):", "def gather_time(J):", "64: gather_time is called with I: missing a required argument: 'J'"),
        ("How long do {{ I }}", "How long do {{ K }}", "64: gather_time: its text does not render: 'K' is undefined"),
        ("How long do {{ I }}", "How long do {{ I ", "64: gather_time: its text does not render: expected token 'end of print statement', got 'bytes'"),
        ("scenario(gather_time,", 'scenario("gather_time",', "70: `scenario` is given the str 'gather_time', not a question (@exercise.number)"),
        ("lambda I: Scenario", "lambda K: Scenario", "70: the scenario of gather_time is called with I: missing a required argument: 'K'"),
        ("lambda I: Scenario", "Scenario", "70: `scenario` is the Scenario, not a function such as lambda X: Scenario(rings=(X,))"),
        (ONE_WAY, '@exercise.misconception(of="gather_time")', "73: `of` is the str 'gather_time', not a task or a question: write its name without quotes"),
        (ONE_WAY, "@exercise.misconception(of=value)", "73: `of` is the Check value, not a task or a question: write its name without quotes"),
        (ONE_WAY, f"{OTHER}@exercise.misconception(of=twice, fails=value)", "81: `of` is the Task twice, which belongs to another exercise"),
        (ZEROED, "@exercise.alternative(of='gather')", "51: `of` is the str 'gather', not a task of this exercise: write its name without quotes"),
        (ZEROED, "@exercise.alternative", "51: exercise.alternative: the decorator takes arguments: write @exercise.alternative(...) above zeroed"),
        (ONE_WAY, "@exercise.misconception(of=gather_time, fails=value)", "73: the misconception one_way is about a question, which has no checks: leave out `fails`"),
        ("def one_way(I):", "def one_way(J):", "73: one_way is called with I: missing a required argument: 'J'"),
        (ZEROED, '@exercise.misconception(fails="value")', "51: `fails` names the str 'value', not a check: write its name without quotes"),
        (ZEROED, "@exercise.misconception(fails=gather)", "51: `fails` names the Task gather, not a check: write its name without quotes"),
        (ZEROED, f"{SECOND}@exercise.misconception(of=gather, fails=halved)", "64: the misconception zeroed is about gather, but halved judges half"),
        (ZEROED, f"{SECOND}@exercise.misconception(fails=value)", "64: the misconception zeroed does not name its task or question: add of=..."),
    ],
)  # fmt: skip
def test_invalid_questions_and_misconceptions_are_reported(
    tmp_path: Path, was: str, becomes: str, message: str
) -> None:
    assert complaint(tmp_path, was, becomes) == message


def test_a_check_of_another_exercise_is_refused(tmp_path: Path) -> None:
    others = OTHER + SECOND.replace("@exercise", "@other").replace("exercise.cases", "other.cases")
    assert complaint(tmp_path, ZEROED, f"{others}@exercise.misconception(fails=halved)") == (
        "72: `fails` names halved, a check of another exercise"
    )


def test_no_integers_between_the_bounds(tmp_path: Path) -> None:
    becomes = 'from grader.exercise import integers\nA = integers(4, -4, "I", "J")'
    assert complaint(tmp_path, f'A = normal("I", "J", {SPEC})', becomes) == (
        "36: integers: `low` is 4 and `high` is -4; give integers with `low` below `high`"
    )


def test_an_author_s_file_does_not_end_the_command(tmp_path: Path) -> None:
    assert complaint(tmp_path, "ROWS = exercise.given(8)", "raise SystemExit(3)") == "16: SystemExit: 3"


def test_the_line_is_that_of_the_file_with_the_misconceptions(tmp_path: Path) -> None:
    course = in_two_files(tmp_path, ONE_WAY, '@exercise.misconception(of="gather_time")')
    with pytest.raises(CourseError) as error:
        course.exercise("x1_gather")
    assert str(error.value) == (
        f"{tmp_path}/solutions/01_gather/grading/x1_gather.py:23: `of` is the str 'gather_time', "
        "not a task or a question: write its name without quotes"
    )


def test_a_valid_exercise_is_loaded_unchanged(tmp_path: Path) -> None:
    exercise = made_up(tmp_path).exercise("x1_gather")
    (call,) = {check.call for check in exercise.checks.values()}
    assert isinstance(call, Call)
    assert call.meshes == ({"x": 4}, {"x": 2}) and call.dims == {"I": 8, "J": 3}
    assert exercise.source == EXERCISE


def test_invalid_values_are_described_briefly() -> None:
    assert [a(None), a("q"), a(print), a(object()), a([1] * 99)] == [
        "None", "the str 'q'", "the builtin_function_or_method print", "the object", "the list",
    ]  # fmt: skip


def test_near_names_are_suggested() -> None:
    assert near("hint", ["hints", "unit"]) == "; did you mean 'hints'?" and near("zzz", ["a"]) == ""
    assert nearest("zzz", ["b", "a"]) == "; there are a, b"
