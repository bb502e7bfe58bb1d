"""``verify`` reports functions that the course gives to learners and that solve a task or answer a question."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.authoring.given_away import candidates, given_away_problems, given_keys
from grader.authoring.verify import reference_problems
from grader.batch.grade import Grader
from tests.made_up import made_up

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


def found(folder: Path, code: str = GIVEN, **words: str) -> list[str]:
    usual = {"kind": "given", "parameters": "a, mesh", "what": WHOLE, "mesh": "mesh", "spec": "", "a": "a"}
    course = made_up(folder, "@exercise.task(", code.format(**usual | words))
    with Grader(course, "none", 1) as grader:
        exercise = course.exercise("x1_gather")
        problems = reference_problems(course, grader, exercise, 1)
        while True:
            try:
                assert not next(problems)
            except StopIteration as stop:
                return list(given_away_problems(course, grader, exercise, stop.value))


TOLD = ["learners get gathered, and calling it solves gather: leave gathered out, or make the task require more"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({}, TOLD),
        ({"kind": "helper"}, TOLD),
        # The given function has as many parameters as the task.
        ({"parameters": "grid, b", "mesh": "b", "a": "grid"}, TOLD),
        ({"code": LAMBDA}, TOLD),
        ({"kind": "helper", "what": f"expect_close and {WHOLE}"}, []),  # only checks can call expect_close
        ({"what": "b", "spec": '"x"'}, []),  # this function does only a part of what the task asks for
    ],
)
def test_a_given_function_that_is_a_whole_solution_is_reported(
    tmp_path: Path, words: dict[str, str], told: list[str]
) -> None:
    assert found(tmp_path, **words) == told


ENDS = """@exercise.given
def ended(a, mesh):
    __import__("os")._exit(1)


"""


def test_a_given_function_that_ends_the_process_hides_no_other_finding(tmp_path: Path) -> None:
    assert found(tmp_path, code=ENDS + GIVEN) == TOLD


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
