"""``verify`` reports programs that solve nothing and earn points, and given functions that solve a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from grader.authoring.trivial import (
    CONSTANTS,
    RAISES_VALUE_ERROR,
    Trivial,
    candidates,
    earned,
    given_away_problems,
    given_keys,
    trivial_functions,
)
from grader.authoring.verify import reference_problems
from grader.batch.grade import Grader
from grader.batch.workers import Workers
from grader.course.loading import Course, load_course
from grader.exercise import Cases, Exercise
from grader.judging.plan import plan
from grader.judging.seen import AskFinding, Finding, reference_outcome
from tests.made_up import COURSE, made_up
from tests.proved import problems_of
from tests.sampled import sampled

FUNCTION = '''\
"""# X1 Halves

Say what to do.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["a nudge"])
def half(n, unit):
    """Half of an even number of apples; ValueError for an odd one, KeyError for another unit."""
    if unit != "apples":
        raise KeyError(unit)
    if n % 2:
        raise ValueError(n)
    return n // 2


def apples(*numbers):
    return [{"n": n, "unit": "apples"} for n in numbers]


even = exercise.cases(half, public=apples(2, 6), hidden=lambda rng: apples(10, 14))
odd = exercise.cases(half, public=apples(3, 5))
other = exercise.cases(half, public=[{"n": 2, "unit": "apples"}], hidden=lambda rng: [{"n": 2, "unit": "pears"}])
none = exercise.cases(half, public=apples(0))


@exercise.check(even, points=1, public=True)
def halved(seen):
    """a half"""
    expect_outcomes(seen)


@exercise.check(odd, points=0.5, public=True, after=halved)
def refused(seen):
    """odd numbers"""
    expect_outcomes(seen)


@exercise.check(other, points=0.5, after=halved)
def units(seen):
    """other units"""
    expect_outcomes(seen, where=lambda case: case["unit"] != "apples")


@exercise.check(none, points=0.25, public=True, after=halved)
def nothing(seen):
    """nothing is halved to nothing"""
    expect_outcomes(seen)


@exercise.misconception(fails=halved)
def doubled(n, unit):
    """You doubled."""
    return half(n, unit) * 4


@exercise.misconception(fails=refused)
def rounded(n, unit):
    """You rounded."""
    return half(n - n % 2, unit)


@exercise.misconception(fails=units)
def pears(n, unit):
    """You halved pears."""
    return half(n, "apples")


@exercise.misconception(fails=nothing)
def none_refused(n, unit):
    """Nothing has a half."""
    return half(n, unit) if n else None
'''
GIVEN = '''@exercise.{kind}
def gathered({parameters}):
    """Given."""
    return jax.shard_map(lambda b: {what}, mesh={mesh}, in_specs=P("x"), out_specs=P({spec}), check_vma=False)({a})


@exercise.task('''
WHOLE = 'jax.lax.all_gather(b, "x", axis=0, tiled=True)'


LAMBDA = f"""gathered = exercise.given(
    lambda a, mesh, more=0: jax.shard_map(
        lambda b: {WHOLE}, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False
    )(a)
)


@exercise.task("""


def functions(folder: Path, was: str = "", becomes: str = "") -> Course:
    """Return a course with one plain function, with one text of its exercise replaced."""
    place = folder / "solutions" / "01_gather"
    place.mkdir(parents=True, exist_ok=True)
    assert was in FUNCTION
    (place / "x1_gather.py").write_text(FUNCTION.replace(was, becomes) if was else FUNCTION)
    (folder / "course.yaml").write_text(COURSE)
    return load_course(folder / "course.yaml")


def problems(course: Course, workers: Workers) -> list[str]:
    grader = Grader(course, "none", here=cast(Any, workers))
    return problems_of(grader)


def test_checks_that_only_a_working_function_passes_are_no_problem(workers: Workers, tmp_path: Path) -> None:
    assert problems(functions(tmp_path), workers) == []


@pytest.mark.parametrize(
    ("was", "becomes", "does", "check"),
    [
        ("public=True, after=halved)\ndef refused", "public=True)\ndef refused", "raises ValueError", "0.5 points in refused"),
        ("after=halved)\ndef units", ")\ndef units", "raises KeyError", "0.5 points in units"),
        ("public=True, after=halved)\ndef nothing", "public=True)\ndef nothing", "returns 0", "0.25 points in nothing"),
        ("apples(10, 14)", "apples(10, 10)", "answers the public cases and otherwise returns 5", "1 point in halved"),
        (
            "public=apples(2, 6), hidden=lambda rng: apples(10, 14)",
            "public=apples(6, 6)",
            "returns 3",
            "1 point in halved",
        ),
        ("return n // 2\n", "return n\n", "returns its first argument", "1 point in halved"),
    ],
    ids=["refusal", "hidden-refusal", "zero", "hidden-value", "one-value", "first-argument"],
)  # fmt: skip
def test_a_function_that_solves_nothing_and_earns_points_is_reported(
    workers: Workers, tmp_path: Path, was: str, becomes: str, does: str, check: str
) -> None:
    found = [line for line in problems(functions(tmp_path, was, becomes), workers) if "a function that only" in line]
    mend = "draw hidden cases with different results, or " if "public cases" in does else ""
    due = (
        f"half: a function that only {does} earns {check}: {mend}let the check come after a check of values (after=...)"
    )
    assert found[:1] == [due]


UNCHECKED = '''
@exercise.check(call, points=1)
def silent(seen):
    """it sends little"""
    assert seen.collectives is not None


@exercise.misconception(fails=value)'''


def test_a_program_of_zeros_that_earns_points_is_reported(workers: Workers, tmp_path: Path) -> None:
    course = made_up(tmp_path, "\n@exercise.misconception(fails=value)", UNCHECKED)
    assert [line for line in problems(course, workers) if "a function that only" in line] == [
        "gather: a function that only returns zeros earns 1 point in silent: "
        "let the check come after a check of values (after=...)"
    ]


def test_a_program_that_returns_its_argument_and_earns_points_is_reported(workers: Workers, tmp_path: Path) -> None:
    course = made_up(tmp_path, "    expect_spec(seen.out, P())\n")
    assert "gather: a function that only returns its first argument earns 1 point in value: " in str(
        problems(course, workers)
    )


def test_trivial_functions_return_constants_and_outcomes_of_the_solution(tmp_path: Path) -> None:
    exercise = functions(tmp_path).exercise("x1_gather")
    does = trivial_functions(exercise.tasks["half"], in_process(exercise, "a seed"))
    assert {"raises ValueError", "raises KeyError", "returns 1", "returns 5", "returns 7", "returns 0"} <= does.keys()
    assert {"returns None", "returns []", "returns {}", "returns ''", "returns True", "returns False"} <= does.keys()
    assert len(does) == len(CONSTANTS) + len(["KeyError", 1, 3, 5, 7, "first argument"])


def in_process(exercise: Exercise, seed: str) -> list[AskFinding]:
    """Return the results of the solution's plain functions."""
    asks = [ask for ask in plan(exercise, public=False, seed=seed) if isinstance(ask.of, Cases)]
    return [
        AskFinding(ask, Finding(outcomes=[reference_outcome(exercise.tasks[ask.task], case) for case in ask.cases]))
        for ask in asks
    ]


@pytest.mark.slow
def test_raising_value_error_everywhere_earns_nothing() -> None:
    course = load_course(Path(__file__).parents[2] / "course.yaml")
    tried = 0
    for name in course.module_of:
        exercise = course.exercise(name)
        functions = {task.name: task for task in exercise.tasks.values() if task.kind == "function"}
        reference = in_process(exercise, course.config.seed) if functions else []
        raising = [
            Trivial(task, "raises ValueError", [
                AskFinding(a.ask, Finding(outcomes=[RAISES_VALUE_ERROR] * len(a.ask.cases)))
                for a in reference if a.ask.task == task.name
            ])
            for task in functions.values()
        ]  # fmt: skip
        for some in [*([one] for one in raising), raising]:
            assert [f"{name}: {check.name}" for check in earned(exercise, reference, some)] == []
        tried += len(raising)
    assert tried > 30


def found(workers: Workers, folder: Path, code: str = GIVEN, **words: str) -> list[str]:
    usual = {"kind": "given", "parameters": "a, mesh", "what": WHOLE, "mesh": "mesh", "spec": "", "a": "a"}
    course = made_up(folder, "@exercise.task(", code.format(**usual | words))
    grader, exercise = Grader(course, "none", here=cast(Any, workers)), course.exercise("x1_gather")
    problems = reference_problems(grader, exercise, 1)
    while True:
        try:
            assert not next(problems)
        except StopIteration as stop:
            return list(given_away_problems(grader, exercise, stop.value))


TOLD = ["learners get gathered, and calling it solves gather: leave gathered out, or make the task require more"]


@pytest.mark.parametrize(
    ("words", "told"),
    sampled(2, [
        ({}, TOLD),
        ({"what": "b", "spec": '"x"'}, []),  # this function does only a part of what the task asks for
        ({"kind": "helper"}, TOLD),
        # The given function has as many parameters as the task.
        ({"parameters": "grid, b", "mesh": "b", "a": "grid"}, TOLD),
        ({"code": LAMBDA}, TOLD),
        ({"kind": "helper", "what": f"expect_close and {WHOLE}"}, []),  # only checks can call expect_close
    ]),
)  # fmt: skip
def test_a_given_function_that_is_a_whole_solution_is_reported(
    workers: Workers, tmp_path: Path, words: dict[str, str], told: list[str]
) -> None:
    assert found(workers, tmp_path, **words) == told


ENDS = """@exercise.given
def ended(a, mesh):
    __import__("os")._exit(1)


"""


def test_a_given_function_that_ends_the_process_hides_no_other_finding(workers: Workers, tmp_path: Path) -> None:
    assert found(workers, tmp_path, code=ENDS + GIVEN) == TOLD


@pytest.mark.parametrize(
    ("parameters", "tried"), [("a", True), ("mesh, a", True), ("a, b, c", False), ("a, b=1, c=2", True), ("*a", False)]
)
def test_only_functions_that_can_take_the_arguments_are_tried(tmp_path: Path, parameters: str, tried: bool) -> None:
    course = made_up(tmp_path, "def helper(a):", f"def helper({parameters}):")
    names = [part.name for _, part, _ in candidates(course.exercise("x1_gather"))]
    assert names == (["helper"] if tried else [])


QUESTION = '''@exercise.given
def size(n, parts):
    """Bytes."""
    return {what}


@exercise.number(points=1, unit="MiB", params={{"I": [4096, 8192], "X": [4, 8]}})
def held(I, X):
    """How many MiB does each of {{{{ X }}}} devices hold of {{{{ I }}}} squared?"""
    return 2 * I * I / X


@exercise.task('''


@pytest.mark.parametrize(("what", "told"), [("n * n * 2 / parts", True), ("n * n / parts", False), ("1 / 0", False)])
def test_a_given_function_that_returns_a_key_is_reported(tmp_path: Path, what: str, told: bool) -> None:
    course = made_up(tmp_path, "@exercise.task(", QUESTION.format(what=what))
    expected = ["learners get size, which returns the answer of held: leave size out"] if told else []
    assert list(given_keys(course.exercise("x1_gather"))) == expected
