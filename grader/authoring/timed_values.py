"""Check that points for a timed program depend on the values of the program that is judged in its place.

A timed program never runs. Its values count as right because it differs from a small program only in sizes (see
``judging.same_program``). If no check judges the small program's values, a submission can time a program that computes
something else. So this module changes the results of the reference solution. At least one check must then fail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from grader.authoring.margins import sizes_of
from grader.authoring.seeds import with_those_before
from grader.authoring.tries import without_trials
from grader.common.observation import Observation, Sharded
from grader.exercise import Call, Check, Exercise
from grader.judging.judge import judge_check
from grader.judging.plan import Ask
from grader.judging.seen import AskFinding, Finding, partner
from grader.wire.trees import leaves

MEND = "add expect_close to a check of the call that exercise.timing names"


def timed_problems(exercise: Exercise, reference: Sequence[AskFinding]) -> Iterator[str]:
    """Yield the problems of timed tasks: results that no check judges, and points that do not depend on results.

    If one result of the judged program has other values, a check of the judged call must fail. If all results have
    other values, no check of the timing call may pass. The judged program runs on several meshes and with several
    choices of sizes. Both rules must hold for every mesh and choice of sizes for which there is a timed program.

    Args:
        reference: the results of the reference solution, which passes all checks.
    """
    reference, reported = without_trials(reference), set[str]()
    for timed in (a.ask for a in reference if isinstance(a.ask.of, Call) and a.ask.of.timing):
        judged = partner(timed, reference)
        where = sizes_of(judged.ask)
        for problem in (*_unjudged(exercise, judged, reference), *_independent(exercise, timed, judged, reference)):
            if problem not in reported:
                reported.add(problem)
                yield f"{judged.ask.task} is timed, but {where} {problem}"


def _unjudged(exercise: Exercise, judged: AskFinding, reference: Sequence[AskFinding]) -> Iterator[str]:
    """Yield a problem for each result of the judged program that can have other values without failing a check."""
    for number, name in enumerate(_names(judged)):
        if not any(_failing(exercise, judged.ask, _with_other_values(judged.ask, {number}, reference))):
            yield f"no check fails if {name} has other values: {MEND}"


def _independent(exercise: Exercise, timed: Ask, judged: AskFinding, reference: Sequence[AskFinding]) -> Iterator[str]:
    """Yield a problem for each check of the timing call that passes if all results have other values."""
    every = set(range(len(_names(judged))))
    failing = set(_failing(exercise, judged.ask, _with_other_values(judged.ask, every, reference)))
    for check in exercise.checks.values():
        if failing and timed.of in check.calls and failing.isdisjoint(with_those_before(exercise, [check])):
            yield f"{check.name} passes if all results have other values: name a check of values in its after=..."


def _names(judged: AskFinding) -> list[str]:
    """Return a name for each output of the judged program: results first, then gradients."""
    call, found = judged.ask.of, judged.finding.observation
    assert isinstance(call, Call) and found is not None
    gradients = [f"the gradient of {name}" for of in call.wrt for name, _ in leaves(call.args[of], of)]
    count = len(found.outputs[0]) - len(gradients)
    results = [about.name for about in call.results] if call.results else [""] * count
    return [name or (f"result {n}" if count > 1 else "the result") for n, name in enumerate(results, 1)] + gradients


def _with_other_values(ask: Ask, numbers: Collection[int], reference: Sequence[AskFinding]) -> list[AskFinding]:
    """Return the answers, with other values of the outputs ``numbers`` of the ask's program, for all inputs."""
    return [
        replace(a, finding=Finding(_changed(a.finding.observation, numbers)))
        if a.finding.observation and a.ask.program_key == ask.program_key
        else a
        for a in reference
    ]


def _changed(found: Observation, numbers: Collection[int]) -> Observation:
    outputs = [[_moved(one) if n in numbers else one for n, one in enumerate(results)] for results in found.outputs]
    return replace(found, outputs=outputs)


def _moved(result: Sharded) -> Sharded:
    """Return an array of other values: add the array's largest magnitude to each element, and negate booleans.

    If all elements are 0, add 1. Copies of an element on several devices stay equal.
    """
    if result.dtype == bool:
        return replace(result, shards=[~part for part in result.shards])
    largest = max((float(np.max(np.abs(part.astype(complex)))) for part in result.shards if part.size), default=0.0)
    far = np.asarray(largest or 1.0).astype(result.dtype)
    return replace(result, shards=[part + far for part in result.shards])


def _failing(exercise: Exercise, ask: Ask, answered: list[AskFinding]) -> Iterator[Check]:
    """Yield the checks of the ask's call that do not pass."""
    for check in exercise.checks.values():
        if ask.of in check.calls and judge_check(check, answered, learners_run=False).status != "passed":
            yield check
