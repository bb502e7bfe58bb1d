"""The results of other checks rule out some misconceptions. The grader does not try these to find a hint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from grader.batch.verdicts import may_explain
from grader.course.finding import find_course


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
