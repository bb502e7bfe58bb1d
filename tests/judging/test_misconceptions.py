"""Find a submission's misconception: its program fails the checks in the same way as the submission."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from grader.common.observation import Collective, Fault, Observation, Outcome
from grader.exercise import Exercise, Misconception, normal
from grader.expect import (
    Failure,
    expect_close,
    expect_collectives,
    expect_equal,
    expect_memory,
    expect_outcomes,
    expect_traffic,
)
from grader.judging.answers import with_hint
from grader.judging.judge import judge_checks
from grader.judging.misconceptions import Attempt, fitting
from grader.judging.plan import Ask, plan
from grader.judging.seen import AskFinding, Finding
from tests.seen import collective, finding, sharded

Change = Callable[[np.ndarray], Any]


def an_exercise(
    dtype: str = "float32", due: Change = lambda a: 2 * a, compare: Callable[..., None] = expect_close
) -> Exercise:
    """Return an exercise with a function and a task. Checks judge the task's values, collectives and memory."""
    exercise = Exercise(meshes=[{"x": 4, "y": 2}])

    @exercise.task
    def double(a, *, mesh):
        """Twice a."""

    @exercise.function
    def half(n):
        """Half of n."""
        return n / 2

    call = exercise.call(double, a=normal("I", "J", dtype=dtype), dims={"I": 8, "J": 4})
    cases = exercise.cases(half, public=[{"n": 2}, {"n": 3}, {"n": 6}])

    @exercise.check(call, points=2, public=True)
    def value(seen):
        """it is doubled"""
        compare(seen.out, due(seen.a))

    @exercise.check(call, points=1)
    def traffic(seen):
        """one gather"""
        expect_collectives(seen, all_gather={"x": 1})

    @exercise.check(call, points=1)
    def memory(seen):
        """little memory"""
        expect_memory(seen, at_most=1000)

    @exercise.check(call, points=1)
    def order(seen):
        """nothing waits"""
        if seen.collectives[0].line:
            raise Failure(f"line {seen.collectives[0].line}: the {seen.collectives[0].kind} waits for a matmul")

    @exercise.check(call, points=1)
    def sent(seen):
        """few bytes along each axis"""
        expect_traffic(seen, at_most=1e6, axis="x")
        expect_traffic(seen, at_most=1e6, axis="y")

    @exercise.check(cases, points=1)
    def halved(seen):
        """it is halved"""
        expect_outcomes(seen)

    return exercise


EXERCISE, COMPLEX = an_exercise(), an_exercise("complex64")
POSITIVE = an_exercise(due=lambda a: a > 0, compare=partial(expect_equal, dtype="bool"))
GATHER = collective("all_gather", "x")


def ran(
    change: Change = lambda a: 2 * a, *sent: Collective, memory: int = 0, exercise: Exercise = EXERCISE
) -> list[AskFinding]:
    """Return the findings of a submission: ``double`` returns ``change(a)``, and ``half`` is right."""

    def of(ask: Ask) -> AskFinding:
        if ask.cases:
            return AskFinding(ask, Finding(outcomes=[Outcome(value=case["n"] / 2) for case in ask.cases]))
        changed = [np.asarray(change(one["a"])) for one in ask.inputs]
        dtype = "bool" if changed[0].dtype == bool else ask.inputs[0]["a"].dtype.name
        outputs = [[sharded(out, ("x",), ask.mesh, dtype)] for out in changed]
        return AskFinding(ask, Finding(Observation(outputs, list(sent or (GATHER,)), memory)))

    return [of(ask) for ask in plan(exercise, public=False, seed="s")]


def returned(*values: Any) -> list[AskFinding]:
    outcomes = [v if isinstance(v, Outcome) else Outcome(value=v) for v in values]
    return [replace(a, finding=Finding(outcomes=outcomes)) if a.ask.cases else a for a in ran()]


def shown_of(answers: Mapping[str, list[AskFinding]]) -> Callable[[Misconception, Sequence[Ask]], Attempt]:
    """Return a function that selects, from a misconception's answers, those to the given asks."""

    def shown(misconception: Misconception, asks: Sequence[Ask]) -> Attempt:
        same = {ask.answer_key for ask in asks}
        return Attempt([a for a in answers[misconception.name] if a.ask.answer_key in same])

    return shown


def named(exercise: Exercise, check: str, submitted: list[AskFinding], /, **known: list[AskFinding]) -> list[str]:
    """Return the misconceptions in ``known`` that explain why the submission fails the check.

    A misconception with a name such as ``b_of_a`` is a form of misconception ``a``.
    """
    misconceptions, answers = [], dict[str, list[AskFinding]]()
    for name, answered in known.items():
        fails = tuple(r.name for r in judge_checks(exercise, answered, public=False) if r.status == "failed")
        task = exercise.tasks["half" if check in ("halved", "small") else "double"]
        form_of = name.partition("_of_")[2]
        answers[name] = answered
        if check in fails:
            misconceptions.append(Misconception(name, f"{name}!", lambda: None, task, fails, form_of))
    statuses = {r.name: r.status for r in judge_checks(exercise, submitted, public=False)}
    assert statuses[check] == "failed"
    return [
        misconception.name
        for misconception in fitting(
            exercise.checks[check], Attempt(submitted), statuses, misconceptions, exercise.checks, shown_of(answers)
        )
    ]


def hint(submitted: list[AskFinding], check: str = "value", /, **known: list[AskFinding]) -> list[str]:
    return named(EXERCISE, check, submitted, **known)


def spoilt(change: Change, fill: float, rows: int = 2) -> Change:
    """Return ``change``, but with ``fill`` in the first rows of its result."""

    def changed(a: np.ndarray) -> np.ndarray:
        out = np.array(change(a))
        out[:rows] = fill
        return out

    return changed


# -- values ------------------------------------------------------------------------------------


def test_the_same_wrong_values_are_the_same_mistake_for_all_messages() -> None:
    known = {"tripled": ran(lambda a: 3 * a), "halved": ran(lambda a: a / 2)}
    assert hint(ran(lambda a: 3 * a), **known) == ["tripled"]
    assert hint(ran(lambda a: 3 * a, GATHER, GATHER), **known) == ["tripled"]
    assert hint(ran(lambda a: 4 * a), **known) == []


def test_a_misconception_with_gives_is_matched_by_gives_alone() -> None:
    """The misconception's program may draw other random numbers, so the grader does not compare its values."""

    def three_times(seen: Any) -> None:
        expect_close(seen.out, 3 * seen.a)

    fails, task = ("value", "traffic"), EXERCISE.tasks["double"]
    known = [
        Misconception("tripled", "", lambda: None, task, fails, gives=three_times),
        Misconception("zero", "", lambda: None, task, ("value",)),
    ]
    shown = shown_of({"tripled": ran(lambda a: 5 * a), "zero": ran(lambda a: 0 * a)})

    def found(change: Change) -> list[str]:
        statuses, value = {"value": "failed", "traffic": "passed"}, EXERCISE.checks["value"]
        return [s.name for s in fitting(value, Attempt(ran(change)), statuses, known, EXERCISE.checks, shown)]

    assert found(lambda a: 3 * a) == ["tripled"]
    assert found(lambda a: 0 * a) == ["zero"]
    assert (
        found(lambda a: 4 * a)
        == found(lambda a: 5 * a)
        == found(lambda a: 3 * a[:4])
        == found(lambda a: np.nan * a)
        == []
    )


def test_a_misconception_that_differs_in_the_first_run_is_not_run_again() -> None:
    task, value = EXERCISE.tasks["double"], EXERCISE.checks["value"]
    answers = {"tripled": ran(lambda a: 3 * a), "zero": ran(lambda a: 0 * a)}
    known = [Misconception(name, "", lambda: None, task, ("value",)) for name in answers]
    asked: list[tuple[str, int]] = []

    def shown(misconception: Misconception, asks: Sequence[Ask]) -> Attempt:
        asked.append((misconception.name, len(asks)))
        return shown_of(answers)(misconception, asks)

    submitted, statuses = Attempt(ran(lambda a: 3 * a)), {"value": "failed"}
    assert [m.name for m in fitting(value, submitted, statuses, known, EXERCISE.checks, shown)] == ["tripled"]
    assert asked == [("tripled", 1), ("tripled", len(submitted.answered)), ("zero", 1)]
    asked.clear()
    assert fitting(value, Attempt(ran()), statuses, known, EXERCISE.checks, shown) == [] and not asked


def test_rounding_makes_no_difference() -> None:
    assert hint(ran(lambda a: 3 * a * (1 + 1e-6)), tripled=ran(lambda a: 3 * a)) == ["tripled"]
    assert hint(ran(lambda a: 3.2 * a), tripled=ran(lambda a: 3 * a)) == []


def test_values_are_wrong_in_the_same_places() -> None:
    first, all_ = ran(spoilt(lambda a: 2 * a, 0)), ran(lambda a: 0 * a)
    assert hint(first, zero=all_) == [] and hint(all_, zero=first) == []
    assert hint(first, zero=first) == ["zero"]


def test_complex_values_are_compared_as_others_are() -> None:
    known = {"turned": ran(lambda a: 2j * a, exercise=COMPLEX)}
    assert named(COMPLEX, "value", ran(lambda a: 2j * a, exercise=COMPLEX), **known) == ["turned"]
    assert named(COMPLEX, "value", ran(lambda a: -2j * a, exercise=COMPLEX), **known) == []


def test_booleans_are_compared_as_others_are() -> None:
    known = {"negative": ran(lambda a: a < 0, exercise=POSITIVE)}
    assert named(POSITIVE, "value", ran(lambda a: a <= 0, exercise=POSITIVE), **known) == ["negative"]
    assert named(POSITIVE, "value", ran(lambda a: a > 1, exercise=POSITIVE), **known) == []


@pytest.mark.parametrize("fill", [np.nan, np.inf])
def test_undefined_values_of_a_misconception_are_not_compared(fill: float) -> None:
    tripled = ran(lambda a: 3 * a)
    assert hint(ran(spoilt(lambda a: 3 * a, fill)), tripled=tripled) == ["tripled"]
    assert hint(tripled, tripled=ran(spoilt(lambda a: 3 * a, fill))) == ["tripled"]


def test_mostly_undefined_values_match_no_misconception() -> None:
    tripled = ran(lambda a: 3 * a)
    assert hint(ran(spoilt(lambda a: 3 * a, np.nan, rows=7)), tripled=tripled) == []
    assert hint(ran(spoilt(lambda a: 2 * a, np.nan)), zero=ran(spoilt(lambda a: 2 * a, 0, rows=1))) == []


def test_nan_in_the_same_places_is_the_same_mistake() -> None:
    known = {"first": ran(spoilt(lambda a: 2 * a, np.nan)), "all": ran(lambda a: a * np.nan)}
    assert hint(ran(spoilt(lambda a: 2 * a, np.inf)), **known) == ["first"]
    assert hint(ran(lambda a: a * np.nan), **known) == ["all"]


def test_a_barely_failing_error_gets_no_hint() -> None:
    rounded = ran(lambda a: 2 * a + 3e-5 * np.abs(a).max())
    assert hint(rounded, rounded=rounded) == []


def test_other_shapes_do_not_match() -> None:
    assert hint(ran(lambda a: 3 * a[:4]), tripled=ran(lambda a: 3 * a)) == []
    assert hint(ran(lambda a: 3 * a), tripled=ran(lambda a: 3 * a[:4])) == []
    assert hint(ran(lambda a: 7 * a[:4]), cut=ran(lambda a: 3 * a[:4])) == ["cut"]


# -- collectives, memory and reasons -----------------------------------------------------------


def test_collectives_match_by_kind_axes_and_count() -> None:
    known = {"reduced": ran(lambda a: 2 * a, GATHER, collective("all_reduce", "x"))}
    assert hint(ran(lambda a: 2 * a, GATHER, collective("all_reduce", "x", line=3)), "traffic", **known) == ["reduced"]
    assert hint(ran(lambda a: 2 * a, GATHER, collective("all_reduce", "y")), "traffic", **known) == []
    assert hint(ran(lambda a: 2 * a, collective("all_reduce", "x", count=2)), "traffic", **known) == []


def test_equal_bytes_match_only_along_the_same_axis() -> None:
    over = {axis: ran(lambda a: 2 * a, GATHER, collective("permute", axis, sent=2_000_000)) for axis in "xy"}
    assert hint(over["x"], "sent", along_x=over["x"]) == ["along_x"]
    assert hint(over["y"], "sent", along_x=over["x"]) == []


def test_memory_is_compared_roughly() -> None:
    known = {"kept": ran(memory=4000)}
    assert hint(ran(memory=4200), "memory", **known) == ["kept"]
    assert hint(ran(memory=8000), "memory", **known) == []


def test_a_reason_is_compared_without_lines() -> None:
    late, later = collective("all_gather", "x", line=3), collective("all_gather", "x", line=77)
    assert hint(ran(lambda a: 2 * a, later), "order", late=ran(lambda a: 2 * a, late)) == ["late"]
    permute = collective("permute", "x", line=3)
    assert hint(ran(lambda a: 2 * a, permute), "order", late=ran(lambda a: 2 * a, late)) == []


def test_a_misconception_that_fails_what_the_submission_passes_does_not_fit() -> None:
    both = ran(lambda a: 3 * a, memory=4000)
    assert hint(ran(memory=4000), "memory", both=both) == []
    assert hint(both, "memory", both=both) == ["both"]
    assert hint(ran(lambda a: 5 * a, memory=4000), "memory", kept=ran(memory=4000)) == ["kept"]


# -- several misconceptions that fit -----------------------------------------------------------


def test_other_results_decide_between_several_misconceptions() -> None:
    known = {"kept": ran(memory=4000), "kept_and_reduced": ran(lambda a: 2 * a, GATHER, memory=4000)}
    known["sent"] = ran(lambda a: 3 * a, memory=4000)
    assert hint(ran(lambda a: 3 * a, memory=4000), "memory", **known) == ["sent"]


def test_collectives_in_common_decide_between_misconceptions_that_agree_equally_often() -> None:
    weights, tokens = collective("all_gather", "x", bytes=128), collective("all_gather", "x", bytes=32)
    known = {"weights": ran(lambda a: 2 * a, weights, weights), "tokens": ran(lambda a: 2 * a, tokens, tokens)}
    assert hint(ran(lambda a: 2 * a, GATHER, tokens), "traffic", **known) == ["tokens"]
    assert hint(ran(lambda a: 2 * a, GATHER, GATHER), "traffic", **known) == ["weights", "tokens"]


def test_two_hints_that_fit_equally_are_both_shown_and_three_are_not() -> None:
    tripled = ran(lambda a: 3 * a)
    assert hint(tripled, one=tripled, other=tripled) == ["one", "other"]
    assert hint(tripled, one=tripled, other=tripled, third=tripled) == []


# -- forms of one mistake ----------------------------------------------------------------------


def test_values_on_which_the_forms_of_a_mistake_differ_are_ignored() -> None:
    forms = {"junk": ran(spoilt(lambda a: 3 * a, 0)), "ones_of_junk": ran(spoilt(lambda a: 3 * a, 1))}
    for fill in (0, 7, np.nan):
        assert hint(ran(spoilt(lambda a: 3 * a, fill)), **forms) == ["junk"]
    assert hint(ran(spoilt(lambda a: 4 * a, 0)), **forms) == []
    assert hint(ran(spoilt(lambda a: 3 * a, 7)), junk=forms["junk"]) == []


def test_a_program_that_is_like_one_form_makes_the_mistake() -> None:
    forms = {"large": ran(lambda a: 30 * a), "small_of_large": ran(lambda a: 0.3 * a)}
    assert hint(ran(lambda a: 0.3 * a), **forms) == ["large"] and hint(ran(lambda a: 3 * a), **forms) == []
    nan = {"zero": ran(lambda a: 0 * a), "nan_of_zero": ran(lambda a: np.nan * a)}
    assert hint(ran(lambda a: np.nan * a), **nan) == ["zero"] and hint(ran(lambda a: 3 * a), **nan) == []


def test_an_impossible_form_with_fewer_findings_does_not_exclude_the_other_forms() -> None:
    """Form ``c`` is impossible: it fails the check ``value``, which the submission passes. It also raises an error."""
    error = Fault("raised", "TypeError: no")
    raises = [replace(a, finding=finding(error)) if a.ask.cases else a for a in ran(lambda a: 3 * a)]
    forms = {"a": returned(0, 1.5, 5), "b_of_a": returned(0, 1.5, 6)}
    assert hint(returned(0, 1.5, 4), "halved", **forms) == ["a"]
    assert hint(returned(0, 1.5, 4), "halved", **forms, c_of_a=raises) == ["a"]


def test_a_form_has_the_task_checks_and_hint_of_the_first() -> None:
    exercise = an_exercise()

    @exercise.misconception(of=exercise.tasks["double"], fails=exercise.checks["value"])
    def tripled(a, *, mesh):
        """You tripled."""

    @exercise.misconception(form_of=tripled)
    def tripled_otherwise(a, *, mesh):
        """By a loop."""

    assert (tripled_otherwise.of, tripled_otherwise.fails) == (tripled.of, tripled.fails)
    assert (tripled_otherwise.hint, tripled_otherwise.known_as) == ("You tripled.", "tripled")
    assert list(exercise.misconceptions) == ["tripled", "tripled_otherwise"]


# -- errors and plain functions ----------------------------------------------------------------


def raised(message: str, kind: str = "raised") -> list[AskFinding]:
    fault = Fault(kind, message, type="TypeError")
    return [a if a.ask.cases else replace(a, finding=finding(fault)) for a in ran()]


def test_the_same_error_is_the_same_mistake_for_all_shapes() -> None:
    mine, theirs = raised("TypeError: got shape (4, 2)"), raised("TypeError: got shape (8, 1)")
    assert hint(mine, mistaken=theirs) == ["mistaken"]
    assert hint(mine, mistaken=raised("TypeError: no such axis")) == []
    assert hint(mine, mistaken=ran(lambda a: 3 * a)) == [] and hint(ran(lambda a: 3 * a), mistaken=theirs) == []


def test_an_error_may_name_another_function() -> None:
    mine = raised("shard_map applied to the function 'device' was given out_specs")
    assert hint(mine, mistaken=raised("shard_map applied to the function '<lambda>' was given out_specs")) == [
        "mistaken"
    ]
    assert hint(mine, mistaken=raised("shard_map applied to the function 'device' was given in_specs")) == []


@pytest.mark.parametrize("kind", ["missing", "timeout", "untraceable", "crashed"])
def test_only_raised_errors_match_a_misconception(kind: str) -> None:
    assert hint(raised("the same", kind), mistaken=raised("the same", kind)) == []


def test_functions_match_case_by_case() -> None:
    known = {"rounded": returned(1.0, 1, 3)}
    assert hint(returned(1, 1.0, 3.0), "halved", **known) == ["rounded"]
    assert hint(returned(1.0, 2, 3.0), "halved", **known) == []
    assert hint(returned(2, 1.0, 3.0), "halved", **known) == []
    assert hint(returned(2, 1.0, 3.0), "halved", rounded=returned(2, 1.5, 3)) == []


def test_a_milder_mistake_leaves_some_cases_of_a_misconception_right() -> None:
    """The grader skips cases that only the submission gets right. As many other cases, or more, must agree."""
    assert hint(returned(1.0, 2, 3.0), "halved", doubled=returned(7, 2, 3.0)) == ["doubled"]
    assert hint(returned(1.0, 2, 3.0), "halved", doubled=returned(7, 2, 8)) == []
    assert hint(returned(7, 2, 3.0), "halved", doubled=returned(1.0, 2, 3.0)) == []


def test_the_same_kind_of_error_in_a_case_matches() -> None:
    known = {"looked_up": returned(1.0, Outcome(error="KeyError"), 3.0)}
    assert hint(returned(1.0, Outcome(error="KeyError"), 3.0), "halved", **known) == ["looked_up"]
    assert hint(returned(1.0, Outcome(error="TypeError"), 3.0), "halved", **known) == []


def test_an_error_is_not_the_mistake_of_a_returned_value() -> None:
    """The check's failure has no values, so every wrong value matches. A raised error does not match."""
    exercise = Exercise()

    @exercise.function
    def half(n):
        """Half of n."""

    @exercise.check(exercise.cases(half, public=[{"n": 2}, {"n": 3}]), points=1)
    def small(seen):
        """results are small"""
        if any(got.error or got.value > 5 for _, got, _ in seen.outcomes):
            raise Failure("a result is not small")

    def answered(*outcomes: Outcome) -> list[AskFinding]:
        return [AskFinding(ask, Finding(outcomes=list(outcomes))) for ask in plan(exercise, public=False, seed="s")]

    right, large, larger = (Outcome(value=value) for value in (1, 7, 8))
    known = {"large": answered(large, right)}
    assert named(exercise, "small", answered(larger, right), **known) == ["large"]
    assert named(exercise, "small", answered(Outcome(error="NameError"), right), **known) == []


# -- hints -------------------------------------------------------------------------------------


def test_a_hint_changes_nothing_else_and_two_are_shown_as_alternatives() -> None:
    result = judge_checks(EXERCISE, ran(lambda a: 3 * a), public=False)[0]
    one, other = (Misconception(n, h, lambda: None, EXERCISE.tasks["double"], ("value",)) for n, h in (("a", "A."), ("b", "B.")))  # fmt: skip
    hinted = with_hint(result, [one])
    assert (hinted.hint, hinted.misconception) == ("A.", "a")
    assert hinted.model_copy(update={"hint": "", "misconception": ""}) == result
    both = with_hint(result, [one, other])
    assert (both.hint, both.misconception) == ("Either: A.\n\nOr: B.", "a or b")
    assert with_hint(result, [one, replace(other, hint="A.")]).hint == "A."


def test_hidden_inputs_have_no_part_in_hints() -> None:
    secret = [a for a in ran(lambda a: 3 * a) if a.ask.hidden_inputs]
    assert secret and Attempt(secret).answered == []
