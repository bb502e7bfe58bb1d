"""Hints run only misconceptions that the results leave possible."""

from __future__ import annotations

from pathlib import Path

from grader.batch.verdicts import may_explain
from grader.course.finding import find_course


def test_a_misconception_explains_no_submission_that_passes_a_check_that_it_fails() -> None:
    exercise = find_course(Path(__file__).resolve().parents[2]).exercise("h6_sequence_parallel")
    several = exercise.misconceptions["bias_inside_the_sum"]
    check = exercise.checks[several.fails[0]]
    failed = dict.fromkeys(several.fails, "failed")
    assert len(failed) == 3 and may_explain(several, check, failed, public=False)
    for name in several.fails:
        assert not may_explain(several, check, failed | {name: "passed"}, public=False)
        assert may_explain(several, check, failed | {name: "passed"}, public=True)
        assert may_explain(several, check, failed | {name: "blocked"}, public=False)
