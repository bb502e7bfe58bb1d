"""Grade one task of one submission with many seeds, to find results that vary by luck.

The submission is traced once. Only the inputs differ between seeds, so twenty seeds cost little more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from grader.batch.grade import Grader
from grader.batch.running import collect
from grader.common.result import Result
from grader.exercise import Check, Exercise
from grader.intake.submission import Chunk, Source
from grader.judging.judge import WRONG_ON_HIDDEN, judge_checks
from grader.judging.plan import Ask, plan

SEEDS = tuple(f"verify/{n}" for n in range(1000))


def results_by_seed(
    grader: Grader, exercise: Exercise, text: str, seeds: Sequence[str], task: str
) -> list[dict[str, Result]]:
    """Grade one task of a submission with each seed.

    Args:
        text: the submission's source code.

    Returns:
        One dict for each seed: the results of the task's checks, by name of the check.
    """
    return results_of_task(grader, exercise, text, task, _plans(exercise, tuple(seeds)), public=False)


@lru_cache(8)
def _plans(exercise: Exercise, seeds: tuple[str, ...]) -> list[list[Ask]]:
    """Return, for each seed, the calls to run. All lists share the calls without hidden inputs."""
    plans = [plan(exercise, public=False, seed=seed) for seed in seeds]
    return [[ask if ask.hidden_inputs else first for first, ask in zip(plans[0], asks, strict=True)] for asks in plans]


def is_luck(result: Result) -> bool:
    """Return True if the check passed, or failed on hidden inputs only: with another seed, its result could differ."""
    return result.status == "passed" or result.reason == WRONG_ON_HIDDEN


def results_of_task(
    grader: Grader, exercise: Exercise, text: str, task: str, plans: Sequence[Sequence[Ask]], *, public: bool
) -> list[dict[str, Result]]:
    """Grade one task of a submission once for each plan (list of calls with inputs).

    Args:
        text: the submission's source code.
        plans: each must have all calls that the task's checks need. Other calls do not run.

    Returns:
        One dict for each plan: the results of the task's checks, by name of the check.
    """
    checks = exercise.checks_of(exercise.tasks[task])
    names = {check.name for check in checks}
    calls = {id(call) for check in with_those_before(exercise, checks) for call in check.calls}
    plans = [[ask for ask in asks if id(ask.of) in calls] for asks in plans]
    every = list(dict.fromkeys(ask for asks in plans for ask in asks))
    name = f"{exercise.id}.py"
    with grader.pool.lent() as workers:
        answered, _ = collect(workers, Source(name, (Chunk(name, text),)), every)
    found = {a.ask: a for a in answered}
    judged = [judge_checks(exercise, [found[ask] for ask in asks], public=public) for asks in plans]
    return [{r.name: r for r in results if r.name in names} for results in judged]


def with_those_before(exercise: Exercise, checks: Sequence[Check]) -> list[Check]:
    """Return the checks, and all checks that must pass before one of them is judged."""
    found = list(checks)
    for check in found:  # the loop also visits the checks that it appends
        found += [exercise.checks[name] for name in check.after if exercise.checks[name] not in found]
    return found
