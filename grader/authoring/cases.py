"""Check the test cases of plain Python tasks.

A solution must be able to pass each case. The statement or the task's docstring must name each error that a solution
has to raise. Rounding errors must cost no points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from grader.authoring.seeds import SEEDS
from grader.common.observation import Outcome
from grader.exercise import Cases, Exercise, Task
from grader.expect import same_outcome, show_outcome, show_value
from grader.judging.judge import judge_checks
from grader.judging.plan import Ask, plan
from grader.judging.seen import Answered, Finding, reference_outcome

MORE_SEEDS = 12
"""The number of further seeds with which cases are drawn, because the next term has another seed."""
ULPS = 64
"""A rounding error, in units in the last place. Right programs that add numbers in different orders differ as much."""


def case_problems(exercise: Exercise, seed: str) -> Iterator[str]:
    """Yield problems: cases that no solution can pass, and checks that can fail only because of rounding.

    Args:
        seed: the course's seed, which decides the hidden cases.
    """
    plans = [_of_cases(exercise, one) for one in (seed, *SEEDS[:MORE_SEEDS])]
    found: dict[tuple[str, str], str] = {}
    for ask, cases in chain.from_iterable(plans):
        for case in ask.cases:
            if problem := _problem(exercise, cases.task, reference_outcome(cases.task, case)):
                found.setdefault((ask.task, problem), _named(case))
    yield from (f"{task}: for {case} the reference {problem}" for (task, problem), case in found.items())
    if not found:
        yield from _rounding(exercise, plans[0])


def _of_cases(exercise: Exercise, seed: str) -> list[tuple[Ask, Cases]]:
    asks = plan(_with_cases(exercise), public=False, seed=seed)
    return [(ask, ask.of) for ask in asks if isinstance(ask.of, Cases)]


def _with_cases(exercise: Exercise) -> Exercise:
    """Return the exercise with only its checks of plain Python tasks: inputs of other tasks take long to make."""
    checks = {name: check for name, check in exercise.checks.items() if isinstance(check.calls[0], Cases)}
    return replace(exercise, checks=checks)


def _problem(exercise: Exercise, task: Task, outcome: Outcome) -> str:
    """Return the reason why no solution can pass a case with this expected outcome; '' if a solution can pass it."""
    if outcome.error == "NotPlain":
        return "returns a value that cannot be compared: return numbers, texts, lists, tuples or dicts"
    if outcome.error and outcome.error not in f"{exercise.statement}\n{task.fn.__doc__ or ''}":
        return (
            f"raises {outcome.error}: mend the reference or the case; if the error is right, name it in the statement "
            "or the docstring"
        )
    if not same_outcome(outcome, outcome):
        return f"{show_outcome(outcome)}, which no learner's answer can equal: mend the reference or the case"
    return ""


def _rounding(exercise: Exercise, asks: list[tuple[Ask, Cases]]) -> Iterator[str]:
    """Yield a problem for each check that fails a program because of rounding errors in its floats."""
    for direction in (1, -1):
        answered = [
            Answered(
                ask,
                Finding(outcomes=[_rounded(reference_outcome(cases.task, case), direction) for case in ask.cases]),
            )
            for ask, cases in asks
        ]
        results = judge_checks(_with_cases(exercise), answered, public=False)
        failed = [result.name for result in results if result.status == "failed"]
        for name in failed:
            yield (
                f"{name}: the check fails a program whose floats differ from the reference's in the last digits, for "
                "example from another order of operations: give expect_outcomes a larger rtol"
            )
        if failed:
            return


def _rounded(outcome: Outcome, direction: int) -> Outcome:
    return outcome if outcome.error else replace(outcome, value=_off(outcome.value, direction))


def _off(value: Any, direction: int) -> Any:
    """Return ``value`` with each float changed by ULPS units in the last place, up or down (``direction`` 1 or -1).

    Floats that are whole numbers do not change, because they may come from exact sums.
    """
    match value:
        case bool():
            return value
        case float() if not value.is_integer():
            return value + direction * ULPS * math.ulp(value)
        case list():
            return [_off(one, direction) for one in value]
        case tuple() if type(value) is tuple:
            return tuple(_off(one, direction) for one in value)
        case dict():
            return {key: _off(one, direction) for key, one in value.items()}
    return value


def _named(case: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={show_value(value)}" for name, value in case.items())
