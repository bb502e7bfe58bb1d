"""Compare the operations of a timed program with those of the small program. A fault of one is a fault of the other.

The small program has small arrays, and the grader judges its values.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.common.observation import Fault, Observation
from grader.exercise import Exercise, normal
from grader.judging.judge import judge_checks
from grader.judging.plan import Ask, plan
from grader.judging.seen import TOO_LARGE, AskFinding, Finding, paired, partner
from grader.wire.operations import Body, Operation, Operations, Value


def exercise() -> Exercise:
    """Return an exercise with one body task: two hidden checks judge its values, and a public check its time.

    The grader traces the body with and without ``check_vma``.
    """
    made = Exercise(meshes=[{"x": 4}, {"x": 8}], id="e")

    @made.body(out_specs=(), check_vma="both")
    def double(a):
        """2 a"""

    values = made.call(double, a=normal("I"), dims={"I": 11}, hidden_dims={"I": 13})
    time = made.timing(values, on="v5e:2x4", meshes=[{"x": 8}], dims={"I": 1024}, hidden_dims={"I": 2048})

    @made.check(values, points=1)
    def value(seen):
        """it is doubled"""

    @made.check(values, points=1)
    def traffic(seen):
        """nothing is sent"""

    @made.check(time, points=1, public=True)
    def quick(seen):
        """it is quick"""

    return made


def program(ask: Ask, name: str = "add") -> Observation:
    """Return the observation of a program with the single operation ``name`` on the ask's array."""
    values = (Value((ask.dims["I"],), "float32"),) * 2
    found = Operations(dict(ask.mesh), values, Body((0,), (Operation(name, (0,), (1,), line=7),), (1,)))
    return Observation([[]] * len(ask.inputs), [], 0, operations=found)


def answered(made: Exercise, *, public: bool = False, name: str = "add") -> list[AskFinding]:
    """Return findings for all asks: the timed program's operation is ``name``, and the small program's is "add"."""
    asks = plan(made, public=public, seed="s")
    return [AskFinding(ask, Finding(program(ask, name if ask.dims["I"] > 1000 else "add"))) for ask in asks]


def timed(found: list[AskFinding]) -> list[AskFinding]:
    return [a for a in found if a.ask.of.timing]  # type: ignore[union-attr]


def test_the_partner_has_the_sizes_the_mode_and_the_mesh() -> None:
    found = answered(exercise())
    assert len(timed(found)) == 4
    for one in timed(found):
        beside = partner(one.ask, found)
        assert beside.ask.dims["I"] == (13 if one.ask.hidden_sizes else 11)
        assert (beside.ask.check_vma, beside.ask.mesh, beside.ask.hidden_inputs) == (one.ask.check_vma, {"x": 8}, False)


def test_timed_programs_are_also_asked_for_their_values() -> None:
    found = answered(exercise(), public=True)
    assert {a.ask.dims["I"] for a in found} == {11, 1024}
    assert all(a.ask.compared and a.ask.for_runner([]).get("compared") for a in found)
    assert paired(found) == found


def test_a_timed_program_that_differs_is_refused_with_its_line() -> None:
    equal = answered(exercise())
    assert paired(equal) == equal
    faults = [a.finding.fault for a in timed(paired(answered(exercise(), name="tanh")))]
    told = (
        "the timed program differs from the judged program, which runs with small arrays: the timed program has tanh of float32[1024] "
        "where the judged program has add of float32[11]. Write one program for all sizes: do not choose its operations by a shape"
    )
    assert faults[0] == Fault("refused", told, 7, "", ran=True) and len(faults) == 4


def test_a_fault_of_the_values_is_also_the_fault_of_the_time() -> None:
    fault = Fault("raised", "ValueError: no", 3)
    found = [a if a.ask.of.timing else replace(a, finding=Finding(fault=fault)) for a in answered(exercise())]  # type: ignore[union-attr]
    assert all(a.finding.fault == fault for a in timed(paired(found)))


def test_a_program_too_large_to_compare_fails_its_timing_check() -> None:
    made = exercise()
    found = [AskFinding(a.ask, Finding(replace(program(a.ask), operations=None))) for a in answered(made)]
    assert {a.finding.fault and a.finding.fault.message for a in timed(paired(found))} == {TOO_LARGE}
    results = judge_checks(made, found, public=False)
    assert [r.status for r in results] == ["passed", "passed", "failed"] and TOO_LARGE in results[-1].reason


def test_a_timing_check_comes_after_the_first_check_of_its_values() -> None:
    assert exercise().checks["quick"].after == ("value",)


@pytest.mark.parametrize("public", [True, False])
def test_asks_of_untimed_calls_are_not_compared(public: bool) -> None:
    made = exercise()
    made.checks = {name: check for name, check in made.checks.items() if name != "quick"}
    assert not any(ask.compared or "compared" in ask.for_tracer([]) for ask in plan(made, public=public, seed="s"))
