"""first_cases: verify tries a misconception on one mesh with one size. After a problem, it tries all cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from grader.authoring.grading import graded_and_public
from grader.authoring.tries import Replaced, alike, amounts, first_cases, replaced_texts, submission_of, without_trials
from grader.batch.grade import Grader
from grader.batch.workers import Workers
from grader.common.observation import Observation
from grader.course.reference import reference_source
from grader.exercise import Exercise, normal
from grader.judging.plan import plan
from grader.judging.seen import AskFinding, Finding
from tests.made_up import made_up
from tests.proved import problems_of

SIZES: dict[str, Any] = {"dims": {"I": 8}, "hidden_dims": {"I": 1012}}


def an_exercise(*, every_mesh: bool = False) -> Exercise:
    """Return an exercise with the checks ``value``, ``work`` (after ``value``) and ``size``, each with its own call."""
    exercise = Exercise(meshes=[{"x": 4}, {"x": 2}])

    @exercise.task
    def gather(a, *, mesh):
        """Gather A."""

    first, second, third = (exercise.call(gather, a=normal("I"), **SIZES) for _ in range(3))

    @exercise.check(first, points=1, public=True)
    def value(seen):
        """value"""

    @exercise.check(second, points=1, public=True, after=value)
    def work(seen):
        """work"""

    @exercise.check(third, points=1, every_mesh=every_mesh)
    def size(seen):
        """size"""

    return exercise


def chosen(exercise: Exercise, **more: Any) -> list[tuple[str, int, int]]:
    """Return for each of the first cases its check, the size of axis x, and the size of dimension I."""
    asks = plan(exercise, public=False, seed="s")
    found = first_cases(exercise, [AskFinding(ask, Finding(Observation([], [], 0))) for ask in asks], **more)
    name_of = {id(check.call): check.name for check in exercise.checks.values()}
    return [(name_of[id(a.ask.of)], a.ask.mesh["x"], a.ask.dims["I"]) for a in found]


def test_a_call_has_one_mesh_and_the_learners_size_if_learners_get_the_call() -> None:
    assert chosen(an_exercise()) == [("value", 4, 8), ("work", 4, 8), ("size", 4, 1012)]


def test_calls_that_no_check_judges_after_the_failure_are_left_out() -> None:
    assert chosen(an_exercise(), fails=["value"]) == [("value", 4, 8), ("size", 4, 1012)]
    assert chosen(an_exercise(), fails=["work"]) == [("value", 4, 8), ("work", 4, 8), ("size", 4, 1012)]


def test_a_check_that_compares_meshes_has_all_meshes() -> None:
    cases = chosen(an_exercise(every_mesh=True))
    assert cases == [("value", 4, 8), ("work", 4, 8), ("size", 4, 1012), ("size", 2, 1012)]


def test_a_failed_check_with_a_budget_for_all_sizes_has_all_cases() -> None:
    cases = chosen(an_exercise(), fails=["work"], every=["work", "size"])
    assert [case for case in cases if case[0] == "work"] == [("work", x, i) for i in (8, 1012) for x in (4, 2)]
    assert [case for case in cases if case[0] != "work"] == [("value", 4, 8), ("size", 4, 1012)]


def test_without_trials_keeps_all_but_the_trials() -> None:
    ask = plan(an_exercise(), public=False, seed="s")[0]
    (found,) = without_trials([AskFinding(ask, Finding(Observation([], [], 7, poison=cast(Any, object()))))])
    assert found == AskFinding(ask, Finding(Observation([], [], 7)))


ZEROS = "return jax.numpy.zeros(a.shape)"
TWICE = "return jax.shard_map(local, mesh=mesh"


def problems(workers: Workers, folder: Path, was: str, becomes: str, seeds: int = 1) -> list[str]:
    course = made_up(folder, was, becomes)
    grader = Grader(course, "none", here=cast(Any, workers))
    return problems_of(grader, seeds=seeds)


@pytest.mark.parametrize(("first", "count"), [(True, 1), (False, 6)])
def test_a_misconception_runs_only_its_first_cases(workers: Workers, tmp_path: Path, first: bool, count: int) -> None:
    course = made_up(tmp_path)
    grader, exercise = Grader(course, "none", here=cast(Any, workers)), course.exercise("x1_gather")
    right = submission_of("x1_gather", reference_source(exercise, {}))
    reference = graded_and_public(grader, right, "x1_gather")[2]
    zeroed = exercise.misconceptions["zeroed"]
    cases = {"zeroed": first_cases(exercise, reference, zeroed.fails)} if first else {}
    (text,) = replaced_texts(grader, exercise, [zeroed], reference, cases)
    assert sum(a.ask.task == "gather" for a in text.answered) == count


@pytest.mark.parametrize("where", ['mesh.shape["x"] == 2', "a.shape[0] > 8"], ids=["mesh", "size"])
def test_a_misconception_that_the_first_case_does_not_show_is_tried_with_all_cases(
    workers: Workers, tmp_path: Path, where: str
) -> None:
    assert problems(workers, tmp_path, ZEROS, f"{ZEROS} if {where} else gather(a, mesh=mesh)") == []


def test_a_misconception_that_fails_nothing_is_reported(workers: Workers, tmp_path: Path) -> None:
    found = problems(workers, tmp_path, ZEROS, "return gather(a, mesh=mesh)")
    assert "the misconception zeroed fails nothing, but fails= names value" in found


def test_a_further_failure_on_another_mesh_is_reported_with_several_seeds(workers: Workers, tmp_path: Path) -> None:
    """With one seed, verify proves only the first case. With several seeds, it proves all cases."""
    on_other_mesh = f'if mesh.shape["x"] == 2:\n        {ZEROS}\n    {TWICE}'
    assert problems(workers, tmp_path, TWICE, on_other_mesh) == []
    (problem,) = problems(workers, tmp_path, TWICE, on_other_mesh, seeds=2)
    assert problem.startswith("the misconception gathered_twice fails value, but fails= names traffic (value: ")


def test_amounts_of_programs_without_results_do_not_depend_on_other_programs(workers: Workers, tmp_path: Path) -> None:
    """The first program changes JAX for later programs, and ends its process if I is 1012."""
    course = made_up(tmp_path)
    grader, exercise = Grader(course, "none", here=cast(Any, workers)), course.exercise("x1_gather")
    own = reference_source(exercise, {})
    changes = "jax.lax.all_gather = lambda a, *_, **__: jax.numpy.zeros((4 * a.shape[0], a.shape[1]))\n"
    ends = "def gather(a, *, mesh):\n    if a.shape[0] > 8:\n        __import__('os')._exit(3)"
    first = f"{own}\n{changes}".replace("def gather(a, *, mesh):", ends)
    reference = graded_and_public(grader, submission_of("x1_gather", own), "x1_gather")[2]
    texts = [(exercise.misconceptions["zeroed"], first), (exercise.misconceptions["gathered_twice"], own)]
    replaced = [Replaced(by, text, [], []) for by, text in texts]
    for text in replaced:
        text.run(grader, "x1_gather")
    _, wrong = amounts(reference, replaced)
    found = {name: {a.ask: a for a in answered} for name, answered in wrong.items()}
    asks = [a.ask for a in reference]
    assert alike([found["gathered_twice"][ask] for ask in asks], reference)
    assert found["zeroed"].keys() == {*asks}
    small = {ask for ask in asks if ask.dims.get("I") == 8}
    assert {ask for ask, a in found["zeroed"].items() if a.finding.observation} == small
