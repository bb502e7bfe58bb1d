"""The judge makes results from an exercise's checks and the findings about a submission."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.common.observation import Fault, Observation, Outcome
from grader.common.result import Result
from grader.exercise import Exercise, integers, normal
from grader.expect import Failure, expect_close, expect_outcomes, expect_step_time
from grader.judging import judge
from grader.judging.judge import BROKEN_ON_HIDDEN, WRONG_ON_HIDDEN, judge_checks
from grader.judging.plan import HIDDEN_SETS, Ask, plan
from grader.judging.seen import AskFinding, Finding, reference_outcome
from grader.reports.programs import rings_of, timelines_of
from tests.clock.programs import read
from tests.seen import finding, sharded


def an_exercise() -> Exercise:
    """Return an exercise with an array task, which has three checks in a row, and a function task."""
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


def timed_exercise(public: bool) -> Exercise:
    """Return an exercise with two checks of the step time of one task. Both checks always fail."""
    exercise = Exercise(meshes=[{"x": 8}])

    @exercise.task
    def gather(a, *, mesh):
        """All of a."""

    sizes, hidden = {"I": 1 << 14, "J": 1 << 12}, {"I": 1 << 15, "J": 1 << 12}
    small = exercise.call(gather, a=normal("I", "J"), dims={"I": 11, "J": 13}, hidden_dims={"I": 17, "J": 19})
    call = exercise.timing(small, on="v5e:2x4", dims=sizes, hidden_dims=hidden)

    for number in (1, 2):

        def fails(seen):
            """in time"""
            expect_step_time(seen, at_most=1e-9)

        fails.__name__ = f"fails_{number}"
        exercise.check(call, points=1, public=public)(fails)

    return exercise


def timed_failures(public: bool, answers: Callable[[Ask], bool]) -> list[Result]:
    """Judge a program with a gather and a matmul, on the asks that ``answers`` accepts. Return both results."""
    exercise = timed_exercise(public)
    program = read(gathered_matmul, [((1 << 14, 4096), P("x", None)), ((4096, 4096), P())], P())
    asks = [ask for ask in plan(exercise, public=False, seed="s") if answers(ask)]
    found = [AskFinding(ask, Finding(Observation([], [], 0, operations=program))) for ask in asks]
    return judge_checks(exercise, found, public=False)


def gathered_matmul(a, w):
    return lax.all_gather(a, "x", axis=0, tiled=True) @ w


def test_a_failure_in_time_shows_the_timeline_once_at_the_sizes_that_learners_see() -> None:
    first, second = timed_failures(True, lambda ask: True)
    assert first.status == second.status == "failed"
    assert [picture["title"] for picture in first.pictures] == ["actual timeline"] and second.pictures == []
    (timeline,) = timelines_of(first)
    assert timeline.collectives[0].kind == "all_gather" and timeline.step > 0


@pytest.mark.parametrize("public", [True, False])
def test_hidden_sizes_and_hidden_checks_show_no_timeline(public: bool) -> None:
    for result in timed_failures(public, lambda ask: ask.hidden_sizes):
        assert result.status == "failed" and result.pictures == []


def rounds(a):
    for _ in range(3):
        a = lax.ppermute(a, "x", [(d, (d + 1) % 4) for d in range(4)])
    return a


def ticks(a):
    held, total = a[0], 0
    for row in a[:5]:
        held = lax.ppermute(jnp.where(lax.axis_index("x") == 0, row, jnp.sort(held)), "x", [(0, 1), (1, 2), (2, 3)])
        total = total + held
    return a + total


def ring_failures(answers: Callable[[Ask], bool], layouts: bool = False, local: Callable = rounds) -> list[Result]:
    """Judge the program ``local`` on the asks that ``answers`` accepts. Return the results of two failing checks.

    The first check is hidden. With ``layouts``, its failures show a layout.
    """
    exercise = Exercise(meshes=[{"x": 4}])

    @exercise.task
    def total(a, *, mesh):
        """The sum."""

    call = exercise.call(total, a=normal("I", "J"), dims={"I": 16, "J": 16}, hidden_dims={"I": 32, "J": 16})
    drawn = [({"x": 4}, (4,), [((0, 4),)] * 4)] if layouts else []
    for name in ("one", "two"):

        def fails(seen):
            """never"""
            raise Failure("no", layouts=drawn)

        fails.__name__ = name
        exercise.check(call, points=1, public=name == "two")(fails)

    program = read(local, [((16, 16), P(None, "x"))], P(None, "x"), mesh={"x": 4})
    asks = [ask for ask in plan(exercise, public=False, seed="s") if answers(ask)]
    runs = [[sharded(np.zeros((16, 16)), ("x", None), {"x": 4})]]
    found = [AskFinding(ask, Finding(Observation(runs * len(ask.inputs), [], 0, operations=program))) for ask in asks]
    return judge_checks(exercise, found, public=False)


def test_ring_pictures_are_shown_once_and_only_for_public_sizes() -> None:
    first, second = ring_failures(lambda ask: True)
    assert [picture["title"] for picture in first.for_student().pictures] == ["actual rounds"]
    (rounds,) = rings_of(first)
    assert [cell.text for cell in rounds.rows[3][2]] == ["1", "2", "3", "0"] and second.pictures == []
    for hidden in ring_failures(lambda ask: ask.hidden_sizes):
        assert hidden.status == "failed" and hidden.pictures == []


def test_a_pipeline_is_shown_once() -> None:
    first, second = ring_failures(lambda ask: True, local=ticks)
    assert [picture["title"] for picture in first.pictures] == ["actual ticks"] and second.pictures == []


def test_pictures_are_plain_json_so_that_the_cache_keeps_them() -> None:
    for result in (ring_failures(lambda ask: True)[0], timed_failures(True, lambda ask: True)[0]):
        assert result.pictures and Result.model_validate_json(result.model_dump_json()) == result


def test_a_failure_of_a_layout_shows_the_layout_alone() -> None:
    assert [p["title"] for p in ring_failures(lambda ask: True, layouts=True)[0].pictures] == ["actual"]


@pytest.mark.parametrize("code", ["routes", "pipelines", "_timeline_picture", "_picture"])
def test_an_error_in_the_code_of_a_picture_changes_no_verdict(
    code: str, monkeypatch: pytest.MonkeyPatch, left_out: pytest.LogCaptureFixture
) -> None:
    def judged() -> list[list[Result]]:
        rings = (ring_failures(lambda ask: True, layouts=of) for of in (False, True))
        return [timed_failures(True, lambda ask: True), *rings]

    def error(*about: object) -> None:
        raise LookupError

    before = judged()
    monkeypatch.setattr(judge, code, error)
    after = judged()
    assert [[r.model_copy(update={"pictures": []}) for r in of] for of in before] == [
        [r.model_copy(update={"pictures": []}) for r in of] for of in after
    ]
    shown = [[result.pictures for of in found for result in of] for found in (before, after)]
    assert sum(map(len, shown[1])) < sum(map(len, shown[0])) and len(left_out.messages) == 1


def observed(ask: Ask, factor: float = 2.0, *collectives: object) -> Observation:
    runs = [[sharded(factor * one["a"], ("x", None), ask.mesh)] for one in ask.inputs]
    return Observation(runs, list(collectives), 0)  # type: ignore[arg-type]


def judged(exercise: Exercise, shows: Callable[[Ask], Any], *, public: bool = False) -> dict[str, Result]:
    """Judge a submission with the finding ``shows(ask)`` for each ask of ``double``, and a right ``half``.

    Returns: the results by name.
    """
    answered = []
    for ask in plan(exercise, public=public, seed="s"):
        right = [Outcome(value=case["n"] / 2) for case in ask.cases]
        answered.append(AskFinding(ask, finding(right if ask.cases else shows(ask))))
    return {r.name: r for r in judge_checks(exercise, answered, public=public)}


def statuses(results: dict[str, Result]) -> list[str]:
    return [r.status for r in results.values()]


def test_a_right_submission_earns_everything() -> None:
    results = judged(an_exercise(), observed)
    assert statuses(results) == ["passed"] * 4
    assert sum(r.earned for r in results.values()) == 5


def test_only_public_checks_are_judged_in_public() -> None:
    assert list(judged(an_exercise(), observed, public=True)) == ["value"]


def test_checks_after_a_failure_are_blocked() -> None:
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


def secretly(finding_of: Callable[[Ask], object]) -> dict[str, Result]:
    """Judge a right submission, but with the finding ``finding_of(ask)`` for asks with hidden inputs."""
    return judged(an_exercise(), lambda ask: finding_of(ask) if ask.hidden_inputs else observed(ask))


def test_failures_on_hidden_inputs_all_have_one_fixed_reason() -> None:
    reasons = {
        secretly(finding_of)["value"].model_dump_json()
        for finding_of in (
            lambda ask: observed(ask, 3.0),
            lambda ask: observed(ask, float("nan")),
            lambda ask: observed(ask, 3.0 if ask.mesh["x"] == 2 else 2.0),
            lambda ask: Observation([[sharded(one["a"][:8], (), ask.mesh)] for one in ask.inputs], [], 0),
            lambda ask: Fault("raised", "the first input is 0.731", line=3),
            lambda ask: Fault("timeout", "did not finish"),
            lambda ask: Fault("broken", "ours") if ask.mesh["x"] == 2 else Fault("compile", "theirs"),
        )
    }
    assert len(reasons) == 1
    assert Result.model_validate_json(reasons.pop()).reason == WRONG_ON_HIDDEN


def test_a_grader_fault_on_hidden_inputs_reveals_nothing_about_them() -> None:
    result = secretly(lambda ask: Fault("broken", "XLA said 0.731"))["value"]
    assert (result.status, result.reason) == ("broken", BROKEN_ON_HIDDEN)


def test_an_exception_in_a_check_on_hidden_inputs_reveals_nothing() -> None:
    exercise = an_exercise()

    def check(seen: Any) -> None:
        if not seen.public:
            raise ValueError(f"{seen.a}")

    object.__setattr__(exercise.checks["value"], "fn", check)
    assert judged(exercise, observed)["value"].reason == BROKEN_ON_HIDDEN


def test_a_fault_is_reported_with_its_line() -> None:
    results = judged(an_exercise(), lambda ask: Fault("raised", "TypeError: no", line=7, file="a.py"))
    assert results["value"].reason == "line 7: double: TypeError: no"
    cell = judged(an_exercise(), lambda ask: Fault("raised", "TypeError: no", line=7, file="cell 3"))
    assert cell["value"].reason == "cell 3, line 7: double: TypeError: no"


def test_a_grader_fault_breaks_the_check_and_all_later_ones() -> None:
    results = judged(an_exercise(), lambda ask: Fault("broken", "XLA died"))
    assert statuses(results) == ["broken", "broken", "broken", "passed"]
    assert results["third"].reason == "waits for the check 'second', which the grader could not judge"


def test_a_learners_fault_takes_precedence_over_a_grader_fault() -> None:
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


def test_a_picture_shows_both_layouts() -> None:
    from grader.expect import expect_spec

    exercise = an_exercise()
    object.__setattr__(exercise.checks["value"], "fn", lambda seen: expect_spec(seen.out, (None, "x")))
    result = judged(exercise, observed)["value"]
    assert [p["title"] for p in result.pictures] == ["actual", "expected"]
    assert result.pictures[0]["mesh"] == [["x", 4], ["y", 2]]


def test_values_are_reported_on_public_data_alone() -> None:
    """Values of hidden sizes or hidden checks would give learners the numbers for a constant answer."""

    def wrong(ask: Ask) -> Observation:
        return observed(ask, 7.0)

    told = judged(an_exercise(), wrong, public=True)["value"]
    due, got = (float(values.split(",")[0]) for values in (told.expected, told.actual))
    assert told.status == "failed" and got == pytest.approx(3.5 * due, rel=1e-3)
    exercise = an_exercise()
    object.__setattr__(exercise.checks["value"], "public", False)
    assert judged(exercise, wrong)["value"].expected is None
    hidden = judged(an_exercise(), lambda ask: wrong(ask) if ask.hidden_sizes else observed(ask))["value"]
    assert (hidden.status, hidden.expected, hidden.actual) == ("failed", None, None)


# -- values that a check receives


def test_numbers_are_given_in_the_widest_type_of_their_kind_exactly() -> None:
    exercise, found = Exercise(meshes=[{"x": 4, "y": 2}]), []

    @exercise.task
    def f(a, n, *, mesh):
        """f"""

    call = exercise.call(f, a=normal(8, 2, dtype="bfloat16"), n=integers(0, 9, 8), static={"dim": 3})

    @exercise.check(call, points=1)
    def look(seen):
        """looks"""
        found.append(seen)

    asks = plan(exercise, public=False, seed="s")
    results = judge_checks(exercise, [AskFinding(a, Finding(observed(a))) for a in asks], public=False)
    assert [r.status for r in results] == ["passed"] and len(found) == 1 + HIDDEN_SETS
    assert found[0].a.dtype == np.float64 and found[0].n.dtype == np.int64 and found[0].dim == 3
    assert (found[0].a.astype(asks[0].inputs[0]["a"].dtype) == asks[0].inputs[0]["a"]).all()
    with pytest.raises(AttributeError, match="this check's call has no argument 'b'"):
        _ = found[0].b


def test_gradients_are_given_by_the_names_of_their_arguments() -> None:
    exercise, found = Exercise(meshes=[{"x": 4, "y": 2}]), []

    @exercise.task
    def f(a, b, *, mesh):
        """f"""

    call = exercise.call(f, a=normal(8), b=normal(4), wrt=("b",), cotangent=normal(8))

    @exercise.check(call, points=1)
    def look(seen):
        """looks"""
        found.append(seen)

    asks = plan(exercise, public=False, seed="s")
    answered = [
        AskFinding(a, Finding(Observation([[sharded(one["a"]), sharded(one["b"])] for one in a.inputs], [], 0)))
        for a in asks
    ]
    assert judge_checks(exercise, answered, public=False)[0].status == "passed"
    assert found[0].out.shape == (8,) and found[0].grads["b"].shape == (4,)
    assert found[0].cotangent.shape == (8,)


# -- reasons of failures


def failing(failure: Failure) -> Result:
    def fail(seen: object) -> None:
        raise failure

    exercise = an_exercise()
    object.__setattr__(exercise.checks["value"], "fn", fail)
    return judged(exercise, observed)["value"]


def test_a_failures_data_is_plain_in_the_result() -> None:
    result = failing(
        Failure("no", expected={"a": (np.int64(3), None)}, actual=np.float32(0.5), where="line 3", staff="s")
    )
    assert (result.expected, result.actual, result.where, result.staff) == ({"a": [3, None]}, 0.5, "line 3", "s")
    assert result.reason == "on the mesh (x=4, y=2), no" and result.earned == 0
    assert Result.model_validate_json(result.model_dump_json()) == result


def test_a_fault_on_every_mesh_names_no_mesh_and_on_one_it_does() -> None:
    fault = Fault("raised", "TypeError: no")
    assert judged(an_exercise(), lambda ask: fault)["value"].reason == "double: TypeError: no"
    one = judged(an_exercise(), lambda ask: fault if ask.mesh["x"] == 2 else observed(ask))
    assert one["value"].reason == "on the mesh (x=2, y=4), double: TypeError: no"


def test_a_tasks_name_is_reported_once() -> None:
    reason = judged(an_exercise(), lambda ask: Fault("missing", "double is not defined"))["value"].reason
    assert reason == "double is not defined"


@pytest.mark.parametrize(
    "kind", ["missing", "raised", "untraceable", "timeout", "memory", "refused", "crashed", "compile", "passed"]
)
def test_every_fault_but_ours_is_a_failure_worth_nothing(kind: str) -> None:
    results = judged(an_exercise(), lambda ask: Fault(kind, "m"))
    assert (results["value"].status, results["value"].earned) == ("failed", 0)
    assert results["third"].status == "blocked" and results["halved"].status == "passed"


def test_an_authors_mistake_breaks_only_its_own_and_later_checks() -> None:
    exercise = an_exercise()
    object.__setattr__(exercise.checks["second"], "fn", lambda seen: seen.nothing)
    results = judged(exercise, observed)
    assert statuses(results) == ["passed", "broken", "broken", "passed"]
    assert results["second"].reason == (
        "the check itself failed: AttributeError: this check's call has no argument 'nothing'"
    )


def test_a_huge_returned_integer_fails_and_does_not_break_a_check() -> None:
    exercise = an_exercise()
    asks = plan(exercise, public=False, seed="s")
    huge = Outcome(value=10**400)
    found = [AskFinding(a, finding([huge for _ in a.cases] if a.cases else observed(a))) for a in asks]
    results = {r.name: r for r in judge_checks(exercise, found, public=False)}
    assert results["halved"].status == "failed"


def test_an_error_raised_by_the_reference_is_the_expected_outcome() -> None:
    task = an_exercise().tasks["half"]
    assert reference_outcome(task, {"n": 3}) == Outcome(value=1.5)
    assert reference_outcome(task, {"n": "x"}) == Outcome(error="TypeError")
