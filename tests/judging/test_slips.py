"""Known slips: whose mistake a submission's is."""

from __future__ import annotations

import pytest

from grader.common.observation import Fault, Observation, Outcome
from grader.exercise import Misconception
from grader.judging.plan import plan
from grader.judging.seen import Answered
from grader.judging.slips import matches, with_hint
from tests.judging.test_judge import an_exercise, judged, observed
from tests.seen import collective, sharded


def answered(factor: float, *collectives: object) -> list[Answered]:
    asks = [a for a in plan(an_exercise(), public=False, seed="s") if a.inputs and not a.secret]
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


def outcomes(*values: object) -> list[Answered]:
    (ask,) = [a for a in plan(an_exercise(), public=False, seed="s") if a.cases and not a.secret]
    return [Answered(ask, [v if isinstance(v, Outcome) else Outcome(value=v) for v in values])]


def test_functions_match_by_all_their_outcomes() -> None:
    wrong, right = outcomes(1.0, 9), outcomes(1.0, 2.0)
    assert matches(outcomes(1.0, 9), wrong, right)
    assert not matches(outcomes(9.0, 9), wrong, right)
    assert not matches(outcomes(1.0), wrong, right)


def test_the_same_kind_of_error_in_a_case_matches() -> None:
    error = Outcome(error="KeyError")
    assert matches(outcomes(1.0, error), outcomes(1.0, error), outcomes(1.0, 2.0))
    assert not matches(outcomes(1.0, Outcome(error="TypeError")), outcomes(1.0, error), outcomes(1.0, 2.0))


def test_another_layout_or_shape_or_number_of_results_does_not_match() -> None:
    mine, wrong, right = answered(3.0), answered(3.0), answered(2.0)
    for change in (
        lambda ask, o: Observation([[sharded(3 * one["a"], (), ask.mesh)] for one in ask.inputs], [], 0),
        lambda ask, o: Observation([[sharded(3 * one["a"][:8], (), ask.mesh)] for one in ask.inputs], [], 0),
        lambda ask, o: Observation([[*arrays, *arrays] for arrays in o.outputs], [], 0),
        lambda ask, o: Fault("raised", "TypeError: no", type="TypeError"),
    ):
        other = [Answered(a.ask, change(a.ask, a.finding)) for a in mine]  # type: ignore[no-untyped-call]
        assert not matches(other, wrong, right) and not matches(wrong, other, right)


@pytest.mark.parametrize("kind", ["missing", "timeout", "untraceable", "crashed", "broken"])
def test_only_an_error_that_was_raised_can_be_a_misconceptions(kind: str) -> None:
    faults = [Answered(a.ask, Fault(kind, "the same")) for a in answered(2.0)]
    assert not matches(faults, faults, answered(2.0))


def test_a_hint_changes_nothing_else() -> None:
    result = judged(an_exercise(), lambda ask: observed(ask, 3.0))["value"]
    slip = Misconception("tripled", "You tripled.", lambda: None, an_exercise().tasks["double"], ("value",))
    hinted = with_hint(result, slip)
    assert (hinted.hint, hinted.misconception) == ("You tripled.", "tripled")
    assert hinted.model_copy(update={"hint": "", "misconception": ""}) == result
