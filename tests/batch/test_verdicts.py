"""The results of other checks rule out some misconceptions. The grader does not try these to find a hint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from grader.batch import verdicts
from grader.batch.verdicts import may_explain
from grader.batch.workers import Workers
from grader.common.observation import Fault
from grader.course.finding import find_course
from grader.judging.plan import plan
from grader.judging.seen import AskFinding, Finding


def test_a_passed_check_rules_out_the_misconceptions_that_fail_the_check() -> None:
    exercise = find_course(Path(__file__).resolve().parents[2]).exercise("h6_sequence_parallel")
    several = exercise.misconceptions["bias_inside_the_sum"]
    predicts = replace(several, gives=lambda seen: None)
    check = exercise.checks[several.fails[0]]
    failed = dict.fromkeys(several.fails, "failed")
    assert len(failed) == 3 and may_explain(several, check, failed, public=False)
    for name in several.fails:
        assert not may_explain(several, check, failed | {name: "passed"}, public=False)
        assert may_explain(several, check, failed | {name: "passed"}, public=True)
        assert may_explain(several, check, failed | {name: "blocked"}, public=False)
        assert may_explain(predicts, check, failed | {name: "passed"}, public=False)
    other = next(one for name, one in exercise.checks.items() if name not in several.fails)
    assert not may_explain(several, other, failed, public=True)


def test_a_failure_of_the_machine_while_a_misconception_runs_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    exercise = find_course(Path(__file__).resolve().parents[2]).exercise("c3_contracting")
    misconception = next(iter(exercise.misconceptions.values()))
    asks = [ask for ask in plan(exercise, public=True, seed="s") if ask.task == misconception.of.name]
    made = iter([Finding(fault=Fault("broken", "no memory"))] * len(asks) + [Finding(outcomes=[])] * len(asks))
    monkeypatch.setattr(
        verdicts, "collect", lambda workers, source, asks: ([AskFinding(a, next(made)) for a in asks], [])
    )
    references, workers = verdicts.References(), cast(Workers, SimpleNamespace(without_devices=lambda: None))
    first = references.attempt(exercise, workers, misconception, asks)
    assert any(finding.fault for finding in references.findings(exercise.id)), "so the results are not cached"
    assert {one.finding.fault for one in first.answered} == {Fault("broken", "no memory")}
    second = references.attempt(exercise, workers, misconception, asks)
    assert {one.finding.fault for one in second.answered} == {None}
    assert references.attempt(exercise, workers, misconception, asks) is second, "no third run"
