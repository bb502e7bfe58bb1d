"""Findings and checks in, results out."""

from __future__ import annotations

import numpy as np
import pytest

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_outcomes
from grader.judge import Answered, judge_checks, matches
from grader.observation import Fault, Observation, Outcome
from grader.plan import Ask, plan
from grader.result import Result
from tests.seen import collective, sharded


def an_exercise() -> Exercise:
    """One array task with three checks in a row, one function task."""
    exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}])

    @exercise.task
    def double(a, *, mesh):
        """Twice a."""

    @exercise.function
    def half(n):
        """Half of n."""
        return n / 2

    call = exercise.call(double, a=normal("I", "J"), dims={"I": 8, "J": 4}, hidden_dims={"I": 16, "J": 4})
    cases = exercise.cases(half, public=[{"n": 2}], hidden=lambda rng: [{"n": int(rng.integers(3, 9))}])

    @exercise.check(call, points=2, public=True)
    def value(seen):
        """it is doubled"""
        expect_close(seen.out, 2 * seen.a)

    @exercise.check(call, points=1, after=value)
    def second(seen):
        """the second"""

    @exercise.check(call, points=1, after=second)
    def third(seen):
        """the third"""

    @exercise.check(cases, points=1)
    def halved(seen):
        """it is halved"""
        expect_outcomes(seen, rtol=1e-9)

    return exercise


def observed(ask: Ask, factor: float = 2.0, *collectives: object) -> Observation:
    runs = [[sharded(factor * one["a"], ("x", None), ask.mesh)] for one in ask.inputs]
    return Observation(runs, False, list(collectives), 0, 0)  # type: ignore[arg-type]


def judged(exercise: Exercise, finding: object, *, public: bool = False) -> dict[str, Result]:
    """Every ask of ``double`` comes to ``finding(ask)``; ``half`` is right."""
    answered = []
    for ask in plan(exercise, public=public, seed="s"):
        right = [Outcome(value=case["n"] / 2) for case in ask.cases]
        answered.append(Answered(ask, right if ask.cases else finding(ask)))  # type: ignore[operator]
    return {r.name: r for r in judge_checks(exercise, answered, public=public)}


def statuses(results: dict[str, Result]) -> list[str]:
    return [r.status for r in results.values()]


def test_right_work_earns_everything() -> None:
    results = judged(an_exercise(), observed)
    assert statuses(results) == ["passed"] * 4
    assert sum(r.earned for r in results.values()) == 5


def test_only_public_checks_are_judged_in_public() -> None:
    assert list(judged(an_exercise(), observed, public=True)) == ["value"]


def test_what_comes_after_a_failure_is_blocked() -> None:
    results = judged(an_exercise(), lambda ask: observed(ask, 3.0))
    assert statuses(results) == ["failed", "blocked", "blocked", "passed"]
    assert results["second"].reason == "not tried: first make 'it is doubled' pass"
    assert results["value"].reason.startswith("on the mesh (x=4, y=2), on device (x=0, y=0), all values are wrong")


def test_a_failure_on_one_mesh_fails_and_names_the_mesh() -> None:
    results = judged(an_exercise(), lambda ask: observed(ask, 3.0 if ask.mesh["x"] == 2 else 2.0))
    assert results["value"].reason.startswith("on the mesh (x=2, y=4), ")


def test_a_failure_on_the_last_inputs_fails() -> None:
    def last_wrong(ask: Ask) -> Observation:
        right = observed(ask)
        right.outputs[-1] = [sharded(0 * ask.inputs[-1]["a"], ("x", None), ask.mesh)]
        return right

    assert judged(an_exercise(), last_wrong)["value"].status == "failed"


def test_a_fault_is_told_with_its_line() -> None:
    results = judged(an_exercise(), lambda ask: Fault("raised", "TypeError: no", line=7, file="a.py"))
    assert results["value"].reason == "line 7: double: TypeError: no"
    cell = judged(an_exercise(), lambda ask: Fault("raised", "TypeError: no", line=7, file="cell 3"))
    assert cell["value"].reason == "cell 3, line 7: double: TypeError: no"


def test_a_fault_of_ours_is_broken_and_so_is_all_that_waits_for_it() -> None:
    results = judged(an_exercise(), lambda ask: Fault("broken", "XLA died"))
    assert statuses(results) == ["broken", "broken", "broken", "passed"]
    assert results["third"].reason == "waits for 'second', which the grader could not judge"


def test_a_learners_fault_on_one_mesh_is_not_hidden_by_ours_on_another() -> None:
    def mixed(ask: Ask) -> Fault:
        return Fault("broken", "ours") if ask.mesh["x"] == 4 else Fault("raised", "TypeError: theirs")

    assert judged(an_exercise(), mixed)["value"].status == "failed"


def test_a_check_that_raises_is_the_authors_fault() -> None:
    exercise = an_exercise()
    broken = exercise.checks["value"]
    object.__setattr__(broken, "fn", lambda seen: 1 / 0)
    result = judged(exercise, observed)["value"]
    assert (result.status, result.reason) == ("broken", "the check itself failed: ZeroDivisionError: division by zero")


def test_a_check_with_nothing_to_judge_never_passes() -> None:
    assert [r.status for r in judge_checks(an_exercise(), [], public=False)] == ["broken"] * 4


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_result_that_is_not_finite_never_passes(bad: float) -> None:
    assert judged(an_exercise(), lambda ask: observed(ask, bad))["value"].status == "failed"


# -- known slips


def answered(factor: float, *collectives: object) -> list[Answered]:
    asks = [a for a in plan(an_exercise(), public=False, seed="s") if a.inputs]
    return [Answered(a, observed(a, factor, *collectives)) for a in asks]


def test_wrong_values_match_whatever_was_sent() -> None:
    assert matches(answered(3.0, collective("permute", "x")), answered(3.0), answered(2.0))
    assert not matches(answered(4.0), answered(3.0), answered(2.0))


def test_right_values_match_by_what_was_sent() -> None:
    gather, reduce = collective("all_gather", "x"), collective("all_reduce", "x")
    assert matches(answered(2.0, gather), answered(2.0, gather), answered(2.0))
    assert not matches(answered(2.0, reduce), answered(2.0, gather), answered(2.0))


def test_an_unfinished_task_is_nobodys_misconception() -> None:
    asks = [a.ask for a in answered(2.0)]
    missing = [Answered(a, Fault("missing", "not written yet")) for a in asks]
    assert not matches(missing, missing, answered(2.0))
    assert not matches([], [], [])


def test_the_same_error_matches() -> None:
    asks = [a.ask for a in answered(2.0)]
    mine = [Answered(a, Fault("raised", "TypeError: got shape (4, 2)", type="TypeError")) for a in asks]
    theirs = [Answered(a, Fault("raised", "TypeError: got shape (8, 1)", type="TypeError")) for a in asks]
    assert matches(mine, theirs, answered(2.0))


def test_a_picture_shows_both_layouts() -> None:
    from grader.expect import expect_spec

    exercise = an_exercise()
    object.__setattr__(exercise.checks["value"], "fn", lambda seen: expect_spec(seen.out, (None, "x")))
    result = judged(exercise, observed)["value"]
    assert [p["title"] for p in result.pictures] == ["actual", "expected"]
    assert result.pictures[0]["mesh"] == [["x", 4], ["y", 2]]
